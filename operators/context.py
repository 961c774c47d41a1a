"""The context that evolves beside the weights: a short list of insights, shown by every operator's prompt.

theta_{t+1} = U_ES(theta_t; c_t, D_t) and c_{t+1} = U_c(c_t; D_t): weights and context are renewed in turn on the same
candidates D_t. Here U_c asks the model itself what can be learnt from the best candidates and the failed ones, and a
version that does not raise the reward that the weights learn from is taken back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from operators.records import Candidate
from operators.task import Task

OPERATOR = "context"
"""What stands for an operator's name where the model is asked for insights."""

MOST_INSIGHTS = 5
_LONGEST = 160  # characters of an insight
_BEST, _FAILED = 3, 3  # candidates that are shown
_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+(.*\S)")


@dataclass(frozen=True)
class Context:
    """One version of the context.

    Attributes:
        version: running number; 0 for the empty one that a search begins with.
        insights: sentences, at most `MOST_INSIGHTS`.
        reward: mean reward of the last generation that was written with it; None where there is none yet.
    """

    version: int = 0
    insights: tuple[str, ...] = ()
    reward: float | None = None


@dataclass(frozen=True)
class Failure:
    """A candidate that was not valid.

    Attributes:
        idea: what it was meant to do.
        reason: what was wrong with it, in a line.
    """

    idea: str
    reason: str


class ContextHistory:
    """Which version of the context is shown, and which one stands behind it."""

    def __init__(self) -> None:
        self.current = Context()
        self._before: Context | None = None
        self._versions = 0

    def judge(self, reward: float | None) -> bool:
        """Hear the mean reward of a generation under the current version; returns whether that was taken back.

        A version on trial is taken back unless its reward is above that of the version before it. Without a reward
        nothing is decided, and the trial goes on.
        """
        if reward is None:
            return False
        before, self._before = self._before, None
        if before is not None and before.reward is not None and reward <= before.reward:
            self.current = before
            return True
        self.current = replace(self.current, reward=reward)
        return False

    def renew(self, insights: tuple[str, ...]) -> bool:
        """Show other insights from now on; returns whether they are others."""
        if not insights or insights == self.current.insights:
            return False
        self._versions += 1
        self._before, self.current = self._before or self.current, Context(self._versions, insights)
        return True


def reflection(task: Task, context: Context, best: Sequence[Candidate], failures: Sequence[Failure]) -> str:
    """The question that new insights are the answer to.

    Args:
        task: the problem.
        context: the version to start from.
        best: the population, best first.
        failures: of the last generation, the latest first.
    """
    parts = [
        task.description,
        _listed("Insights so far:", context.insights),
        _listed("The best heuristics, best first:", [one.idea for one in best[:_BEST]]),
        _listed("Heuristics that failed:", [f"{one.idea} ({one.reason})" for one in failures[:_FAILED]]),
        "What should the next heuristics do, and what should they avoid? "
        f'Write at most {MOST_INSIGHTS} short insights, each on a line that begins with "- ". No code.',
    ]
    return "\n".join(part for part in parts if part)


def insights_of(reply: str) -> tuple[str, ...]:
    """The insights of a reply: its bulleted or numbered lines, in order, each once; none where it has no such line.

    Lines that end in a colon are headings of lists, and say nothing by themselves.
    """
    lines = (_BULLET.fullmatch(line) for line in reply.splitlines())
    found = dict.fromkeys(shortened(line.group(1)) for line in lines if line and not line.group(1).endswith(":"))
    return tuple(found)[:MOST_INSIGHTS]


def shortened(text: str) -> str:
    """One line, cut between words where it is too long."""
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else words[:_LONGEST].rsplit(" ", 1)[0] + " ..."


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"- {shortened(line)}" for line in lines)]) if lines else ""
