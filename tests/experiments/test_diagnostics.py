"""What the log of a run says of learning: each figure against a log that was made up to have it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up_logs import ELEMENTS, MadeUp, write_log

from eoh_esopt.engine.timings import Timings
from eoh_esopt.experiments.diagnostics import Diagnosis, diagnose
from eoh_esopt.experiments.run_record import read_run
from eoh_esopt.reports.diagnosis import readings, tables
from eoh_esopt.reports.objective import Scale
from operators.evolution_strategy import EvolutionStrategy
from operators.momentum import momentum
from operators.records import Candidate, Direction, Outcome, Proposal, Skip, Status, Update
from operators.rewards import Trial, sample
from operators.schedules import constant
from operators.search import Situation

FIRST = Update(0, (1, 2, 3), (0.1, 0.4, 0.4), (-1.4, 0.7, 0.7), 0.03, 0.06)
SECOND = Update(1, (4, 5, 6), (2.0, 1.0, 0.0), (1.2, 0.0, -1.2), 0.03, 0.02, signal=0.25)
SCALE = Scale("tour length", False, {}, None)
TIMES = Timings(generate=60, perturb=3, restore=1, update=6, evaluate=10, sandbox=50)


class Never:
    """An operator that nothing is asked of."""

    name = "m1"

    def ask(self, count: int, situation: Situation) -> list[Proposal]:
        raise NotImplementedError

    def tell(self, step: int, trials: Sequence[Trial], rng: np.random.Generator) -> None:
        raise NotImplementedError


def skipped(objectives: Sequence[float | None], *, antithetic: bool = False) -> Skip:
    """What the method itself says of a batch with these objectives."""
    signs = (1, -1) if antithetic else (1, 1)
    directions = [Direction(i // 2 if antithetic else i, signs[i % 2] * 0.1) for i in range(len(objectives))]
    trials = [
        Trial(
            Proposal("m1", "", "", (Candidate(0, "seed", "", "", 5.0),), direction),
            Outcome(Status.RAISED) if one is None else Outcome(Status.OK, one, (one,), 1),
            9.0,
        )
        for direction, one in zip(directions, objectives, strict=True)
    ]
    strategy = EvolutionStrategy(Never(), sample, constant(0.1), 0.1, antithetic=antithetic)
    decision = strategy.tell(0, trials, np.random.default_rng(0))
    assert isinstance(decision, Skip)
    return decision


def batches() -> Iterator[MadeUp]:
    """A run with two updates and two batches that taught nothing."""
    yield MadeUp(-1, "seed", [7.0])
    yield MadeUp(-1, "i1", [None, 6.5])
    yield MadeUp(0, "e1", [6.4, None, 6.4, 7.0], unparsed=1)
    yield MadeUp(0, "m1", [6.3, 6.2, None, None], FIRST, unparsed=1)
    yield MadeUp(0, "m2", [None, None, None], replace(skipped([None] * 3), step=1))
    yield MadeUp(1, "m1", [6.1, 6.1, 6.0], replace(SECOND, step=2))
    yield MadeUp(1, "m2", [6.1, 6.1], replace(skipped([6.1] * 2), step=3), timings=TIMES, seconds=100.0)


@pytest.fixture
def diagnosis(tmp_path: Path) -> Diagnosis:
    """Of that run."""
    return diagnose(read_run(write_log(tmp_path / "run", list(batches())), finished=False))


def test_batches_that_teach_nothing_are_told_apart(diagnosis: Diagnosis) -> None:
    """Else candidates that all fail look like candidates that are all alike, and each needs another remedy."""
    learning = diagnosis.learning
    assert (learning.count, learning.updated, learning.all_invalid, learning.without_spread) == (4, 2, 1, 1)
    assert learning.skip_reasons == {
        "no candidate of the batch was valid": 1,
        "all 2 directions had the same reward": 1,
    }


def test_mirrors_with_equal_rewards_have_no_spread_either(tmp_path: Path) -> None:
    """Else a run with pairs of directions seems to skip updates for no reason."""
    skip = skipped([6.0, 6.0, 5.0, 5.0], antithetic=True)
    folder = write_log(tmp_path / "run", [MadeUp(0, "m1", [6.0, 5.0], skip)])
    assert diagnose(read_run(folder, finished=False)).learning.without_spread == 1


def test_each_update_says_what_it_rests_on(diagnosis: Diagnosis) -> None:
    """Else nobody sees that the weights were moved for differences as small as rounding."""
    first, second = diagnosis.updates
    assert (first.step, first.generation, first.operator, first.sigma) == (0, 0, "m1", 0.06)
    assert first.rewards == FIRST.rewards
    assert first.spread == pytest.approx(np.std(FIRST.rewards))
    assert (first.contrast, second.contrast) == pytest.approx((0.3, 2.0))
    assert (first.signal, second.signal) == (None, 0.25)
    assert (first.cosine, second.cosine) == (None, 0)


def test_sizes_stand_beside_those_of_noise(diagnosis: Diagnosis) -> None:
    """Else sizes, which any rewards give, are taken for learning."""
    moved = diagnosis.updates[0].moved
    assert moved.size == pytest.approx(0.01 * math.hypot(1.4, 0.7, 0.7))
    assert moved.noise_size == pytest.approx(0.03 / math.sqrt(3))
    assert moved.within_sigma == pytest.approx(math.erf(0.06 / moved.size / math.sqrt(2)))
    assert diagnosis.total is not None
    assert diagnosis.total.size == pytest.approx(math.hypot(*(one.moved.size for one in diagnosis.updates)))
    assert diagnosis.total.noise_within_sigma == pytest.approx(
        math.erf(0.06 / (0.03 * math.sqrt(2 / 3)) / math.sqrt(2))
    )


@pytest.mark.parametrize(
    ("scope", "rms", "norm", "relative"),
    [("norms", None, None, 1.0), ("full", None, math.sqrt(ELEMENTS), None), ("full", 0.5, math.sqrt(ELEMENTS), 2.0)],
)
def test_sizes_are_relative_where_that_is_known(
    tmp_path: Path, scope: str, rms: float | None, norm: float | None, relative: float | None
) -> None:
    """Else changes of gains, which are relative already, are divided once more, or a guess is shown as a figure."""
    folder = write_log(tmp_path / "run", [MadeUp(0, "m1", [6.0, 5.0], FIRST)], scope=scope)
    moved = diagnose(read_run(folder, finished=False), rms).updates[0].moved
    assert moved.norm == (None if norm is None else pytest.approx(norm * moved.size))
    assert moved.relative == (None if relative is None else pytest.approx(relative * moved.size))


def test_momentum_shows_as_a_common_direction(tmp_path: Path) -> None:
    """Else a run that overshoots looks like one whose steps have nothing in common."""
    second = momentum(0.9)([FIRST], SECOND)
    made_up = [MadeUp(0, "m1", [6.0, 5.0], FIRST), MadeUp(1, "m1", [6.0, 5.0], second)]
    found = diagnose(read_run(write_log(tmp_path / "run", made_up, momentum=0.9), finished=False)).updates[1]
    assert found.cosine is not None
    assert found.cosine > 0.5
    assert min(found.moved.size, found.moved.noise_size) > 1.2 * 0.03 / math.sqrt(3)


def test_an_update_without_perturbation_has_no_sigma_to_compare_with(tmp_path: Path) -> None:
    """Else the ablation that updates without perturbing ends the diagnosis in a division by zero."""
    folder = write_log(tmp_path / "run", [MadeUp(0, "m1", [6.0, 5.0], replace(FIRST, sigma=0.0))])
    found = diagnose(read_run(folder, finished=False))
    assert found.updates[0].moved.within_sigma is None
    assert list(readings(found)) == []


def test_candidates_are_counted_over_time_and_by_operator(diagnosis: Diagnosis) -> None:
    """Else a model that unlearns to write valid programs hides in the mean over the run."""
    by_generation = [(one.of, one.count, one.valid, one.new, one.distinct) for one in diagnosis.generations]
    assert by_generation == [("0", 11, 5, 3, 4), ("1", 5, 5, 2, 2)]
    by_operator = {one.of: (one.count, one.parsed, one.valid, one.best) for one in diagnosis.operators}
    assert by_operator == {"e1": (4, 3, 3, 6.4), "m1": (7, 6, 5, 6.0), "m2": (5, 5, 2, 6.1)}


def test_what_learning_costs_in_time(diagnosis: Diagnosis) -> None:
    """Else the price of moving the weights is hidden in that of writing."""
    assert diagnosis.overhead == pytest.approx(10 / 90)
    time = {row[0]: row[1] for table in tables(diagnosis, SCALE) if table.name == "time" for row in table.rows}
    assert time["the rest"] == pytest.approx(20)
    assert sum(value for name, value in time.items() if name not in ("in all", "sandbox, beside")) == 100  # type: ignore[misc]
    unknown = replace(diagnosis, timings=replace(TIMES, perturb=None, restore=None))
    assert unknown.overhead is None
    assert any("not known" in line for line in readings(unknown))


def test_a_run_that_was_not_meant_to_learn(tmp_path: Path) -> None:
    """Else the baseline's diagnosis ends in a traceback, or reports shares of nothing."""
    folder = write_log(tmp_path / "run", [MadeUp(0, "e1", [6.0, None])], method="eoh")
    record = read_run(folder, finished=False)
    found = diagnose(record)
    assert (found.learning.count, found.updates, found.total, found.overhead) == (0, (), None, None)
    assert [table.name for table in tables(found, record.scale)] == ["generations", "operators"]
    assert list(readings(found)) == ["The weights were not meant to move in this run."]


