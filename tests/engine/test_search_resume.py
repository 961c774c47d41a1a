"""A search that was stopped anywhere and taken up again ends as if it had never been stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import (
    Failing,
    ScriptedModel,
    canonical,
    dump,
    heuristic,
    of_kind,
    run_search,
    settings,
    truncate_log,
)

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import BEST, EVENTS, HISTORY, read_events
from eoh_esopt.sandbox.evaluator import Evaluator
from operators.errors import UserError
from operators.records import Update
from problems.tsp_construct import TASK

METHODS = {
    "a batch for all rows": (settings(), True, 0),
    "a batch a direction": (settings(samples_per_direction=2, directions=2), False, 0),
    "co-evolution": (settings(co_evolve=True, budget=26), True, 0),
    "sampling": (settings(method="esopt-sample", budget=7), True, 0),
    "lost evaluations": (settings(method="esopt-sample", budget=12, directions=6, seed=2), True, 3),
}


@pytest.mark.parametrize("torn", [False, True], ids=["whole line", "torn line"])
@pytest.mark.parametrize(("config", "per_row", "loses"), METHODS.values(), ids=METHODS)
def test_stopping_after_any_event_changes_nothing(
    tmp_path: Path, evaluator: Evaluator, config: RunConfig, per_row: bool, loses: int, torn: bool
) -> None:
    """Else a killed run loses or repeats work, or ends in other weights than its history gives."""
    seeds = [seed.code for seed in TASK.seeds]
    flaky = Failing(evaluator, lambda code: bool(loses) and code not in seeds and sum(code.encode()) % loses == 0)
    model = ScriptedModel(per_row=per_row)
    whole = run_search(tmp_path / "whole", flaky, config, model)
    assert bool(loses) == any(one["status"] == "infrastructure" for one in of_kind(tmp_path / "whole", "outcome"))
    assert whole.ledger.updates > 0
    events = read_events(tmp_path / "whole")
    for count in range(len(events) + 1):
        folder = tmp_path / f"after-{count}"
        truncate_log(tmp_path / "whole", folder, count, torn=torn)
        fresh = ScriptedModel(per_row=per_row)
        resumed = run_search(folder, flaky, config, fresh)
        assert dump(resumed) == dump(whole), f"stopped after event {count}"
        assert fresh.checksum() == model.checksum()
        assert canonical(read_events(folder)) == canonical(events) or loses, "what was lost is run once more"
        assert (folder / HISTORY).read_text() == (tmp_path / "whole" / HISTORY).read_text()
        known = sum(len(event["candidates"]) for event in events[:count] if event["event"] == "replies")
        assert len(fresh.requests) == len(model.requests) - known, "what the log holds is not written again"


def test_stopping_twice_changes_nothing(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else a run can be resumed once, and not a second time."""
    whole = run_search(tmp_path / "whole", evaluator)
    count = len(read_events(tmp_path / "whole"))
    truncate_log(tmp_path / "whole", tmp_path / "once", count // 3)
    run_search(tmp_path / "once", evaluator)
    truncate_log(tmp_path / "once", tmp_path / "twice", 2 * count // 3, torn=True)
    assert dump(run_search(tmp_path / "twice", evaluator)) == dump(whole)


def test_a_history_never_goes_back(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else a resumed run that is stopped again while it catches up leaves an older history than it found."""
    run_search(tmp_path / "run", evaluator)
    before = (tmp_path / "run" / HISTORY).read_text()
    (tmp_path / "run" / HISTORY).write_text("marked")
    updates = of_kind(tmp_path / "run", "update")
    assert len(updates) > 1

    class Stopped(ScriptedModel):
        def apply(self, update: Update) -> None:
            if self.updates:
                raise KeyboardInterrupt
            super().apply(update)

    stopped = Stopped()
    with pytest.raises(KeyboardInterrupt):
        run_search(tmp_path / "run", evaluator, model=stopped)
    assert (tmp_path / "run" / HISTORY).read_text() == "marked"
    run_search(tmp_path / "run", evaluator)
    assert (tmp_path / "run" / HISTORY).read_text() == before


def test_a_finished_log_asks_neither_model_nor_sandbox(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else resuming a run that is over writes and runs candidates beyond its budget."""
    run_search(tmp_path / "run", evaluator)
    before = (tmp_path / "run" / EVENTS).read_text()
    best = (tmp_path / "run" / BEST).read_text()
    watched = Failing(evaluator, lambda code: False)
    model = ScriptedModel()
    run_search(tmp_path / "run", watched, model=model)
    assert (model.requests, watched.seen) == ([], [])
    assert (tmp_path / "run" / EVENTS).read_text() == before
    assert (tmp_path / "run" / BEST).read_text() == best


def test_our_failures_are_tried_again(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else a machine that was mended before resuming still costs the candidates that it lost."""
    whole = run_search(tmp_path / "whole", evaluator)
    seeds = [seed.code for seed in TASK.seeds]
    lost: list[str] = []

    def lose(code: str) -> bool:
        lost.extend([code] * (code not in seeds))
        return code not in seeds

    with pytest.raises(UserError, match="failed on all"):
        run_search(tmp_path / "run", Failing(evaluator, lose))
    assert lost
    statuses = [event["status"] for event in of_kind(tmp_path / "run", "outcome")]
    assert "infrastructure" in statuses
    assert dump(run_search(tmp_path / "run", evaluator)) == dump(whole)


@pytest.mark.parametrize("method", ["esopt-eoh", "esopt-sample"])
def test_the_log_of_another_seed_is_refused(tmp_path: Path, evaluator: Evaluator, method: str) -> None:
    """Else replies are credited to directions that they were not written under."""
    run_search(tmp_path / "run", evaluator, settings(method=method, seed=1))
    with pytest.raises(UserError, match=r"another prompt or direction.*begin a new one"):
        run_search(tmp_path / "run", evaluator, settings(method=method, seed=2))


def test_the_log_of_another_reward_is_refused(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the weights are moved by updates that the log does not hold."""
    model = ScriptedModel(lambda request, weights: heuristic(request.seed % 1000 / 1000))
    run_search(tmp_path / "run", evaluator, settings(directions=6, budget=30), model)
    with pytest.raises(UserError, match=r"update \d+ is not the one"):
        run_search(tmp_path / "run", evaluator, settings(directions=6, budget=30, reward="ordered"))
