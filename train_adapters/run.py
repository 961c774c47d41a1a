"""From settings to a finished training: loads what it works with, begins or resumes it, writes the summary."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from eoh_esopt.engine import events
from eoh_esopt.engine.config import read_config
from eoh_esopt.engine.history import History
from eoh_esopt.engine.run import Notify, check_base, check_settings, loaded, note_start, working_clock
from eoh_esopt.experiments.flops import model_flops
from eoh_esopt.models.protocol import LanguageModel
from operators.errors import UserError
from train_adapters.adapter import Adapter, notes_of
from train_adapters.config import TrainConfig
from train_adapters.listener import TrainListener
from train_adapters.memory import peak_bytes
from train_adapters.recorded import RecordedTraining
from train_adapters.skills.begin import begun_with, check_begun_with, endpoint
from train_adapters.skills.versions import FOLDER, NO_SKILL, Skill, keep, kept
from train_adapters.tasks import Tasks, check_batch, check_tasks, digests, longest_reply, prepared
from train_adapters.trainer import Trainer, TrainParts

COMMAND = "train"


def start(config: TrainConfig, out: Path, *, listener: TrainListener, notify: Notify) -> dict[str, Any]:
    """Begin a training in a new folder and work until its last generation and the evaluations after it.

    Returns:
        The summary, as in `summary.json`.

    Raises:
        UserError: a setting, the data, the model or the folder cannot be used. Nothing is written before they have
            been checked.
    """
    adapter, tasks = prepared(config.adapter, config.adapter_settings)
    for note in notes_of(adapter):
        notify(note)
    check_batch(config.batch, adapter, tasks)
    events.check_new(out)
    config = config.for_replies_of(_longest(config, adapter, tasks)).resolved()
    config, text = begun_with(config)
    with _writer(config, notify) as writer, _loaded(config, notify) as model, events.claim(out, new=True):
        if text:
            keep(out / FOLDER, Skill(0, text))
        events.write_atomically(out / events.CONFIG, config.to_json())
        return work(config, out, model, adapter, tasks, listener, notify, writer)


def resume(
    out: Path, *, listener: TrainListener, notify: Notify, moved: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Go on with a training where its log ends; a finished one is left as it is.

    Args:
        moved: settings of `eoh_esopt.engine.config.MOVABLE` that are others now.

    Raises:
        UserError: the folder holds no training, is in use, or the settings, the data or the model's weights are not
            those it began with.
    """
    with events.claim(out, new=False):
        earlier = events.read_events(out)
        if earlier and "adapter" not in earlier[0].get("config", {}):
            raise UserError(f"{out} holds a search, not a training. Go on with it by: eoh-esopt run --resume {out}")
        config = replace(read_config(out / events.CONFIG, TrainConfig), **(moved or {}))
        check_settings(earlier, config, out)
        if earlier and earlier[-1]["event"] == "end":
            notify(f"The training in {out} is finished: there is nothing to go on with.")
            return {name: value for name, value in earlier[-1].items() if name != "event"}
        adapter, tasks = prepared(config.adapter, config.adapter_settings)
        for note in notes_of(adapter):
            notify(note)
        check_tasks(earlier, tasks, out)
        check_begun_with(config, out)
        with _writer(config, notify) as writer, _loaded(config, notify) as model:
            return work(config, out, model, adapter, tasks, listener, notify, writer)


@contextmanager
def _loaded(config: TrainConfig, notify: Notify) -> Iterator[LanguageModel]:
    with loaded(config.as_run, notify, config.chat) as (model, _):
        yield model


def _longest(config: TrainConfig, adapter: Adapter, tasks: Tasks) -> int:
    """Most tokens of a reply: the adapter's, and the skill's where the model in training revises it."""
    revises = config.revises and config.skill_base_url is None
    return max(longest_reply(adapter, tasks), config.skill_tokens if revises else 0)


