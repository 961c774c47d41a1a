"""A hidden number is to be found by guessing: the smallest environment in which an agent has to keep to a form.

Each turn states the interval that is left and an example of a guess, its middle; only a reply of digits alone is a
guess. A model that answers in this form and copies the example finds any number by halving. What a small chat
model has to learn is to say so little, turn after turn: one that keeps to the form in four of ten turns hardly ever
comes to the end.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from operators.errors import UserError
from train_adapters.adapter import SPLITS, AgentTask, Environment, Limits

_GUESS = re.compile(r"\s*([0-9]{1,9})\.?\s*")
_NEW_TOKENS = 6


class Game:
    """One hidden number.

    Args:
        hidden: the number.
        highest: of all that it could be; the lowest is 1.
    """

    def __init__(self, hidden: int, highest: int) -> None:
        self._hidden, self._low, self._high = hidden, 1, highest
        self._found = False

    async def reset(self) -> None:
        """Nothing to get ready."""

    def observe(self) -> tuple[int, int]:
        """The interval that the number lies in, both ends included."""
        return self._low, self._high

    async def step(self, action: int | None) -> None:
        """Guess; without one the turn is spent."""
        if action is None:
            return
        self._found = action == self._hidden
        if action < self._hidden:
            self._low = max(self._low, action + 1)
        elif action > self._hidden:
            self._high = min(self._high, action - 1)

    @property
    def done(self) -> bool:
        """Whether the number was found."""
        return self._found

    @property
    def reward(self) -> float:
        """1 once the number was found, else 0."""
        return float(self._found)

    async def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True)
class GuessAdapter:
    """Numbers from 1 to `highest`, a third of them in each split.

    Attributes:
        highest: number, at least 3.
        turns: most guesses of an episode.
        seed: of the split.
    """

    highest: int
    turns: int
    seed: int
    name: str = "guess"

    def tasks(self, split: str) -> Sequence[AgentTask]:
        """See `Adapter`."""
        numbers = list(range(1, self.highest + 1))
        random.Random(self.seed).shuffle(numbers)
        return [
            AgentTask(f"{split}-{number}", split, {"hidden": number, "highest": self.highest}, minimum_horizon=1)
            for number in numbers[SPLITS.index(split) :: len(SPLITS)]
        ]

    def limits(self, task: AgentTask) -> Limits:
        """See `Adapter`."""
        return Limits(turns=self.turns, new_tokens=_NEW_TOKENS)

    def environment(self, task: AgentTask) -> Environment:
        """See `Adapter`."""
        return Game(task.payload["hidden"], task.payload["highest"])

    def prompt(self, task: AgentTask, observation: tuple[int, int]) -> str:
        """See `Adapter`."""
        low, high = observation
        return (
            f"A whole number from {low} to {high} is hidden. Guess it. "
            f"Answer with digits only, such as {(low + high) // 2}."
        )

    def parse(self, reply: str) -> int | None:
        """Digits and nothing else, but for a full stop."""
        found = _GUESS.fullmatch(reply)
        return int(found[1]) if found else None

    async def score(self, task: AgentTask, environment: Environment) -> float:
        """See `Adapter`."""
        return environment.reward


def make_adapter(highest: int = 48, turns: int = 10, seed: int = 1) -> GuessAdapter:
    """The adapter from its settings, see `GuessAdapter`.

    Raises:
        UserError: a setting is out of range.
    """
    if highest < len(SPLITS):
        raise UserError(f"highest must be at least {len(SPLITS)}, one number for each split, not {highest}.")
    if turns < 1:
        raise UserError(f"turns must be at least 1, not {turns}.")
    return GuessAdapter(highest, turns, seed)
