"""How long an episode may be, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from operators.errors import UserError


@dataclass(frozen=True)
class ReactLimits:
    """Caps on one episode.

    Attributes:
        turns: replies, at least 1.
        new_tokens: tokens of one reply, at least 1.
        context_tokens: of a prompt and the reply that is reserved for it.
        total_tokens: written by the model and shown to it by the tool, together; None for no cap.

    Raises:
        UserError: a cap is too small for one reply.
    """

    turns: int = 50
    new_tokens: int = 4_096
    context_tokens: int = 131_072
    total_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("turns", "new_tokens"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.context_tokens <= self.new_tokens:
            raise UserError(
                f"context_tokens must be more than new_tokens ({self.new_tokens}), not {self.context_tokens}."
            )
        if self.total_tokens is not None and self.total_tokens < self.new_tokens:
            raise UserError(f"total_tokens must be at least new_tokens ({self.new_tokens}), not {self.total_tokens}.")


class ReactEnding(str, Enum):
    """How an episode ended. All but `ANSWERED` are recorded as the agent's failure, with this as the reason."""

    ANSWERED = "answered"
    """A final answer, after at least one call of the tool."""
    TURNS_SPENT = "turns spent"
    CONTEXT_FULL = "context full"
    """The next prompt with its reserved reply would not fit."""
    TOKENS_SPENT = "tokens spent"
