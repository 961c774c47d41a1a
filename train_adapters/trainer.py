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
from operators.search import Situation
from train_adapters.adapter import Adapter, AgentTask, Episode
from train_adapters.config import TrainConfig
from train_adapters.diagnostics import report_of
from train_adapters.evaluation import Evaluation, evaluated
from train_adapters.ledger import TrainLedger
from train_adapters.listener import TrainListener
from train_adapters.memory import peak_bytes, reset_peak
from train_adapters.recorded import RecordedTraining, directions_of, episode_fields
from train_adapters.rewards import NAME, strategy, trial
from train_adapters.rollout import Job, Table, play, waves

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
    """

    adapter: Adapter
    tasks: Mapping[str, Sequence[AgentTask]]
    model: LanguageModel
    log: EventLog
    recorded: RecordedTraining
    listener: TrainListener
    clock: Callable[[], float]


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
        self._table = Table(parts.adapter, parts.model, config.seed, self.time, parts.listener.on_episodes)

    @property
    def history(self) -> History:
        """Of the weights, up to the last update."""
        return self._learner.history

    def run(self) -> None:
        """Train, and evaluate on the way.

        Raises:
            UserError: the folder cannot be written, or all episodes of a generation failed by no fault of the agent's.
        """
        config = self._config
        last = config.generations - 1
        reset_peak()
        self._evaluate("val", BASE, config.final_repeats)
        if self._parts.tasks["val"] and self.inference_bytes is None:
            self.inference_bytes = peak_bytes()
        for generation in range(config.generations):
            self._generation(generation)
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
        by_id = {task.id: task for task in tasks}
        jobs = [
            Job(by_id[proposal.prompt], place % config.samples, proposal.direction)
            for place, proposal in enumerate(proposals)
        ]
        self._parts.listener.on_rollouts(f"generation {generation + 1}", len(jobs))
        episodes = self._played(jobs, f"train/{generation}", f"train/{generation}")
        self._check(episodes, generation)
        self.ledger.learn_from(episodes)
        trials = [trial(proposal, episode) for proposal, episode in zip(proposals, episodes, strict=True)]
        rng = batch_stream(config.seed, generation, NAME, "tell")
        decision = self._learner.decide(operator.tell(generation, trials, rng), generation, NAME)
        size = config.episodes
        directions = [episodes[first : first + size] for first in range(0, len(episodes), size)]
        report = report_of(generation, operator.sigma(generation), directions, decision, self._parts.model.parameters)
        if generation >= self._parts.recorded.generations:
            self._note("generation", tasks=[task.id for task in tasks], **report.as_dict(), peak_bytes=peak_bytes())
        self._parts.listener.on_generation(report, replace(self.ledger))

    def _window(self, generation: int) -> list[AgentTask]:
        """The next tasks of the split in their order, from its beginning again after its end."""
        tasks, size = self._parts.tasks["train"], self._config.batch
        return [tasks[(generation * size + place) % len(tasks)] for place in range(size)]

    def _played(self, jobs: Sequence[Job], place: str, seeds: str) -> list[Episode]:
        """One episode a job, in their order: from the log where it has them.

        Args:
            jobs: what to play.
            place: where in the training, for the log.
            seeds: place of the seeds of the replies.
        """
        found: dict[tuple[Any, ...], Episode] = {}
        for wave, together in enumerate(waves(self._parts.model, jobs)):
            episodes = self._parts.recorded.wave(place, wave, together)
            if episodes is None:
                episodes = play(self._table, together, seeds)
                fields = [episode_fields(one) for one in episodes]
                self._parts.log.append(
                    "episodes", place=place, wave=wave, directions=directions_of(together), episodes=fields
                )
            else:
                self._parts.listener.on_episodes(len(episodes))
            found.update(zip(map(_key, together), episodes, strict=True))
        return [found[_key(job)] for job in jobs]

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
        evaluation = evaluated(split, list(self._repeats(split, generation, repeats)), self._config.seed)
        self.evaluations.append((generation, evaluation))
        if len(self.evaluations) > self._parts.recorded.evaluations:
            self._note("evaluation", generation=generation, **evaluation.as_dict())
        self._parts.listener.on_evaluation(generation, evaluation)

    def _repeats(self, split: str, generation: int, repeats: int) -> Iterator[list[Episode]]:
        for repeat in range(repeats):
            jobs = [Job(task, repeat, None) for task in self._parts.tasks[split]]
            episodes = self._played(jobs, f"{split}/{generation}/{repeat}", split)
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
