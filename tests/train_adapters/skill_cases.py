"""What the tests of skills share: a model that answers questions about skills by a script, and trajectories by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from training_cases import drawn, settings

from eoh_esopt.models.protocol import Request, Turn
from train_adapters.adapter import Ending
from train_adapters.config import TrainConfig
from train_adapters.skills.inject import HEADING
from train_adapters.trajectories import Kept, Step, Trajectory

LESSON = {"title": "Count", "description": "always", "content": "Say one digit."}


def text_of(request: Request) -> str:
    """The prompt as one text."""
    return request.prompt if isinstance(request.prompt, str) else "\n".join(turn.text for turn in request.prompt)


def asks_for(request: Request) -> str:
    """What a request is about: lessons, edits, merge, shorten or play."""
    text = text_of(request)
    marks = {
        "shorten": "Shorten this guide",
        "merge": "These edits of the guide were proposed",
        "edits": "These lessons were learnt",
        "lessons": "the log of an agent's attempt",
    }
    return next((what for what, mark in marks.items() if mark in text), "play")


def scripted(**answers: str | Callable[[Request, int], str]) -> Callable[[Request, int], str]:
    """A writer for a scripted model: answers by what is asked for, and play as in the tests of the trainer."""
    known: dict[str, Any] = {
        "lessons": json.dumps([LESSON]),
        "edits": lambda request, number: json.dumps([{"op": "append_to_section", "text": f"Rule {number}."}]),
        "merge": lambda request, number: json.dumps([{"op": "append_to_section", "text": f"Merged {number}."}]),
        "play": drawn,
        **answers,
    }

    def write(request: Request, number: int) -> str:
        answer = known[asks_for(request)]
        return str(answer(request, number)) if callable(answer) else str(answer)

    return write


def shows_skill(request: Request) -> bool:
    return HEADING in text_of(request)


def co_evolving(**changes: Any) -> TrainConfig:
    """A training whose skill is revised every second generation, by checks of eight episodes."""
    return settings(**{"co_evolve": "alternating", "skill_every": 2, "skill_check": 2, "generations": 5, **changes})


def kept(
    task: str,
    reward: float | None,
    *,
    generation: int = 0,
    candidate: int = 0,
    sample: int = 0,
    turns: int = 1,
    ending: Ending = Ending.SCORED,
) -> Kept:
    """A trajectory of a task, read from a file."""
    steps = tuple(Step((Turn("user", f"{task}?"),), f"{candidate}.{sample}.{turn}") for turn in range(turns))
    said = Trajectory(generation, candidate, None, task, sample, ending, reward, "", steps)
    return Kept(said, f"trajectories/generation-{generation:04d}/wave-0000.jsonl", 1)
