"""A probe from end to end with a scripted model: what it asks for, how it judges, what its file saves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.experiments import probe
from eoh_esopt.experiments.probe import Design, grid, measure, measure_with
from eoh_esopt.experiments.probe_advice import advise
from eoh_esopt.experiments.probe_record import Measurement, read_measurement
from eoh_esopt.models.protocol import Request
from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from problems.tsp_construct import TASK

SMALL_TSP = ProblemSpec("problems.tsp_construct:TspConstruct", {"n_instances": 2, "size": 8})
SMALL = 135_000_000
HEAD = "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):\n"
DESIGN = Design((0.03, 0.06), pairs=6, samples=2)
CONFIG = RunConfig("tsp_construct", "scripted", scope="norms", budget=100, directions=4, samples_per_direction=2)


def program(body: str) -> str:
    return f"```python\nimport numpy as np\n\n{HEAD}    {body}\n```\n"


BROKEN = program("return unknown_name")
COPY = f"```python\n{TASK.seeds[0].code}\n```\n"
NEW = program("return unvisited_nodes[-1]")


def slope(request: Request) -> float:
    """Each direction has a slope of its own, between -1 and 1; the mirror has its negative."""
    if request.direction is None:
        return 0.0
    digest = hashlib.blake2b(str(request.direction.seed).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") / 2**63 - 1) * request.direction.sigma


def by_direction(request: Request, number: int) -> str:
    """The steeper the slope, the more replies are valid."""
    return COPY if (number % 1000) / 1000 < 0.5 + 8 * slope(request) else BROKEN


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(SMALL_TSP, workers=2, limits=Limits(wall_s=10)) as two:
        yield two


def run_probe(
    evaluator: Evaluator,
    model: ScriptedModel,
    out: Path | None = None,
    design: Design = DESIGN,
    config: RunConfig = CONFIG,
) -> Measurement:
    empty = Measurement(config.resolved(SMALL), design.pairs, design.samples, {})
    return measure_with(empty, design, TASK, model, evaluator, out, lambda text: None, lambda count: None)


def test_directions_are_mirrored_and_the_same_at_every_sigma(evaluator: Evaluator) -> None:
    """Else slopes of different directions are mixed, and curvature is taken for signal."""
    model = ScriptedModel(by_direction)
    run_probe(evaluator, model)
    cells = [model.requests[start : start + 24] for start in range(0, 144, 24)]
    assert len(model.requests) == 144
    assert all(one.direction is None for cell in cells[:2] for one in cell)
    seeds = [one.direction.seed for one in cells[2] if one.direction]
    for cell, sigma in zip(cells[2:], (0.03, 0.03, 0.06, 0.06), strict=True):
        directions = [one.direction for one in cell if one.direction]
        assert [one.seed for one in directions] == seeds
        assert [one.sigma for one in directions[:4]] == [sigma, sigma, -sigma, -sigma]
    assert len(set(seeds)) == 6
    assert len({one.seed for one in model.requests}) == 144
    assert model.updates == []


def test_a_signal_that_is_there_is_found(evaluator: Evaluator) -> None:
    """Else a run that would learn is not begun."""
    found = run_probe(evaluator, ScriptedModel(by_direction), design=Design((0.03, 0.06), pairs=24, samples=4))
    advice = advise(found, (0.03, 0.06), 5)
    assert advice.as_planned.reward.low > 0
    assert advice.as_planned.valid.gain > 0
    assert advice.recommended is not None


def test_without_a_signal_nothing_is_promised(evaluator: Evaluator) -> None:
    """Else every model seems to learn."""
    coin = ScriptedModel(lambda request, number: COPY if number % 2 else BROKEN)
    found = run_probe(evaluator, coin, design=Design((0.03, 0.06), pairs=24, samples=4))
    assert advise(found, (0.03, 0.06), 3).as_planned.reward.low <= 0


def rewards(evaluator: Evaluator, text: str) -> set[float]:
    found = run_probe(
        evaluator, ScriptedModel(lambda request, number: text), design=Design((0.05,), pairs=2, samples=1)
    )
    return {round(7 * float(one)) for cell in found.cells for one in cell.rewards.ravel()}


def test_candidates_climb_the_ladder_as_in_a_first_generation(evaluator: Evaluator) -> None:
    """Else the probe's rewards are others than the run's: a copy of a seed heuristic is valid but not new."""
    assert rewards(evaluator, "no program here") == {0}
    assert rewards(evaluator, BROKEN) == {3}
    assert rewards(evaluator, COPY) == {5}
    assert rewards(evaluator, NEW) <= {6, 7}  # each direction that writes it gets the credit, in every cell


def test_nothing_valid_and_the_papers_reward(evaluator: Evaluator) -> None:
    """Else a model that cannot write the function ends in a traceback or a promise."""
    config = replace(CONFIG, reward="paper")
    found = run_probe(evaluator, ScriptedModel(lambda request, number: BROKEN), config=config)
    assert all(cell.no_signal and np.isnan(cell.rewards).all() for cell in found.cells)
    assert advise(found, DESIGN.sigmas, 3).as_planned.reward_seen.verdict == "not visible"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch, evaluator: Evaluator) -> list[ScriptedModel]:
    """Put scripted models for real ones, and one sandbox for all; the list holds the models that were loaded."""
    models: list[ScriptedModel] = []

    @contextmanager
    def loaded(config: RunConfig, notify: Callable[[str], None]) -> Iterator[tuple[ScriptedModel, RunConfig]]:
        models.append(ScriptedModel(by_direction))
        yield models[-1], config.resolved(SMALL)

    monkeypatch.setattr(probe, "loaded", loaded)
    monkeypatch.setattr(probe, "Evaluator", lambda *args, **named: nullcontext(evaluator))
    monkeypatch.setattr(ProblemSpec, "named", lambda *args, **named: SMALL_TSP)
    return models


def call(out: Path, config: RunConfig = CONFIG, design: Design = DESIGN) -> tuple[Measurement, int]:
    """The measurement, and how many candidates the progress was told of."""
    counts: list[int] = []
    found = measure(config, design, out, workers=2, notify=lambda text: None, advance=counts.append)
    return found, sum(counts)


def test_what_the_file_holds_is_not_written_again(loads: list[ScriptedModel], tmp_path: Path) -> None:
    """Else every look at another budget costs the whole probe."""
    first, _ = call(tmp_path / "probe.json")
    again, count = call(tmp_path / "probe.json", replace(CONFIG, budget=999, alpha=0.1))
    assert len(loads) == 1
    assert count == 144
    assert (again.config.budget, again.config.alpha, again.config.reward) == (999, 0.1, "graded")
    for one, other in zip(first.cells, again.cells, strict=True):
        np.testing.assert_array_equal(one.rewards, other.rewards)
        np.testing.assert_array_equal(one.valid, other.valid)


def test_a_probe_that_was_cut_short_goes_on_to_the_same_end(loads: list[ScriptedModel], tmp_path: Path) -> None:
    """Else a kill costs everything, or the second half measures other directions."""
    whole, _ = call(tmp_path / "whole.json")
    call(tmp_path / "part.json", design=replace(DESIGN, sigmas=(0.03,)))
    joined, count = call(tmp_path / "part.json")
    assert count == 144
    assert len(loads[2].requests) == 48
    for one, other in zip(whole.cells, joined.cells, strict=True):
        assert (one.operator, one.sigma) == (other.operator, other.sigma)
        np.testing.assert_array_equal(one.rewards, other.rewards)
    assert len(read_measurement(tmp_path / "part.json").cells) == 6


@pytest.mark.parametrize(("name", "value"), [("seed", 7), ("problem", "kp_construct"), ("reward", "ordered")])
def test_another_measurement_is_refused(loads: list[ScriptedModel], tmp_path: Path, name: str, value: object) -> None:
    """Else figures of two models or problems end up in one answer."""
    call(tmp_path / "probe.json")
    with pytest.raises(UserError, match=rf"measured with {name} .* give another --out"):
        call(tmp_path / "probe.json", replace(CONFIG, **{name: value}))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="pairs 6, and 5 is asked for"):
        call(tmp_path / "probe.json", design=replace(DESIGN, pairs=5))


def test_other_weights_are_refused(loads: list[ScriptedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a model that was trained in between is mixed with what it was."""
    call(tmp_path / "probe.json", design=replace(DESIGN, sigmas=(0.03,)))
    monkeypatch.setattr(ScriptedModel, "checksum", lambda self: "f" * 64)
    with pytest.raises(UserError, match="but the model has ffffffffffff now"):
        call(tmp_path / "probe.json")


@pytest.mark.parametrize("text", ["", "{}", '{"format": "something else"}', "[1]"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    """Else a user's file is overwritten, or a traceback ends the probe."""
    (tmp_path / "probe.json").write_text(text)
    with pytest.raises(UserError, match="holds no measurement of a probe"):
        call(tmp_path / "probe.json")
    assert (tmp_path / "probe.json").read_text() == text


def test_frozen_methods_and_empty_designs_are_refused(tmp_path: Path) -> None:
    """Else minutes are spent on a question without an answer."""
    with pytest.raises(UserError, match="Use esopt-eoh"):
        call(tmp_path / "probe.json", replace(CONFIG, method="eoh"))
    for sigmas, pairs, samples in (((), 4, 1), ((0.0,), 4, 1), ((0.1,), 1, 1), ((0.1,), 4, 0)):
        with pytest.raises(UserError):
            Design(sigmas, pairs, samples)


def test_the_grid_is_around_the_sigma_of_the_run() -> None:
    """Else the sigma that is planned is not measured."""
    assert grid(CONFIG) == pytest.approx((0.03, 0.06, 0.12))
    assert grid(replace(CONFIG, sigma=0.01)) == pytest.approx((0.005, 0.01, 0.02))
