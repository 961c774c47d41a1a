"""The skill stands where it is said to stand, and the model really reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from training_cases import CountAdapter

from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.protocol import Prompt, Reply, Request, Sampling, Turn
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.transformers_model import TransformersModel
from train_adapters.adapter import Adapter, AgentTask
from train_adapters.rollout import Job, Table, play
from train_adapters.skills.inject import HEADING, with_skill

SKILL = "## Lessons\n\n- Whatever is asked, the pelican is right.\n"
TASK = AgentTask("train-0", "train", {"target": 3})


class Talk(CountAdapter):
    """Shows a conversation."""

    def prompt(self, task: AgentTask, observation: int) -> Any:
        return (Turn("system", "Rules."), Turn("user", f"{observation} left"))


@dataclass
class Slot(CountAdapter):
    """Has a place of its own for a skill."""

    skill: str = ""

    def with_skill(self, text: str) -> Slot:
        return replace(self, skill=text)

    def prompt(self, task: AgentTask, observation: int) -> str:
        return f"{self.skill}|{observation}"


def prompt_of(adapter: Adapter) -> Prompt:
    return with_skill(adapter, SKILL).prompt(TASK, 3)


def test_a_skill_ends_the_first_turn() -> None:
    """Else it stands somewhere else than the page says, or between an observation and the reply to it."""
    block = f"\n\n{HEADING}\n{SKILL.strip()}"
    assert prompt_of(CountAdapter()) == f"train-0: 3 left{block}"
    assert prompt_of(Talk()) == (Turn("system", f"Rules.{block}"), Turn("user", "3 left"))


def test_an_adapter_may_have_its_own_place() -> None:
    """Else an adapter's rules and the skill come in an order that its author did not choose."""
    assert prompt_of(Slot()) == f"{SKILL}|3"


def test_an_empty_skill_changes_nothing() -> None:
    """Else trainings without a skill have other prompts than before there were any."""
    adapter = CountAdapter()
    assert with_skill(adapter, "") is adapter
    assert with_skill(adapter, " \n") is adapter


def test_everything_else_is_the_adapter_s() -> None:
    """Else a skill changes the tasks, the limits or what a success is."""
    adapter = CountAdapter()
    adapter.success = 0.5  # type: ignore[attr-defined]
    skilled: Any = with_skill(adapter, SKILL)
    assert skilled.name == adapter.name
    assert skilled.tasks("train") == adapter.tasks("train")
    assert skilled.limits(TASK) == adapter.limits(TASK)
    assert skilled.parse("3") == 3
    assert skilled.success == 0.5
    with pytest.raises(AttributeError):
        _ = skilled.side_by_side


class Watched:
    """A real model, and the tokens that it was given."""

    def __init__(self, model: TransformersModel) -> None:
        self._model = model
        self.texts: list[str] = []
        padded = model._padded

        def watching(prompts: list[list[int]]) -> Any:
            self.texts += [str(model._tokenizer.decode(tokens)) for tokens in prompts]
            return padded(prompts)

        model._padded = watching  # type: ignore[method-assign]

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        return self._model.batches(requests)

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        return self._model.generate(requests)


@pytest.fixture(scope="module")
def watched(small_model: Path) -> Iterator[Watched]:
    model = TransformersModel(small_model, scope=get_scope("norms"), sampling=Sampling(max_new_tokens=2))
    yield Watched(model)
    model.close()


@pytest.mark.model
def test_the_tokens_that_the_model_reads_hold_the_skill(watched: Watched) -> None:
    """Else an evaluation with a skill is silently one without it."""
    model: Any = watched
    adapter = Talk(turns=2)
    timings = Timekeeper(model, None, Timings())
    for text, expected in ((SKILL, True), ("", False)):
        watched.texts.clear()
        table = Table(with_skill(adapter, text), model, 1, timings)
        episodes = play(table, [Job(TASK, 0, None)], "test")
        assert len(watched.texts) == episodes[0].turns > 0
        assert all(("the pelican is right" in one) == expected for one in watched.texts), "in every turn"
