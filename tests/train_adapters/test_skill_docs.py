"""The environment of docs/skills.md, as a user saves it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.protocol import Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from train_adapters.adapter import Ending
from train_adapters.rollout import Job, Table, play
from train_adapters.tasks import prepared

PAGE = Path(__file__).parents[2] / "docs/skills.md"
ANIMALS = re.compile(r"\b(horse|cat|eagle|frog|rabbit|tiger|goose|whale|spider|sheep|bear|duck)\b")


def knows(request: Request, number: int) -> str:
    """Whoever has read the skill."""
    found = ANIMALS.search(str(request.prompt))
    assert found is not None
    return f" {found[0].title()}."


def is_told(request: Request, number: int) -> str:
    """Whoever has to be told first."""
    return knows(request, number) if "is locked" in str(request.prompt) else "I do not know"


@pytest.mark.parametrize(("agent", "reward", "turns"), [(knows, 1.0, 1), (is_told, 0.25, 2)])
def test_the_environment_of_the_page_pays_for_what_is_known_before(
    tmp_path: Path, agent: Callable[[Request, int], str], reward: float, turns: int
) -> None:
    """Else whoever follows the page has an adapter that does not work, or one that a skill cannot help."""
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "signs.py").write_text(program)
    adapter, by_split = prepared(str(tmp_path / "signs.py"), {})
    model = ScriptedModel(agent)
    table = Table(adapter, model, 1, Timekeeper(model, None, Timings()))
    episodes = play(table, [Job(task, 0, None) for task in by_split["train"]], "train/0")
    assert {(one.ending, one.reward, one.turns) for one in episodes} == {(Ending.SCORED, reward, turns)}
    assert len(episodes) == len(by_split["test"]) == 24
