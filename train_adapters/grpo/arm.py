"""The baseline as an arm of a comparison: evaluated, trained by trl, saved as a checkpoint, and evaluated from that.

Its folder has a log of the same kind as a training's. An interrupted arm goes on from the last checkpoint of trl; what
came after that is done again, to the same end, since every random number depends on its place alone.
"""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from eoh_esopt.engine import events
from eoh_esopt.engine.backend import load_model
from eoh_esopt.engine.run import Notify, check_base, check_settings, note_start, working_clock
from eoh_esopt.engine.streams import batch_stream
from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.experiments.flops import model_flops
from eoh_esopt.models.protocol import LanguageModel
from eoh_esopt.models.transformers_model import TransformersModel
from operators.errors import UserError
from train_adapters.adapter import Adapter, AgentTask, Episode, side_by_side
from train_adapters.agent_evaluation import played
from train_adapters.config import TrainConfig
from train_adapters.grpo.config import GrpoConfig
from train_adapters.grpo.examples import Example, examples_of
from train_adapters.grpo.recorded import RecordedArm, newest_checkpoint
from train_adapters.grpo.steps import step_line, step_report
from train_adapters.ledger import TrainLedger
from train_adapters.listener import TrainListener
from train_adapters.memory import peak_bytes, reset_peak
from train_adapters.reports import evaluation_line
from train_adapters.rollout import Job, Table, play, waves
from train_adapters.tasks import Tasks, check_batch, check_tasks, digests, longest_reply, prepared

MODEL = "model"
"""Folder of the trained checkpoint, in the arm's."""
CHECKPOINTS = "checkpoints"
_NAME = "grpo"
_COMMAND = "compare-training"


def run_arm(
    config: TrainConfig, grpo: GrpoConfig, out: Path, *, listener: TrainListener, notify: Notify
) -> dict[str, Any]:
    """Begin the arm in a new folder, or go on with it; a finished one is left as it is.

    Args:
        config: of the arm that it is compared with: adapter, model, sampling, seed and repeats are taken from it.
        grpo: how it learns, its steps filled in.
        out: its folder.
        listener: hears of episodes.
        notify: takes lines for people.

    Returns:
        The summary, as in `summary.json`.

    Raises:
        UserError: the data or the model cannot be used, or are not those the arm began with; or the environment fails.
    """
    new = not events.holds_run(out)
    with events.claim(out, new=new):
        earlier = [] if new else events.read_events(out)
        if earlier and earlier[-1]["event"] == "end":
            notify(f"The arm in {out} is finished: there is nothing to go on with.")
            return {name: value for name, value in earlier[-1].items() if name != "event"}
        adapter, tasks = prepared(config.adapter, config.adapter_settings)
        check_batch(grpo.prompts, adapter, tasks)
        config = config.for_replies_of(longest_reply(adapter, tasks)).resolved()
        check_settings(earlier, config, out)
        _check_grpo(earlier, grpo, out)
        check_tasks(earlier, tasks, out)
        events.write_atomically(out / events.CONFIG, config.to_json())
        with events.open_log(out, _COMMAND) as log:
            return _Arm(config, grpo, _Parts(adapter, tasks, log, listener, notify), earlier).run()


def _check_grpo(earlier: Sequence[events.Event], grpo: GrpoConfig, out: Path) -> None:
    began = earlier[0]["grpo"] if earlier else asdict(grpo)
    for name, value in asdict(grpo).items():
        if began[name] != value:
            raise UserError(
                f"The arm in {out} began with grpo {name} {began[name]!r}, which is {value!r} now. "
                "Put it back, or begin a new comparison with --out."
            )


@dataclass(frozen=True)
class _Parts:
    adapter: Adapter
    tasks: Tasks
    log: events.EventLog
    listener: TrainListener
    notify: Notify