@contextmanager
def _writer(config: TrainConfig, notify: Notify) -> Iterator[LanguageModel | None]:
    """What revises the skill, if it is not the model in training."""
    name, url = config.skill_model, config.skill_base_url
    if not config.revises or name is None or url is None:
        yield None
        return
    timeout_s, max_batch = config.request_timeout, config.max_batch
    with closing(endpoint(name, url, config.skill_tokens, notify, timeout_s=timeout_s, max_batch=max_batch)) as model:
        yield model


def work(
    config: TrainConfig,
    out: Path,
    model: LanguageModel,
    adapter: Adapter,
    tasks: Tasks,
    listener: TrainListener,
    notify: Notify,
    writer: LanguageModel | None = None,
) -> dict[str, Any]:
    """Train in a claimed folder, from where its log ends.

    Args:
        config: settings with every default filled in.
        out: the folder.
        model: plays, and learns.
        adapter: of the environment.
        tasks: by split.
        listener: hears of the progress.
        notify: takes lines for people.
        writer: revises the skill; None for the model itself.

    Returns:
        The summary.

    Raises:
        UserError: the weights are not those the training began with, the folder cannot be written, or the environment
            fails.
    """
    earlier = events.read_events(out) if (out / events.EVENTS).exists() else []
    notify("Taking the checksum of the weights")
    base = model.checksum()
    check_base(list(earlier), base, out)
    clock = working_clock(list(earlier))
    with events.open_log(out, COMMAND) as log:
        kind = "resume" if earlier else "start"
        facts = note_start(log, kind, config, model, base, dataset=digests(tasks), **_planned(config))
        listener.on_start(facts)
        description = model.describe()
        history = History(config.model, base, config.scope, config.restore, description["dtype"], rank=config.rank)
        recorded = RecordedTraining(earlier)
        skill = NO_SKILL if config.skill_sha256 is None else kept(out / FOLDER, 0, config.skill_sha256)
        parts = TrainParts(adapter, tasks, model, log, recorded, listener, clock, skill, writer)
        trainer = Trainer(config, parts, history)
        trainer.run()
        summary = _end(log, trainer, model, facts, clock())
    listener.on_end(summary)
    return summary


def _end(
    log: events.EventLog, trainer: Trainer, model: LanguageModel, facts: events.Event, seconds: float
) -> dict[str, Any]:
    """Write the files of a training that has ended, and log its end."""
    summary = _summary(trainer, model, facts, seconds)
    final = replace(trainer.history, final_checksum=summary["weights_after"])
    log.write_file(events.HISTORY, final.to_json())
    log.write_file(events.SUMMARY, json.dumps(summary, indent=1) + "\n")
    log.append("end", **summary)  # last, so that a run that is called finished has all its files
    return summary


def _planned(config: TrainConfig) -> dict[str, Any]:
    """Generations, where revisions of the skill take some of the budget."""
    return {"planned": config.plan.generations} if config.revises else {}


def _skill(skill: Skill) -> dict[str, str] | None:
    return {"file": f"{FOLDER}/{skill.file}", "sha256": skill.sha256} if skill.text else None


def _summary(trainer: Trainer, model: LanguageModel, facts: events.Event, seconds: float) -> dict[str, Any]:
    parameters, ledger = model.parameters, trainer.ledger
    flops = None if parameters is None else model_flops(parameters, ledger.tokens)
    return {
        "adapter": facts["config"]["adapter"],
        "evaluations": [{"generation": at, **one.as_dict()} for at, one in trainer.evaluations],
        "ledger": ledger.as_dict(),
        "flops": None if flops is None else flops.forward,
        "timings": trainer.time.timings.as_dict(),
        "memory": {"inference_bytes": trainer.inference_bytes, "peak_bytes": peak_bytes()},
        "parameters": parameters,
        "skill": _skill(trainer.skill),
        "weights_before": facts["base_checksum"],
        "weights_after": model.checksum(),
        "drift": model.drift(),
        "seconds": round(seconds, 1),
        "seed": facts["config"]["seed"],
    }
