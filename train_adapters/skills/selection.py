"""Which trajectories a skill is learnt from: a rule for each task, and a manifest that says what it chose.

Episodes that failed by no fault of the agent's teach nothing and are never chosen.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from train_adapters.skills.markdown import markdown
from train_adapters.trajectories import Kept

SUCCEED, FAILED = "SUCCEED", "FAILED"

Pick = Callable[[Sequence["Candidate"]], list["Candidate"]]


@dataclass(frozen=True)
class Candidate:
    """A trajectory that may be chosen.

    Attributes:
        kept: the trajectory and its place.
        outcome: `SUCCEED` or `FAILED`.
    """

    kept: Kept
    outcome: str

    @property
    def task(self) -> str:
        """Id of its task."""
        return self.kept.trajectory.task

    @property
    def failed(self) -> bool:
        """Whether it is a failure."""
        return self.outcome == FAILED


@dataclass(frozen=True)
class Rule:
    """How trajectories of one kind of task are chosen.

    Attributes:
        about: in words, for the manifest.
        succeeds: whether a reward is a success.
        pick: from the trajectories that count, in the order they were played, those to learn from, in the order to
            learn in.
    """

    about: str
    succeeds: Callable[[float], bool]
    pick: Pick


@dataclass(frozen=True)
class Chosen:
    """A trajectory to learn from.

    Attributes:
        id: unique within its selection.
        candidate: the trajectory.
        text: as Markdown.
    """

    id: str
    candidate: Candidate
    text: str

    @property
    def file(self) -> str:
        """Name of its Markdown file."""
        return f"{self.id}_{self.candidate.outcome}.md"


@dataclass(frozen=True)
class Selection:
    """What a rule chose.

    Attributes:
        rule: the rule.
        considered: the trajectories it chose from.
        left_out: those that do not count, by how they ended.
        chosen: those to learn from, in the order to learn in.
    """

    rule: Rule
    considered: tuple[Candidate, ...]
    left_out: Mapping[str, int]
    chosen: tuple[Chosen, ...]

    def manifest(self) -> dict[str, Any]:
        """What was chosen from where, with hashes of what was read."""
        tasks = dict.fromkeys(one.task for one in self.considered)
        outcomes = {(one.candidate.task, one.candidate.outcome) for one in self.chosen}
        both = ((task, outcome) for task in tasks for outcome in (SUCCEED, FAILED))
        return {
            "selection": self.rule.about,
            "considered": dict(Counter(one.outcome for one in self.considered)),
            "left_out": dict(self.left_out),
            "chosen": dict(Counter(one.candidate.outcome for one in self.chosen)),
            "missing_task_outcomes": [list(pair) for pair in both if pair not in outcomes],
            "rows": [_row(one) for one in self.chosen],
        }


def select(kept: Sequence[Kept], rule: Rule, most: int) -> Selection:
    """Choose trajectories to learn from.

    Args:
        kept: in the order they were played.
        rule: of their kind of task.
        most: most of them, at least 1.
    """
    counting = [one for one in kept if one.trajectory.ending.counts]
    left_out = Counter(one.trajectory.ending.value for one in kept if not one.trajectory.ending.counts)
    candidates = [Candidate(one, SUCCEED if _succeeds(one, rule) else FAILED) for one in counting]
    chosen = [
        Chosen(f"traj{number:06d}", one, markdown(one.kept.trajectory, one.outcome))
        for number, one in enumerate(rule.pick(candidates)[:most], 1)
    ]
    return Selection(rule, tuple(candidates), left_out, tuple(chosen))


def rule_of(adapter: str, success: float = 1.0) -> Rule:
    """The rule for the tasks of an adapter.

    Args:
        adapter: its name; one that has no rule of its own gets the usual one.
        success: least reward of a success under the usual rule.
    """
    about = f"{_USUAL}; success: reward of at least {success:g}"
    return _RULES.get(adapter) or Rule(about, lambda reward: reward >= success, _one_pair_a_task)


def _succeeds(kept: Kept, rule: Rule) -> bool:
    assert kept.trajectory.reward is not None
    return rule.succeeds(kept.trajectory.reward)


def _row(one: Chosen) -> dict[str, Any]:
    kept, trajectory = one.candidate.kept, one.candidate.kept.trajectory
    return {
        "id": one.id,
        "file": f"trajectories/{one.file}",
        "sha256": hashlib.sha256(one.text.encode()).hexdigest(),
        "source": kept.file,
        "line": kept.line,
        "generation": trajectory.generation,
        "candidate": trajectory.candidate,
        "seed": None if trajectory.direction is None else trajectory.direction.seed,
        "task": trajectory.task,
        "sample": trajectory.sample,
        "outcome": one.candidate.outcome,
        "reward": trajectory.reward,
    }


def _place(one: Candidate) -> tuple[int, int]:
    return one.kept.trajectory.candidate, one.kept.trajectory.sample


def _one_failure_a_task(found: Sequence[Candidate]) -> list[Candidate]:
    """Of every task the failure of the lowest candidate and then sample, over all generations."""
    first: dict[str, Candidate] = {}
    for one in sorted((one for one in found if one.failed), key=_place):
        first.setdefault(one.task, one)
    return [first[task] for task in dict.fromkeys(one.task for one in found) if task in first]


_LAST_TASKS = 50


def _last_occurrences(found: Sequence[Candidate]) -> list[Candidate]:
    """Of the tasks played last, in their last generation, a failure and a success each."""
    last = {one.task: one.kept.trajectory.generation for one in found}
    newest = sorted(last, key=last.__getitem__, reverse=True)[:_LAST_TASKS]
    return [pair for task in newest for pair in _pair([one for one in found if _is_of(one, task, last[task])])]


def _one_pair_a_task(found: Sequence[Candidate]) -> list[Candidate]:
    """Of every task the latest failure and the shortest success, failures and successes in turn."""
    chosen = []
    for task in dict.fromkeys(one.task for one in reversed(found)):
        of_task = [one for one in found if one.task == task]
        last = max((one.kept.trajectory.generation for one in of_task if one.failed), default=None)
        shortest = min((len(one.kept.trajectory.steps) for one in of_task if not one.failed), default=None)
        failed = (one for one in of_task if one.failed and one.kept.trajectory.generation == last)
        succeeded = (one for one in of_task if not one.failed and len(one.kept.trajectory.steps) == shortest)
        chosen.append([min(some, key=_place, default=None) for some in (failed, succeeded)])
    return [one for pair in chosen for one in pair if one is not None]


def _pair(found: Sequence[Candidate]) -> list[Candidate]:
    first: dict[str, Candidate] = {}
    for one in sorted(found, key=_place):
        first.setdefault(one.outcome, one)
    return [first[outcome] for outcome in (FAILED, SUCCEED) if outcome in first]


def _is_of(one: Candidate, task: str, generation: int) -> bool:
    return one.task == task and one.kept.trajectory.generation == generation


def _solved(reward: float) -> bool:
    return reward >= 1


_USUAL = "of every task, the last one played first, the latest FAILED and the shortest SUCCEED"

_RULES: Mapping[str, Rule] = {
    "math": Rule(
        "at most one FAILED of every problem, of the lowest candidate and then sample; no SUCCEED",
        _solved,
        _one_failure_a_task,
    ),
    "docvqa": Rule(
        f"the {_LAST_TASKS} tasks played last, of each at most one FAILED and one SUCCEED; success: ANLS above 0.5",
        lambda reward: reward > 0.5,
        _last_occurrences,
    ),
    "webarena": Rule("every trajectory", _solved, list),
}