def test_a_run_that_never_moved_is_called_so(tmp_path: Path) -> None:
    """Else a good result is put down to learning that never took place."""
    folder = write_log(tmp_path / "run", [MadeUp(0, "m1", [None, None], Skip(0, "noise only: not applied"))])
    found = diagnose(read_run(folder, finished=False))
    assert "nothing was learnt" in next(readings(found))
    assert dict(found.learning.skip_reasons) == {"noise only": 1}


def test_a_run_without_batches(tmp_path: Path) -> None:
    """Else looking into a run that has just begun ends in a traceback."""
    found = diagnose(read_run(write_log(tmp_path / "run", []), finished=False))
    assert (found.learning.count, found.generations, found.seconds) == (0, (), 0)


def test_older_logs_are_counted_afterwards(tmp_path: Path) -> None:
    """Else runs of earlier releases seem to have parsed nothing and skipped for no reason."""
    made_up = list(batches())
    now = read_run(write_log(tmp_path / "now", made_up), finished=False)
    old = read_run(write_log(tmp_path / "old", made_up, old=True), finished=False)
    assert old.ledger == now.ledger
    assert [one.ledger for one in old.batches] == [one.ledger for one in now.batches]
    assert (old.timings, now.timings) == (None, TIMES)
    assert diagnose(old).overhead is None
