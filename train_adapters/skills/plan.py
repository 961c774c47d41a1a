"""The arms of co-evolution, at equal rollouts: what a training's budget of episodes is spent on.

theta_{t+1} = U_ES(theta_t; c_t, D_t) and c_{t+1} = U_c(c_t; D_t): weights theta and skill c are renewed on the same
rollouts D_t. A revision of the skill is checked by rollouts of its own; they come out of the same budget, so an arm
with revisions has fewer generations than one without.
"""

from __future__ import annotations

from dataclasses import dataclass

ARMS = ("weights", "skill", "sequential", "alternating")
"""weights: the skill stays as it was begun with. skill: the weights stay, and every rollout is played on them.
sequential: the weights learn first, then the skill is revised from their rollouts. alternating: in turn."""


@dataclass(frozen=True)
class Plan:
    """What a training does in which order.

    Attributes:
        arm: one of `ARMS`.
        generations: of rollouts to learn from.
        every: generations behind one revision; 0 for no revisions.
    """

    arm: str
    generations: int
    every: int

    @property
    def learns(self) -> bool:
        """Whether the weights learn."""
        return self.arm != "skill"

    @property
    def windows(self) -> list[range]:
        """The generations behind each revision."""
        return [range(first, first + self.every) for first in _firsts(self.generations, self.every)]

    def revised_after(self, generation: int) -> list[range]:
        """The revisions that are due when a generation is over, each with the generations it is made from."""
        if self.arm == "sequential":
            return self.windows if generation == self.generations - 1 else []
        return [window for window in self.windows if window[-1] == generation]


def planned(arm: str, generations: int, episodes: int, every: int, check: int) -> Plan:
    """The plan of an arm.

    Args:
        arm: one of `ARMS`.
        generations: of the arm `weights`, which give the budget.
        episodes: of one generation, over all directions.
        every: generations behind one revision.
        check: episodes of the check of one revision.

    Returns:
        As many generations as the budget holds together with the checks of the revisions that fall due in them. A check
        counts as spent whether its revision comes about or not: what is planned depends on the settings alone.
    """
    if arm == "weights":
        return Plan(arm, generations, 0)
    budget = generations * episodes
    found = next(count for count in range(generations, -1, -1) if count * episodes + count // every * check <= budget)
    return Plan(arm, found, every)


def _firsts(generations: int, every: int) -> range:
    return range(0, generations - every + 1, every) if every else range(0)
