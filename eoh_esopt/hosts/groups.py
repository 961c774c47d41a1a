"""The directions of one update, handed out one by one as a host draws candidates.

A group is one batch of an evolution strategy: its directions are drawn together, so they have one sigma, their pairs
and their samples. A host that draws its operators one candidate at a time uses a group up over several generations.
The weights may move in between, by another operator's update: such a direction was then measured from a slightly
older point, as in asynchronous evolution strategies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from eoh_esopt.engine.archive import fair_outcomes
from operators.records import Outcome, Proposal
from operators.rewards import Trial
from operators.search import Operator, Situation


@dataclass(frozen=True)
class Unwritten:
    """An operator whose prompts a host writes: its proposals are empty places for them."""

    name: str

    def ask(self, count: int, situation: Situation) -> list[Proposal]:
        """Exactly `count` proposals without a prompt."""
        return [Proposal(self.name, "", "", ())] * count

    def tell(self, step: int, trials: Sequence[Trial], rng: object) -> None:
        """Nothing to learn."""


@dataclass
class Group:
    """The directions of one update.

    Attributes:
        operator: the evolution strategy that drew them and is told their trials.
        unused: proposals that no candidate has got yet.
        handed_out: candidates that have got one and are not settled.
        settled: id, proposal, outcome and the population's worst objective of those that are.
    """

    operator: Operator
    unused: deque[Proposal]
    handed_out: int = 0
    settled: list[tuple[int, Proposal, Outcome, float]] = field(default_factory=list)

    def hand_out(self) -> Proposal:
        """The next place for a candidate."""
        self.handed_out += 1
        return self.unused.popleft()

    def settle(self, candidate: int, proposal: Proposal, outcome: Outcome, worst: float) -> None:
        """Note what became of a candidate."""
        self.handed_out -= 1
        self.settled.append((candidate, proposal, outcome, worst))

    @property
    def size(self) -> int:
        """How many candidates the update takes."""
        return len(self.unused) + self.handed_out + len(self.settled)

    @property
    def is_complete(self) -> bool:
        """Whether all places are settled."""
        return not self.unused and not self.handed_out

    def trials(self) -> list[Trial]:
        """What the operator is told, in the order of the candidates."""
        ids, proposals, outcomes, worst = zip(*sorted(self.settled, key=lambda one: one[0]), strict=True)
        fair = fair_outcomes(ids, proposals, outcomes)
        return [Trial(*trial) for trial in zip(proposals, fair, worst, strict=True)]


class Groups:
    """The groups of one learning operator, oldest first."""

    def __init__(self, operator: Operator, size: int) -> None:
        self.operator = operator
        self._size = size
        self._open: list[Group] = []
        self.begun = 0

    def current(self, situation: Situation) -> Group:
        """A group with places to hand out; a new one is drawn where there is none.

        Args:
            situation: its `rng` has to be the stream of the group's number, `begun`.
        """
        if not self._open or not self._open[-1].unused:
            self._open.append(Group(self.operator, deque(self.operator.ask(self._size, situation))))
            self.begun += 1
        return self._open[-1]

    def complete(self) -> list[Group]:
        """Take out the groups whose places are all settled."""
        done = [group for group in self._open if group.is_complete]
        self._open = [group for group in self._open if not group.is_complete]
        return done

    def left_over(self) -> list[Group]:
        """Groups that an ended search leaves behind, as far as they hold a trial."""
        return [group for group in self._open if group.settled]
