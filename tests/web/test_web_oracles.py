"""Every local task, in real Chromium: a script that solves it scores 1, one that nearly solves it scores 0."""

from __future__ import annotations

import pytest
from web_agents import Script, play_all
from web_oracles import ANTI_ORACLES, ORACLES

from train_adapters.adapter import SPLITS, AgentTask
from train_adapters.webarena.adapter import WebAdapter


def every(adapter: WebAdapter) -> list[AgentTask]:
    return [task for split in SPLITS for task in adapter.tasks(split)]


def script_of(steps: object) -> Script:
    return [(one.action, one.target, one.argument) for one in steps]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("scripts", "score"), [(ORACLES, 1.0), (ANTI_ORACLES, 0.0)], ids=["oracle", "anti-oracle"])
def test_scripts_score_what_they_should(local: WebAdapter, scripts: dict[str, object], score: float) -> None:
    """A task that cannot be solved through a browser teaches nothing, one that is given away the wrong thing."""
    tasks = every(local)
    assert len(tasks) >= 40
    assert {task.id for task in tasks} == set(scripts)
    scores = play_all(local, [(task, script_of(scripts[task.id])) for task in tasks])
    assert {name: value for name, value in scores.items() if value != score} == {}
