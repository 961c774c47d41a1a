"""A training that was stopped anywhere and taken up again ends as if it had never been stopped."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from training_cases import (
    CountAdapter,
    OneDirection,
    canonical,
    drawn,
    of_kind,
    settings,
    train,
    truncate_log,
)

from eoh_esopt.engine.events import EVENTS, HISTORY, SUMMARY, read_events
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from operators.records import Update
from train_adapters.adapter import AgentTask


def lose_a_task(task: AgentTask, moment: str, count: int) -> None:
    if task.id == "train-1" and moment == "step":
        raise ConnectionError("the browser is gone")


CASES: dict[str, tuple[dict[str, Any], type[ScriptedModel], bool]] = {
    "a batch for all rows": ({}, ScriptedModel, False),
    "a batch a direction": ({"directions": 3}, OneDirection, False),
    "pairs, momentum and tasks": ({"antithetic": True, "momentum": 0.5, "over_tasks": True}, OneDirection, False),
    "lost episodes": ({}, OneDirection, True),
}


@pytest.mark.parametrize("torn", [False, True], ids=["whole line", "torn line"])
@pytest.mark.parametrize(("changes", "kind", "loses"), CASES.values(), ids=CASES)
def test_stopping_after_any_event_changes_nothing(
    tmp_path: Path, changes: dict[str, Any], kind: type[ScriptedModel], loses: bool, torn: bool
) -> None:
    """Else a killed training loses or repeats work, or ends in other weights than its history gives."""
    config, model = settings(**changes), kind(drawn)

    def adapter() -> CountAdapter:
        return CountAdapter(fails=lose_a_task) if loses else CountAdapter()

    whole = train(tmp_path / "whole", config, model, adapter())
    assert whole["ledger"]["updates"] > 0
    events = read_events(tmp_path / "whole")
    assert loses == any("infra_failed" in event["endings"] for event in of_kind(tmp_path / "whole", "generation"))
    for count in range(len(events) + 1):
        folder = tmp_path / f"after-{count}"
        truncate_log(tmp_path / "whole", folder, count, torn=torn)
        fresh = kind(drawn)
        resumed = train(folder, config, fresh, adapter())
        note = f"stopped after event {count}"
        for name in ("weights_after", "ledger", "evaluations"):
            assert resumed[name] == whole[name], note
        assert (folder / HISTORY).read_text() == (tmp_path / "whole" / HISTORY).read_text(), note
        if not loses:  # what was lost is played once more
            kept = [event for event in read_events(folder) if event["event"] != "resume"]
            assert canonical(kept)[: len(events)] == canonical(events), note
            waves = [event["episodes"] for event in events[:count] if event["event"] == "episodes"]
            known = [one["turns"] for wave in waves for one in wave]
            assert len(fresh.requests) == len(model.requests) - sum(known), note


def test_stopping_twice_changes_nothing(tmp_path: Path) -> None:
    """Else a training can be resumed once, and not a second time."""
    whole = train(tmp_path / "whole")
    count = len(read_events(tmp_path / "whole"))
    truncate_log(tmp_path / "whole", tmp_path / "once", count // 3)
    train(tmp_path / "once")
    truncate_log(tmp_path / "once", tmp_path / "twice", 2 * count // 3, torn=True)
    assert train(tmp_path / "twice")["evaluations"] == whole["evaluations"]
    assert (tmp_path / "twice" / HISTORY).read_text() == (tmp_path / "whole" / HISTORY).read_text()


def test_a_history_never_goes_back(tmp_path: Path) -> None:
    """Else a resumed training that is stopped while it catches up leaves an older history than it found."""
    train(tmp_path / "run")
    before = (tmp_path / "run" / HISTORY).read_text()
    (tmp_path / "run" / HISTORY).write_text("marked")
    assert len(of_kind(tmp_path / "run", "update")) > 1

    class Stopped(ScriptedModel):
        def apply(self, update: Update) -> None:
            if self.updates:
                raise KeyboardInterrupt
            super().apply(update)

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", model=Stopped(drawn))
    assert (tmp_path / "run" / HISTORY).read_text() == "marked"
    train(tmp_path / "run")
    assert (tmp_path / "run" / HISTORY).read_text() == before


def test_failures_that_nothing_rests_on_are_tried_again(tmp_path: Path) -> None:
    """Else an environment that was mended before resuming still costs the episodes that it lost."""
    whole = train(tmp_path / "whole")

    def broken(task: AgentTask, moment: str, count: int) -> None:
        if task.split == "train" and moment == "reset":
            raise ConnectionError("the site is down")

    with pytest.raises(UserError, match=r"All 16 episodes of generation 1 failed.*the site is down.*train --resume"):
        train(tmp_path / "run", adapter=CountAdapter(fails=broken))
    assert of_kind(tmp_path / "run", "skip") == []
    assert train(tmp_path / "run")["evaluations"] == whole["evaluations"]
    assert (tmp_path / "run" / HISTORY).read_text() == (tmp_path / "whole" / HISTORY).read_text()


@pytest.mark.parametrize("changes", [{"seed": 2}, {"directions": 6}, {"batch": 1}])
def test_the_log_of_another_training_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Else episodes are credited to directions that they were not played under."""
    train(tmp_path / "run")
    with pytest.raises(UserError, match=r"other tasks or directions.*begin a new one"):
        train(tmp_path / "run", settings(**changes))


def test_the_log_of_other_rewards_is_refused(tmp_path: Path) -> None:
    """Else the weights are moved by updates that the log does not hold."""
    train(tmp_path / "run")
    with pytest.raises(UserError, match=r"update \d+ is not the one"):
        train(tmp_path / "run", settings(shaping="centred-rank"))


def test_a_finished_training_has_all_its_files(tmp_path: Path) -> None:
    """Else a run that is called finished has no summary or no final checksum to check a replay by."""
    summary = train(tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {EVENTS, HISTORY, SUMMARY}
    assert summary["weights_after"] in (tmp_path / "run" / HISTORY).read_text()
    assert [event["event"] for event in read_events(tmp_path / "run")][-1] == "end"


@pytest.mark.parametrize("at", [1, 4, 7])
def test_a_full_disk_is_an_error_that_a_training_gets_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Else a full disk ends in a traceback, or costs the training."""
    whole = train(tmp_path / "whole")
    calls = 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(UserError, match=r"No space left on device.*[Mm]ake room"):
            train(tmp_path / "run")
    assert train(tmp_path / "run")["weights_after"] == whole["weights_after"]
    assert (tmp_path / "run" / HISTORY).read_text() == (tmp_path / "whole" / HISTORY).read_text()


def test_a_full_disk_names_the_command_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a user is told to resume a search."""

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=rf"eoh-esopt train --resume {tmp_path / 'run'}"):
        train(tmp_path / "run")
