"""What is said in the episodes of a training is kept, whole and exactly, and only where that is asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from training_cases import CountAdapter, OneDirection, drawn, episodes_of, of_kind, settings, train, truncate_log

from eoh_esopt.engine.events import read_events
from eoh_esopt.models.protocol import Turn
from operators.errors import UserError
from train_adapters.adapter import AgentTask, Ending
from train_adapters.trajectories import FOLDER, news, read_trajectories, wave_file

SYSTEM, ASKED, MORE = Turn("system", "Rules."), Turn("user", "1 + 1?"), Turn("user", "Observation: 2")
SAID = Turn("assistant", "2")


def test_nothing_is_kept_unless_it_is_asked_for(tmp_path: Path) -> None:
    """Else every training fills the disk with what nobody reads."""
    train(tmp_path / "run")
    assert not (tmp_path / "run" / FOLDER).exists()
    with pytest.raises(UserError, match=r"holds no trajectories.*--trajectories"):
        read_trajectories(tmp_path / "run")


def test_trajectories_tell_what_the_log_counts(tmp_path: Path) -> None:
    """Else a skill is learnt from other episodes than the weights."""
    config = settings(trajectories=True)
    model = OneDirection(drawn)
    plain = train(tmp_path / "plain")
    summary = train(tmp_path / "run", config, model)
    assert summary["weights_after"] == plain["weights_after"], "keeping them changes nothing"
    kept = read_trajectories(tmp_path / "run")
    assert len(kept) == summary["ledger"]["episodes"], "and no evaluation among them"
    for generation in range(3):
        episodes = episodes_of(tmp_path / "run", f"train/{generation}")
        said = [one.trajectory for one in kept if one.trajectory.generation == generation]
        assert [(one.task, one.sample, one.reward, one.ending) for one in said] == [
            (one.task, one.sample, one.reward, one.ending) for one in episodes
        ]
        assert [len(one.steps) for one in said] == [one.turns for one in episodes]
        assert [one.candidate for one in said] == [number // 4 for number in range(16)]
    shown = [turn.text for one in kept for step in one.trajectory.steps for turn in step.shown]
    asked = [request.prompt for request in model.requests if request.direction is not None]
    assert sorted(shown) == sorted(asked)
    [first, *_] = kept
    assert (first.file, first.line) == (wave_file(0, 0), 1)
    assert first.trajectory.direction is not None


def test_an_episode_that_is_begun_anew_is_kept_once(tmp_path: Path) -> None:
    """Else the turns of an attempt that our failure ended stand before those that were scored."""

    def fail_once(task: AgentTask, moment: str, count: int) -> None:
        if task.id == "train-1" and (moment, count) == ("step", 2):
            raise ConnectionError("the browser is gone")

    train(tmp_path / "run", settings(trajectories=True), adapter=CountAdapter(fails=fail_once))
    episodes = episodes_of(tmp_path / "run", "train/0")
    said = [one.trajectory for one in read_trajectories(tmp_path / "run", [0])]
    assert [len(one.steps) for one in said] == [one.turns for one in episodes]


def test_failures_of_ours_are_kept_and_named(tmp_path: Path) -> None:
    """Else nobody can see what had been said when an environment broke down."""

    def fail(task: AgentTask, moment: str, count: int) -> None:
        if task.id == "train-1" and moment == "step":
            raise ConnectionError("the browser is gone")

    train(tmp_path / "run", settings(trajectories=True), adapter=CountAdapter(fails=fail))
    lost = [one.trajectory for one in read_trajectories(tmp_path / "run") if not one.trajectory.ending.counts]
    assert {(one.task, one.ending, one.reward) for one in lost} == {("train-1", Ending.INFRA_FAILED, None)}
    assert all("the browser is gone" in one.reason for one in lost)


@pytest.mark.parametrize("lines", [3, 5, 9])
def test_a_resumed_training_keeps_the_same(tmp_path: Path, lines: int) -> None:
    """Else a skill that is learnt after a power cut is learnt from fewer episodes."""
    config = settings(trajectories=True)
    train(tmp_path / "whole", config, OneDirection(drawn))
    truncate_log(tmp_path / "whole", tmp_path / "run", lines)
    logged = {(event["place"], event["wave"]) for event in of_kind(tmp_path / "run", "episodes")}
    for path in (tmp_path / "whole" / FOLDER).rglob("*.jsonl"):
        generation, wave = int(path.parent.name.split("-")[1]), int(path.stem.split("-")[1])
        if (f"train/{generation}", wave) in logged:
            copy = tmp_path / "run" / wave_file(generation, wave)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    train(tmp_path / "run", config, OneDirection(drawn))
    assert read_trajectories(tmp_path / "run") == read_trajectories(tmp_path / "whole")
    assert len(read_events(tmp_path / "run")) == len(read_events(tmp_path / "whole")) + 1


NEWS = {
    "the first turn": ((SYSTEM, ASKED), None, "", (SYSTEM, ASKED)),
    "an observation": ((SYSTEM, ASKED, SAID, MORE), (SYSTEM, ASKED), "2", (MORE,)),
    "a reply that was shortened": ((SYSTEM, ASKED, SAID, MORE), (SYSTEM, ASKED), "2 and more", (SAID, MORE)),
    "a text, written anew": ("Board.", "Board.", "2", (Turn("user", "Board."),)),
}


@pytest.mark.parametrize(("prompt", "before", "reply", "expected"), NEWS.values(), ids=NEWS)
def test_only_what_is_new_is_kept(prompt, before, reply, expected) -> None:  # type: ignore[no-untyped-def]
    """Else a conversation of fifty turns is kept fifty times, or a turn is lost."""
    assert news(prompt, before, reply) == expected


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """Else half a file passes for all that was played."""
    train(tmp_path / "run", settings(trajectories=True))
    path = tmp_path / "run" / wave_file(1, 0)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(UserError, match=r"wave-0000\.jsonl is damaged"):
        read_trajectories(tmp_path / "run")
