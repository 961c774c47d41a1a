"""What the tests of the baseline share: an adapter whose rewards spread with any model, and tiny settings."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from train_adapters.config import TrainConfig
from train_adapters.grpo.config import GrpoConfig
from train_adapters.presets import TrainPreset, config_of

TALK = '''"""Two turns a task; the reward grows with the number of some letters in the replies."""

from train_adapters.adapter import AgentTask, Limits


class Talk:
    def __init__(self):
        self.said = []

    async def reset(self):
        self.said = []

    def observe(self):
        return self.said

    async def step(self, action):
        self.said.append(action)

    @property
    def done(self):
        return len(self.said) == 2

    @property
    def reward(self):
        return sum(letter in "aehost" for one in self.said for letter in one.lower()) / 40

    async def close(self):
        pass


class Talker:
    name = "talk"

    def tasks(self, split):
        words = {"train": ("tree", "sea", "day"), "val": ("bee",), "test": ("key",)}[split]
        return [AgentTask(word, split, {"word": word}, 2) for word in words]

    def limits(self, task):
        return Limits(turns=2, new_tokens=6)

    def environment(self, task):
        return Talk()

    def prompt(self, task, observation):
        return f"Say {task.payload['word']}." + " Again." * len(observation)

    def parse(self, reply):
        return reply

    async def score(self, task, environment):
        return environment.reward


def make_adapter():
    return Talker()
'''

SETTINGS: dict[str, Any] = {
    "seed": 3,
    "generations": 2,
    "directions": 3,
    "batch": 2,
    "scope": "norms",
    "dtype": "float32",
    "evaluate_every": 0,
    "final_repeats": 1,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 50,
}
BASELINE: dict[str, Any] = {"prompts": 2, "group": 3, "learning_rate": 1e-4, "pass_rows": 5}


def talk(folder: Path) -> Path:
    """The adapter's file."""
    file = folder / "talk.py"
    file.write_text(TALK)
    return file


def training(adapter: Path, model: Path, **changes: Any) -> TrainConfig:
    """A training of 12 episodes."""
    return config_of(str(adapter), [TrainPreset({**SETTINGS, "model": str(model), **changes})])


def baseline(**changes: Any) -> GrpoConfig:
    """A baseline of 6 episodes a step."""
    return GrpoConfig(**{**BASELINE, **changes})


def import_trl() -> None:
    """Import trl where it does not take the folder tests/vllm, which pytest puts on the path, for that package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [one for one in sys.path if Path(one) != Path(__file__).parents[1]])
        importlib.import_module("trl.trainer.grpo_trainer")
