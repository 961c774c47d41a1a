"""What a search needs from a language model, whatever serves it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from operators.errors import UserError
from operators.records import Direction, Update


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        temperature: above 0; 0 takes the most probable token.
        top_p: share of the probability kept, in (0, 1].
        top_k: number of most probable tokens kept, at least 1.
        max_new_tokens: limit of a reply, in tokens.
        presence_penalty: in [-2, 2]; taken once from the logit of every token that the reply holds already, before
            anything else is done to it. Tokens of the prompt do not count.
    """

    temperature: float = 0.8
    top_p: float = 0.95
    top_k: int = 50
    max_new_tokens: int = 512
    presence_penalty: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise UserError(f"temperature must be a finite number of at least 0, not {self.temperature}.")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top-p must lie in (0, 1], not {self.top_p}.")
        if self.top_k < 1:
            raise UserError(f"top-k must be at least 1, not {self.top_k}.")
        if self.max_new_tokens < 1:
            raise UserError(f"max-new-tokens must be at least 1, not {self.max_new_tokens}.")
        if not -2 <= self.presence_penalty <= 2:
            raise UserError(f"presence-penalty must lie in [-2, 2], not {self.presence_penalty}.")


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation.

    Attributes:
        role: system, user or assistant.
        text: what was said.
    """

    role: str
    text: str


Prompt = str | tuple[Turn, ...]
"""What a reply answers: one user turn, or a conversation whose last turn is the user's."""


@dataclass(frozen=True)
class Request:
    """One reply to write.

    Attributes:
        prompt: what it answers.
        prefill: beginning of the assistant turn; may be empty.
        seed: 64-bit seed of the reply's own random stream.
        direction: the perturbation to write it under; None for the current weights.
        stop: texts that end the reply, beside those of the model's settings; it does not contain them.
        new_tokens: limit of the reply, in tokens, where that is to be lower than the settings'; None for theirs.
    """

    prompt: Prompt
    prefill: str
    seed: int
    direction: Direction | None = None
    stop: tuple[str, ...] = ()
    new_tokens: int | None = None

    def limit(self, settings: int) -> int:
        """Most tokens of the reply where the model's settings allow so many."""
        return settings if self.new_tokens is None else min(settings, self.new_tokens)


@dataclass(frozen=True)
class Reply:
    """What the model wrote.

    Attributes:
        text: the assistant turn, prefill included.
        prompt_tokens: tokens of the prompt and the prefill.
        new_tokens: tokens drawn.
        truncated: whether the token limit ended it.
    """

    text: str
    prompt_tokens: int
    new_tokens: int
    truncated: bool


class LanguageModel(Protocol):
    """A model that writes replies; its weights can be moved along directions unless somebody else holds them."""

    @property
    def parameters(self) -> int | None:
        """How many weights it has; None when that cannot be known."""
        ...

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """The requests' positions, split into the batches that `generate` takes: the split depends on them alone."""
        ...

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """The replies to one batch, each under its own direction. The weights are as before afterwards."""
        ...

    def probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
        """Numbers that the weights decide, such as logits of one prompt: for the self-test at the start of a run.

        Returns:
            A vector, the same for the same weights. Not read from any cache that outlives a change of the weights.
        """
        ...

    def apply(self, update: Update) -> None:
        """Move the true weights."""
        ...

    def checksum(self) -> str:
        """sha256 of the true weights, the same for every backend; a text without spaces where they cannot be read."""
        ...

    def drift(self) -> float:
        """How far the live weights are from the true ones, root mean square; 0 unless the restore mode drifts."""
        ...

    def save(self, folder: Path, *, float32: bool = False) -> None:
        """Write the weights as a standard checkpoint."""
        ...

    def describe(self) -> dict[str, Any]:
        """What a history must state: model, parameters, scope, dtype, restore mode, memory."""
        ...

    def close(self) -> None:
        """Let go of memory, processes and connections. May be called again."""
        ...
