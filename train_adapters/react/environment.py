"""One episode of the loop: the conversation so far, the tool, and what ends it."""

from __future__ import annotations

from dataclasses import dataclass

from eoh_esopt.models.protocol import Reply, Turn
from train_adapters.adapter import AgentFailed
from train_adapters.react import rules
from train_adapters.react.actions import SHELL, Call
from train_adapters.react.limits import ReactEnding, ReactLimits
from train_adapters.react.moves import Final, Move, said
from train_adapters.tools import Box


@dataclass(frozen=True)
class Transcript:
    """An episode, for its scorer.

    Attributes:
        turns: the conversation, system turn first; the model's without its reasoning.
        ending: how it ended; None while it goes on.
        tool_calls: commands that were run.
        answer: text of the final answer; None where there is none.
        last_reply: what the model said last; empty where it said nothing.
    """

    turns: tuple[Turn, ...]
    ending: ReactEnding | None
    tool_calls: int
    answer: str | None
    last_reply: str


class ReactEnvironment:
    """One episode.

    Args:
        opening: the turns that it begins with.
        box: the tool.
        limits: of the episode.
    """

    def __init__(self, opening: tuple[Turn, ...], box: Box, limits: ReactLimits) -> None:
        self._opening = opening
        self._box = box
        self._limits = limits
        self._begin()

    def _begin(self) -> None:
        self._turns = list(self._opening)
        self._ending: ReactEnding | None = None
        self._answer: str | None = None
        self._reply: Reply | None = None
        self._replies = self._tool_calls = self._written = self._observed = 0

    @property
    def transcript(self) -> Transcript:
        """The episode as it stands."""
        last = next((turn.text for turn in reversed(self._turns) if turn.role == "assistant"), "")
        return Transcript(tuple(self._turns), self._ending, self._tool_calls, self._answer, last)

    async def reset(self) -> None:
        self._begin()

    def observe(self) -> tuple[Turn, ...]:
        return tuple(self._turns)

    def heard(self, reply: Reply) -> None:
        """Take the reply that the next step acts on into the conversation.

        Raises:
            AgentFailed: there was no room for a reply.
        """
        if reply.truncated and not reply.new_tokens:
            self._end(ReactEnding.CONTEXT_FULL, "the prompt fills the model's context")
        self._reply = reply
        self._replies += 1
        self._written += reply.new_tokens
        self._per_token = max(1.0, sum(len(turn.text) for turn in self._turns) / max(1, reply.prompt_tokens))
        self._turns.append(Turn("assistant", said(reply.text)))

    async def step(self, action: Move | None) -> None:
        if isinstance(action, Final) and self._tool_calls:
            self._answer, self._ending = action.text, ReactEnding.ANSWERED
            return
        self._turns.append(Turn("user", await self._told(action)))
        self._check_caps()

    @property
    def done(self) -> bool:
        return self._ending is ReactEnding.ANSWERED

    @property
    def reward(self) -> float:
        """Nothing is earned on the way: the scorer judges the transcript."""
        return 0.0

    async def close(self) -> None:
        await self._box.close()

    async def _told(self, action: Move | None) -> str:
        """What the model hears of its move."""
        if action is None:
            return rules.nothing_found()
        if isinstance(action, Final):
            return rules.tool_first()
        return await self._called(action)

    async def _called(self, call: Call) -> str:
        if call.tool.lower() != SHELL:
            return rules.unknown_tool(call.tool)
        if not call.command.strip():
            return rules.no_command()
        self._tool_calls += 1
        return rules.observation(SHELL, (await self._box.run(call.command)).text)

    def _check_caps(self) -> None:
        """End the episode where the next reply would go over a cap.

        The tokens of the last observation are estimated by the share of characters to tokens that the prompt had.
        """
        if self._reply is None:
            raise RuntimeError("The environment was not told the reply: call train_adapters.adapter.hear before step.")
        limits, reply, self._reply = self._limits, self._reply, None
        observed = round(len(self._turns[-1].text) / self._per_token)
        self._observed += observed
        prompt = reply.prompt_tokens + reply.new_tokens + observed
        total = self._written + self._observed
        if self._replies >= limits.turns:
            self._end(ReactEnding.TURNS_SPENT, f"{limits.turns}")
        if prompt + limits.new_tokens > limits.context_tokens:
            self._end(ReactEnding.CONTEXT_FULL, f"about {prompt:,} tokens and {limits.new_tokens:,} reserved")
        if limits.total_tokens is not None and total >= limits.total_tokens:
            self._end(ReactEnding.TOKENS_SPENT, f"about {total:,} of {limits.total_tokens:,}")

    def _end(self, ending: ReactEnding, how: str) -> None:
        self._ending = ending
        raise AgentFailed(f"{ending.value}: {how}")
