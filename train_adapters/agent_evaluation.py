"""Evaluation of an agent by itself: a model as it is, or as a history has made it, on the tasks of a split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from eoh_esopt.engine.backend import load_model
from eoh_esopt.engine.config import RunConfig, read_config
from eoh_esopt.engine.events import CONFIG
from eoh_esopt.engine.history import History, load_history
from eoh_esopt.engine.replay import replay_on
from eoh_esopt.engine.run import Notify
from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.chat import ChatSettings
from eoh_esopt.models.protocol import LanguageModel, Sampling
from operators.errors import UserError
from operators.records import Update
from train_adapters.adapter import Adapter, AgentTask, notes_of, side_by_side, success_threshold
from train_adapters.config import TrainConfig
from train_adapters.evaluation import Evaluation, evaluated
from train_adapters.pace import Told
from train_adapters.rollout import Job, Table, play, waves
from train_adapters.skills.inject import with_skill
from train_adapters.skills.versions import Skill, read_skill
from train_adapters.tasks import longest_reply, prepared

Progress = Callable[[Iterable[Update]], Iterable[Update]]


@dataclass(frozen=True)
class AgentRequest:
    """What to evaluate.

    Attributes:
        adapter: name of a shipped adapter, or the path of the file that defines one.
        adapter_settings: what it is made with.
        split: which tasks.
        repeats: episodes of each task, at least 1.
        limit: the first so many tasks; None for all.
        seed: of the replies.
        sampling: how tokens are drawn; its limit of tokens is the adapter's.
        history: run's folder or history file whose updates are applied first; None for the model as it is.
        thinking: whether a model that can think does so before it answers.
        model: settings of the model by name, as `RunConfig` has them; `model` among them unless there is a history.
        skill: file of the skill that the prompts show; None for none.
    """

    adapter: str
    adapter_settings: Mapping[str, Any]
    split: str
    repeats: int
    limit: int | None
    seed: int
    sampling: Sampling
    thinking: bool
    history: Path | None
    model: Mapping[str, Any]
    skill: Path | None = None


def training_of(history: Path | None) -> TrainConfig:
    """The settings of the training that a history is of, or else those that trainings have by default.

    Raises:
        UserError: the training's settings are damaged, or another release's.
    """
    folder = history if history is None or history.is_dir() else history.parent
    file = None if folder is None else folder / CONFIG
    if file is None or not file.is_file() or '"adapter"' not in file.read_text(encoding="utf-8"):
        return TrainConfig("", "")  # no training: the history alone, or a search's
    return read_config(file, TrainConfig)


def evaluate_agent(request: AgentRequest, *, told: Told, notify: Notify, progress: Progress) -> Evaluation:
    """Load the model and play.

    Args:
        request: what to evaluate.
        told: hears how many more episodes are over.
        notify: takes lines for people.
        progress: wraps the updates of the history, to show a bar.

    Raises:
        UserError: the adapter, its data, the model or the history cannot be used, or the split has no tasks.
    """
    if request.repeats < 1:
        raise UserError(f"repeats must be at least 1, not {request.repeats}.")
    adapter, by_split = prepared(request.adapter, request.adapter_settings)
    for note in notes_of(adapter):
        notify(note)
    tasks = by_split.get(request.split, ())[: request.limit]
    if not tasks:
        known = ", ".join(f"{split} {len(found)}" for split, found in by_split.items())
        raise UserError(f"{adapter.name} has no tasks in split {request.split!r}. Tasks by split: {known}.")
    if request.skill is not None:
        skill = Skill(0, read_skill(request.skill))
        adapter = with_skill(adapter, skill.text)
        notify(f"The prompts show the skill {request.skill}, sha256 {skill.sha256[:12]}")
    history = None if request.history is None else load_history(request.history)
    config = _model_config(request, longest_reply(adapter, by_split), history)
    with closing(load_model(config, notify, ChatSettings(thinking=request.thinking))) as model:
        if history is not None:
            notify(replay_on(model, history, config.model, progress)[1])
        return played(model, adapter, tasks, request.split, request.repeats, request.seed, told)


def played(
    model: LanguageModel,
    adapter: Adapter,
    tasks: Iterable[AgentTask],
    split: str,
    repeats: int,
    seed: int,
    told: Told = lambda count: None,
) -> Evaluation:
    """Evaluate a model that is loaded already; the seeds of its replies are those of a training's evaluations."""
    table = Table(adapter, model, seed, Timekeeper(model, None, Timings()), told)
    found = []
    for repeat in range(repeats):
        jobs = [Job(task, repeat, None) for task in tasks]
        found.append(
            [episode for wave in waves(model, jobs, side_by_side(adapter)) for episode in play(table, wave, split)]
        )
    return evaluated(split, found, seed, success_threshold(adapter))


def _model_config(request: AgentRequest, new_tokens: int, history: History | None) -> RunConfig:
    """The settings that loading the model needs; the scope and the like are the history's."""
    given = dict(request.model)
    if history is not None:
        rank = {} if history.rank is None else {"noise": "lowrank", "rank": history.rank}
        given = {"model": history.model, **given, "scope": history.scope, "restore": history.restore, **rank}
        given["dtype"] = history.dtype
    if "model" not in given:
        raise UserError("No model is named: give --model, or --history.")
    known = {one.name for one in fields(RunConfig)}
    return RunConfig(
        problem=request.adapter,
        method="sample",
        budget=1,
        directions=1,
        sampling=replace(request.sampling, max_new_tokens=new_tokens),
        **{name: value for name, value in given.items() if name in known},
    )
