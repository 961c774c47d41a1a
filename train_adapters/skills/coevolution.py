"""The skill of one training: revised from its rollouts when the plan says so, checked, and kept or taken back.

Nothing of it depends on anything but the log and the files that the log names: what a stopped training had asked or
played is not asked or played again. A language model that cannot be reached costs a revision, never the training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import EventLog
from eoh_esopt.engine.timings import Timekeeper
from eoh_esopt.models.protocol import LanguageModel
from operators.errors import UserError
from train_adapters.adapter import Adapter, AgentTask, Episode, success_threshold
from train_adapters.config import TrainConfig
from train_adapters.ledger import TrainLedger
from train_adapters.listener import TrainListener
from train_adapters.recorded import RecordedTraining
from train_adapters.rollout import Job
from train_adapters.skills.distil import Outcome, Recipe, distil
from train_adapters.skills.inject import with_skill
from train_adapters.skills.selection import rule_of
from train_adapters.skills.verdict import Verdict, judged
from train_adapters.skills.versions import FOLDER, Skill, Version, keep, kept, write_manifest
from train_adapters.skills.writer import Cost, Writer
from train_adapters.trajectories import read_trajectories

Play = Callable[[Sequence[Job], str, str, Adapter], list[Episode]]
"""Plays jobs: their place in the log, the place of their seeds, and the adapter."""


@dataclass(frozen=True)
class SkillParts:
    """What the skill of a training works with.

    Attributes:
        adapter: without any skill.
        writer: revises the skill.
        log: takes what was asked and how it was judged; its folder has the trajectories and the versions.
        recorded: what the log held before.
        ledger: counts what was asked and played.
        listener: hears of revisions.
        time: takes the time of writing.
        play: plays the checks.
    """

    adapter: Adapter
    writer: LanguageModel
    log: EventLog
    recorded: RecordedTraining
    ledger: TrainLedger
    listener: TrainListener
    time: Timekeeper
    play: Play


class CoEvolution:
    """The skill of one training.

    Args:
        config: of the training.
        parts: what it works with.
        begun: the version to begin with.

    Attributes:
        skill: the version in use.
        adapter: whose prompts show it.
    """

    def __init__(self, config: TrainConfig, parts: SkillParts, begun: Skill) -> None:
        self._config = config
        self._parts = parts
        self._rule = rule_of(config.adapter, success_threshold(parts.adapter))
        self._versions = [Version(begun.file, begun.sha256, None, None, "begun")]
        self._revisions = 0
        self._use(begun)

    @property
    def folder(self) -> Path:
        """Of the versions."""
        return self._parts.log.folder / FOLDER

    def revise(self, generations: range, tasks: Sequence[AgentTask]) -> None:
        """Learn from the trajectories of some generations, and check what was learnt.

        Args:
            generations: whose trajectories are read.
            tasks: that the check plays.

        Raises:
            UserError: a file that the log names is missing or has changed, the folder cannot be written, or the model
                in training is gone.
        """
        self._revisions += 1
        proposal = self._proposal(generations)
        self._parts.ledger.revise_skill(Cost(**proposal["cost"]), len(proposal["failures"]))
        verdict = None
        if proposal["outcome"] == Outcome.PROPOSED.value:
            skill = kept(self.folder, self._revisions, proposal["sha256"])
            verdict = self._checked(skill, tasks)
            self._enter(skill, generations[-1], "accepted" if verdict.accepted else "rolled_back")
            if verdict.accepted:
                self._use(skill)
        self._parts.listener.on_skill(proposal, verdict)

    def _use(self, skill: Skill) -> None:
        self.skill = skill
        self.adapter = with_skill(self._parts.adapter, skill.text)

    def _proposal(self, generations: range) -> Mapping[str, Any]:
        """A revision as its event holds it: from the log, or made now."""
        recorded = self._parts.recorded.proposals.get(self._revisions)
        if recorded is not None:
            return recorded
        trajectories = read_trajectories(self._parts.log.folder, generations)
        config = self._config
        writer = Writer(self._parts.writer, config.seed, f"skill/{self._revisions}", config.skill_tokens)
        recipe = Recipe(self._rule, config.skill_lessons, config.skill_lines)
        folder = self.folder / f"revision_{self._revisions:03d}"
        with self._parts.time.writing():
            revision = distil(trajectories, self.skill.text, writer, recipe, folder)
        skill = Skill(self._revisions, revision.text)
        if revision.outcome is Outcome.PROPOSED:
            keep(self.folder, skill)
        return self._parts.log.append(
            "skill_proposal",
            revision=self._revisions,
            generation=generations[-1],
            parent=self.skill.file,
            file=skill.file if revision.outcome is Outcome.PROPOSED else None,
            sha256=skill.sha256,
            **revision.as_fields(),
        )

    def _checked(self, skill: Skill, tasks: Sequence[AgentTask]) -> Verdict:
        """The verdict on a revision, from rollouts on the current weights."""
        jobs = [Job(task, sample, None) for task in tasks for sample in range(self._config.skill_check)]
        place = f"skill/{self._revisions}"
        self._parts.listener.on_rollouts(f"check of {skill.file}", 2 * len(jobs))
        before = self._parts.play(jobs, f"{place}/before", place, self.adapter)
        after = self._parts.play(jobs, f"{place}/after", place, with_skill(self._parts.adapter, skill.text))
        self._parts.ledger.check_skill([*before, *after])
        verdict = judged(before, after, self._config.seed)
        self._note(verdict)
        return verdict

    def _note(self, verdict: Verdict) -> None:
        recorded = self._parts.recorded.verdicts.get(self._revisions)
        if recorded is None:
            self._parts.log.append("skill_verdict", revision=self._revisions, **verdict.as_dict())
        elif recorded["accepted"] != verdict.accepted:
            raise UserError(
                f"The log's verdict on revision {self._revisions} of the skill is not the one that its episodes give. "
                "Resume the training with the release that began it, or begin a new one."
            )

    def _enter(self, skill: Skill, generation: int, state: str) -> None:
        self._versions.append(Version(skill.file, skill.sha256, self.skill.file, generation, state))
        write_manifest(self.folder, self._versions)
