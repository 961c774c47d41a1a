"""The trainer: evolution strategies over episodes, for every adapter.

In each generation G directions play the same tasks with the same seeds of their replies; the operator of the search is
told the rewards and says how the weights move. Resume runs the same loop again: what the log holds is taken from the
log instead of the model, updates are applied again, and where the log ends the training goes on. There is no other
state to save.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eoh_esopt.engine.events import EventLog
from eoh_esopt.engine.history import History
from eoh_esopt.engine.learner import Learner
from eoh_esopt.engine.streams import batch_stream
from eoh_esopt.engine.timings import Timekeeper
from eoh_esopt.models.protocol import LanguageModel
from operators.errors import UserError
from operators.momentum import momentum
from operators.records import Proposal, Skip
from operators.search import Situation
from train_adapters.adapter import Adapter, AgentTask, Episode, side_by_side, success_threshold
from train_adapters.config import TrainConfig
from train_adapters.diagnostics import report_of
from train_adapters.evaluation import Evaluation, evaluated
from train_adapters.ledger import TrainLedger
from train_adapters.listener import TrainListener
from train_adapters.memory import peak_bytes, reset_peak
from train_adapters.recorded import RecordedTraining, directions_of, episode_fields
from train_adapters.rewards import NAME, strategy, trial
from train_adapters.rollout import Job, Table, play, waves
from train_adapters.skills.coevolution import CoEvolution, SkillParts
from train_adapters.skills.versions import NO_SKILL, Skill
from train_adapters.trajectories import Step, Trajectory, trajectory, write_wave

WEIGHTS_STAY = "the weights stay: the skill alone is renewed"

BASE = -1
"""Generation of the evaluation before the first update."""


@dataclass(frozen=True)
class TrainParts:
    """What a training works with.

    Attributes:
        adapter: of the environment.
        tasks: by split.
        model: plays, and learns.
        log: takes every event.
        recorded: what the log held before.
        listener: hears of the progress.
        clock: seconds of work so far, over all sittings.
        skill: that the training begins with; an empty text for none.
        writer: revises the skill; None for the model itself.
    """

    adapter: Adapter
    tasks: Mapping[str, Sequence[AgentTask]]
    model: LanguageModel
    log: EventLog
    recorded: RecordedTraining
    listener: TrainListener
    clock: Callable[[], float]
    skill: Skill = NO_SKILL
    writer: LanguageModel | None = None


class Trainer:
    """One training, from the evaluation of the model as it is to that of the model as it has become.

    Args:
        config: settings with every default filled in, see `TrainConfig.resolved`.
        parts: what it works with.
        history: of the weights, without updates.

    Attributes:
        ledger: what has been spent.
        time: where the time went.
        evaluations: those made so far, each with its generation.
        inference_bytes: peak memory before anything was learnt; None where it was not measured.
    """

    def __init__(self, config: TrainConfig, parts: TrainParts, history: History) -> None:
        self._config = config
        self._parts = parts
        self.ledger = TrainLedger()
        self.time = Timekeeper(parts.model, None, parts.recorded.timings)
        self.evaluations: list[tuple[int, Evaluation]] = []
        self.inference_bytes = parts.recorded.inference_bytes
        decisions = parts.recorded.decisions
        self._learner = Learner(
            parts.model, momentum(config.momentum), parts.log, decisions, history, self.time, self.ledger
        )
        told, pace = parts.listener.on_episodes, config.pace
        self._table = Table(parts.adapter, parts.model, config.seed, self.time, told, pace=pace)
        skill_parts = SkillParts(
            adapter=parts.adapter,
            writer=parts.writer or parts.model,
            log=parts.log,
            recorded=parts.recorded,
            ledger=self.ledger,
            listener=parts.listener,
            time=self.time,
            play=self._played,
        )
        self._evolution = CoEvolution(config, skill_parts, parts.skill)

    @property
    def history(self) -> History:
        """Of the weights, up to the last update."""
        return self._learner.history

    @property
    def skill(self) -> Skill:
        """The version that the prompts show."""
        return self._evolution.skill

    def run(self) -> None:
        """Train, and evaluate on the way.

        Raises:
            UserError: the folder cannot be written, or all episodes of a generation failed by no fault of the agent's.
        """
        config = self._config
        plan = config.plan
        last = plan.generations - 1
        reset_peak()
        self._evaluate("val", BASE, config.final_repeats)
        if self._parts.tasks["val"] and self.inference_bytes is None:
            self.inference_bytes = peak_bytes()
        for generation in range(plan.generations):
            self._generation(generation)
            for window in plan.revised_after(generation):
                self._evolution.revise(window, self._window(window[-1]))
            if config.evaluate_every and (generation + 1) % config.evaluate_every == 0 and generation < last:
                self._evaluate("val", generation, config.evaluation_repeats)
        for split in ("val", "test"):
            self._evaluate(split, last, config.final_repeats)

    def _generation(self, generation: int) -> None:
        """Play, tell the operator, move the weights."""
        config = self._config
        tasks = self._window(generation)
        operator = strategy(config, tasks)
        rng = batch_stream(config.seed, generation, NAME, "ask")
        situation = Situation((), generation, rng, self.history.updates)
        proposals = operator.ask(config.directions * config.episodes, situation)
        jobs = self._jobs(proposals, tasks)
        self._parts.listener.on_rollouts(f"generation {generation + 1}", len(jobs))
        place = f"train/{generation}"
        episodes = self._played(jobs, place, place, self._evolution.adapter, generation if config.keeps else None)
        self._check(episodes, generation)
        self.ledger.learn_from(episodes)
        trials = [trial(proposal, episode) for proposal, episode in zip(proposals, episodes, strict=True)]
        rng = batch_stream(config.seed, generation, NAME, "tell")
        told = operator.tell(generation, trials, rng) if config.plan.learns else Skip(generation, WEIGHTS_STAY)
        decision = self._learner.decide(told, generation, NAME)
        size = config.episodes
        directions = [episodes[first : first + size] for first in range(0, len(episodes), size)]
        sigma = operator.sigma(generation) if config.plan.learns else 0.0
        report = report_of(generation, sigma, directions, decision, self._parts.model.parameters)
        if generation >= self._parts.recorded.generations:
            self._note("generation", tasks=[task.id for task in tasks], **report.as_dict(), peak_bytes=peak_bytes())
        self._parts.listener.on_generation(report, replace(self.ledger))

    def _window(self, generation: int) -> list[AgentTask]:
        """The next tasks of the split in their order, from its beginning again after its end."""
        tasks, size = self._parts.tasks["train"], self._config.batch
        return [tasks[(generation * size + place) % len(tasks)] for place in range(size)]

    def _jobs(self, proposals: Sequence[Proposal], tasks: Sequence[AgentTask]) -> list[Job]:
        """The episodes of a generation. Those of weights that stay are as many, each with seeds of its own."""
        by_id, size, samples = {task.id: task for task in tasks}, self._config.episodes, self._config.samples
        if self._config.plan.learns:
            return [Job(by_id[one.prompt], at % samples, one.direction) for at, one in enumerate(proposals)]
        return [Job(by_id[one.prompt], at // size * samples + at % samples, None) for at, one in enumerate(proposals)]

    def _played(
        self, jobs: Sequence[Job], place: str, seeds: str, adapter: Adapter, generation: int | None = None
    ) -> list[Episode]:
        """One episode a job, in their order: from the log where it has them.

        Args:
            jobs: what to play.
            place: where in the training, for the log.
            seeds: place of the seeds of the replies.
            adapter: of the tasks, with the skill that its prompts show.
            generation: whose trajectories they are; None where they are not kept.
        """
        found: dict[tuple[Any, ...], Episode] = {}
        for wave, together in enumerate(waves(self._parts.model, jobs, side_by_side(self._parts.adapter))):
            episodes = self._parts.recorded.wave(place, wave, together)
            if episodes is None:
                episodes = self._play(jobs, together, seeds, adapter, (generation, wave))
                fields = [episode_fields(one) for one in episodes]
                self._parts.log.append(
                    "episodes", place=place, wave=wave, directions=directions_of(together), episodes=fields
                )
            else:
                self._parts.listener.on_episodes(len(episodes))
            found.update(zip(map(_key, together), episodes, strict=True))
        return [found[_key(job)] for job in jobs]

    def _play(
        self, jobs: Sequence[Job], together: Sequence[Job], seeds: str, adapter: Adapter, kept: tuple[int | None, int]
    ) -> list[Episode]:
        """Play one wave of jobs, and keep what was said in it where it is of a generation."""
        generation, wave = kept
        table = replace(self._table, adapter=adapter)
        if generation is None:
            return play(table, together, seeds)
        said: list[Trajectory] = []
        candidates = {
            direction: number for number, direction in enumerate(dict.fromkeys(job.direction for job in jobs))
        }

        def keep(job: Job, episode: Episode, steps: tuple[Step, ...]) -> None:
            said.append(trajectory(episode, steps, generation, candidates[job.direction], job.direction))

        episodes = play(replace(table, keep=keep), together, seeds)
        write_wave(self._parts.log.folder, generation, wave, said)
        return episodes

    def _check(self, episodes: Sequence[Episode], generation: int) -> None:
        """Stop where nothing works: going on would spend the generations on skipped updates."""
        if any(episode.ending.counts for episode in episodes):
            return
        raise UserError(
            f"All {len(episodes)} episodes of generation {generation + 1} failed, and not by the agent's fault: "
            f"{episodes[0].reason} ({episodes[0].ending.value}). Mend it, then go on with: "
            f"eoh-esopt train --resume {self._parts.log.folder}"
        )

    def _evaluate(self, split: str, generation: int, repeats: int) -> None:
        """Play the tasks of a split on the current weights, with the same seeds at every evaluation."""
        tasks = self._parts.tasks[split]
        if not tasks:
            return
        self._parts.listener.on_rollouts(f"evaluation on {split}", repeats * len(tasks))
        found = list(self._repeats(split, generation, repeats))
        evaluation = evaluated(split, found, self._config.seed, success_threshold(self._parts.adapter))
        self.evaluations.append((generation, evaluation))
        if len(self.evaluations) > self._parts.recorded.evaluations:
            self._note("evaluation", generation=generation, **evaluation.as_dict())
        self._parts.listener.on_evaluation(generation, evaluation)

    def _repeats(self, split: str, generation: int, repeats: int) -> Iterator[list[Episode]]:
        for repeat in range(repeats):
            jobs = [Job(task, repeat, None) for task in self._parts.tasks[split]]
            episodes = self._played(jobs, f"{split}/{generation}/{repeat}", split, self._evolution.adapter)
            self.ledger.evaluate(episodes)
            yield episodes

    def _note(self, kind: str, **fields: Any) -> None:
        memory = {} if self.inference_bytes is None else {"inference_bytes": self.inference_bytes}
        self._parts.log.append(
            kind,
            **fields,
            **memory,
            seconds=round(self._parts.clock(), 1),
            ledger=self.ledger.as_dict(),
            timings=self.time.timings.as_dict(),
        )


def _key(job: Job) -> tuple[Any, ...]:
    return job.direction, job.task.id, job.sample