class _Arm:
    """One sitting of the arm, in its claimed folder."""

    def __init__(self, config: TrainConfig, grpo: GrpoConfig, parts: _Parts, earlier: Sequence[events.Event]) -> None:
        self._config, self._grpo, self._parts = config, grpo, parts
        self._folder = parts.log.folder
        self._earlier = list(earlier)
        self._recorded = RecordedArm(earlier)
        self._clock = working_clock(self._earlier)
        self._written: dict[int, tuple[list[int], list[int]]] = {}
        self._episodes: list[Episode] = []

    def run(self) -> dict[str, Any]:
        """Evaluate, train, evaluate.

        Returns:
            The summary.
        """
        facts = self._before()
        dtype = facts["model"]["dtype"]
        if not (self._folder / MODEL).is_dir():
            self._train(dtype)
        summary = self._after(facts, dtype)
        self._parts.log.write_file(events.SUMMARY, json.dumps(summary, indent=1) + "\n")
        self._parts.log.append("end", **summary)
        return summary

    def _before(self) -> events.Event:
        _measure_anew()
        with self._model(self._config.model, self._config.dtype) as model:
            facts = self._begin(model)
            self._evaluate(model, "val", before=True)
        if self._recorded.inference_bytes is None:
            self._recorded.inference_bytes = peak_bytes()
        return facts

    def _after(self, facts: events.Event, dtype: str) -> dict[str, Any]:
        with self._model(str(self._folder / MODEL), dtype) as model:
            for split in ("val", "test"):
                self._evaluate(model, split, before=False)
            return self._summary(model, facts)

    @contextmanager
    def _model(self, name: str, dtype: str, **settings: Any) -> Iterator[LanguageModel]:
        run = replace(self._config.as_run, model=name, dtype=dtype, **settings)
        with closing(load_model(run, self._parts.notify, self._config.chat)) as model:
            yield model

    def _begin(self, model: LanguageModel) -> events.Event:
        base = model.checksum()
        check_base(self._earlier, base, self._folder)
        return note_start(
            self._parts.log,
            "resume" if self._earlier else "start",
            self._config,
            model,
            base,
            grpo=asdict(self._grpo),
            trl=version("trl"),
            dataset=digests(self._parts.tasks),
        )

    def _evaluate(self, model: LanguageModel, split: str, *, before: bool) -> None:
        """Play the tasks of a split, with the seeds of a training's evaluations."""
        at = -1 if before else self._steps - 1
        tasks, repeats = self._parts.tasks[split], self._config.final_repeats
        if not tasks or self._recorded.has_evaluation(split, at):
            return
        listener = self._parts.listener
        listener.on_rollouts(f"evaluation on {split}", repeats * len(tasks))
        found = played(model, self._parts.adapter, tasks, split, repeats, self._config.seed, listener.on_episodes)
        event = self._note("evaluation", generation=at, **found.as_dict())
        self._recorded.take(json.loads(json.dumps(event)))  # as a resumed arm reads it
        when = "before training" if before else f"after step {self._steps}"
        self._parts.notify(f"GRPO, {split} {when}: {evaluation_line(found)}")

    def _train(self, dtype: str) -> None:
        """Train from the newest checkpoint, or from the beginning, and save the weights."""
        from train_adapters.grpo.trl_trainer import EpisodesTrainer, StepParts, trl_config

        checkpoint = newest_checkpoint(self._folder / CHECKPOINTS)
        first = 0 if checkpoint is None else checkpoint.updates // self._grpo.minibatches
        self._go_on_from(first)
        _measure_anew()
        policy = {"scope": "full", "noise": "full", "rank": None, "restore": "subtract"}  # no masters beside it
        with self._model(self._config.model, "float32", **policy) as model:
            assert isinstance(model, TransformersModel)
            model.network.requires_grad_(True)
            model.on_written = self._keep
            args = trl_config(self._grpo, self._config.sampling, self._folder / CHECKPOINTS, self._config.seed, dtype)
            parts = StepParts(
                lambda step, places: self._rollouts(model, step, places),
                lambda step: batch_stream(self._config.seed, step, _NAME, "order"),
                self._told,
            )
            trainer = EpisodesTrainer(model.network, model.tokenizer, args, self._grpo, self._places(), parts)
            self._parts.log.write_file("trl.json", args.to_json_string() + "\n")
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint.folder))
            self._save(model)
        shutil.rmtree(self._folder / CHECKPOINTS, ignore_errors=True)

    def _go_on_from(self, step: int) -> None:
        lost = self._recorded.go_on_from(step)
        if self._earlier:
            self._note("go_on", step=step)
            again = f"; {lost} steps after it are done again" if lost else ""
            self._parts.notify(f"GRPO goes on after step {step} of {self._steps}{again}")

    def _save(self, model: LanguageModel) -> None:
        """A folder of that name holds a whole checkpoint or is not there."""
        part = self._folder / f"{MODEL}.part"
        shutil.rmtree(part, ignore_errors=True)
        model.save(part)
        part.rename(self._folder / MODEL)

    def _keep(self, seed: int, prompt: list[int], drawn: list[int]) -> None:
        self._written[seed] = prompt, drawn

    def _places(self) -> list[int]:
        """The tasks of all steps, in the order of the split, from its beginning again after its end."""
        count = len(self._parts.tasks["train"])
        return [place % count for place in range(self._steps * self._grpo.prompts)]

    def _rollouts(self, model: LanguageModel, step: int, places: Sequence[int]) -> list[Example]:
        """Play the groups of a step."""
        tasks = [self._parts.tasks["train"][place] for place in places]
        listener, seed = self._parts.listener, self._config.seed
        listener.on_rollouts(f"GRPO, step {step + 1} of {self._steps}", self._grpo.step_rollouts)
        self._written.clear()
        adapter, time = self._parts.adapter, Timekeeper(model, None, Timings())
        table = Table(adapter, model, seed, time, listener.on_episodes, pace=self._config.pace)
        jobs = [Job(task, sample, None) for task in tasks for sample in range(self._grpo.group)]
        place = f"{_NAME}/{step}"
        together = waves(model, jobs, side_by_side(adapter))
        self._episodes = [episode for wave in together for episode in play(table, wave, place)]
        self._check(tasks)
        return examples_of(self._episodes, self._grpo.group, self._written, seed, place)

    def _check(self, tasks: Sequence[AgentTask]) -> None:
        """Stop where nothing works."""
        if any(episode.ending.counts for episode in self._episodes):
            return
        first = self._episodes[0]
        raise UserError(
            f"All {len(self._episodes)} episodes of a GRPO step on tasks {tasks[0].id} to {tasks[-1].id} failed, and "
            f"not by the agent's fault: {first.reason} ({first.ending.value}). Mend it, then go on with: "
            f"eoh-esopt {_COMMAND} --resume {self._folder.parent}"
        )

    def _told(self, learning: Any) -> None:
        report = step_report(learning, self._episodes, self._grpo.group)
        self._recorded.take(self._note("step", **report.as_dict(), peak_bytes=peak_bytes()))
        self._parts.notify(step_line(report, self._steps))

    def _note(self, kind: str, **fields: Any) -> events.Event:
        bytes_before = self._recorded.inference_bytes
        memory = {} if bytes_before is None else {"inference_bytes": bytes_before}
        return self._parts.log.append(kind, **fields, **memory, seconds=round(self._clock(), 1))

    @property
    def _steps(self) -> int:
        assert self._grpo.steps is not None
        return self._grpo.steps

    def _summary(self, model: LanguageModel, facts: events.Event) -> dict[str, Any]:
        recorded, parameters = self._recorded, model.parameters
        steps = recorded.steps
        ledger = _ledger(steps, recorded.evaluations, self._grpo)
        return {
            "adapter": self._config.adapter,
            "evaluations": recorded.evaluations,
            "ledger": ledger.as_dict(),
            "flops": None if parameters is None else model_flops(parameters, ledger.tokens).grpo,
            "learning_seconds": round(sum(one["learning_seconds"] for one in steps), 1),
            "memory": {
                "inference_bytes": recorded.inference_bytes,
                "peak_bytes": max(one["peak_bytes"] for one in steps),
            },
            "parameters": parameters,
            "weights_before": facts["base_checksum"],
            "weights_after": model.checksum(),
            "seconds": round(self._clock(), 1),
            "seed": self._config.seed,
        }


def _measure_anew() -> None:
    """Begin to measure memory, once models that are done with have left it: they and their trainers form cycles."""
    gc.collect()
    reset_peak()


def _ledger(steps: Sequence[events.Event], evaluations: Sequence[events.Event], grpo: GrpoConfig) -> TrainLedger:
    counted = {name: sum(one[name] for one in steps) for name in ("episodes", "prompt_tokens", "new_tokens")}
    return TrainLedger(
        **counted,
        model_calls=sum(one["turns"] for one in steps),
        evaluation_episodes=sum(sum(one["endings"].values()) for one in evaluations),
        evaluation_tokens=sum(one["tokens"] for one in evaluations),
        updates=len(steps) * grpo.minibatches,
    )
