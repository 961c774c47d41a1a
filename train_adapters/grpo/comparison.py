"""Evolution strategies and the baseline at the same budget of rollouts: both arms run, and what they came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eoh_esopt.engine import events
from eoh_esopt.engine.config import read_config
from eoh_esopt.engine.run import Notify
from operators.errors import UserError
from train_adapters.config import TrainConfig
from train_adapters.grpo.arm import run_arm
from train_adapters.grpo.config import GrpoConfig, check_library, import_library, matched, unequal
from train_adapters.listener import TrainListener
from train_adapters.run import resume, start
from train_adapters.tasks import check_batch, prepared

ES, GRPO = "ES", "GRPO"
ES_FOLDER, GRPO_FOLDER = "es", "grpo"
SETTINGS = "settings.json"
RESULT = "comparison.json"
_TRAIN_SETTINGS = "train.json"


@dataclass(frozen=True)
class Score:
    """What an evaluation came to.

    Attributes:
        mean: reward, over tasks.
        low, high: 95 % interval over tasks; None where all tasks have the same reward.
    """

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Arm:
    """One arm: what it spent to learn, and what it learnt. Evaluations are not in what was spent.

    Attributes:
        name: `ES` or `GRPO`.
        rollouts: episodes to learn from.
        replies: written in them.
        tokens: read and written in them.
        flops: of the model by the paper's formula; None for a model of unknown size.
        seconds: of wall time, rollouts and updates.
        peak_bytes: most memory in use, up to the last update.
        inference_bytes: most memory in use in the evaluation before it.
        updates: made to the weights.
        before: validation split, before the first update; None where there is no such split.
        after: the same, after the last.
        test: test split, after the last.
        weights: checksum of the trained ones.
    """

    name: str
    rollouts: int
    replies: int
    tokens: int
    flops: int | None
    seconds: float
    peak_bytes: int
    inference_bytes: int | None
    updates: int
    before: Score | None
    after: Score | None
    test: Score | None
    weights: str


@dataclass(frozen=True)
class TrainingComparison:
    """Both arms.

    Attributes:
        adapter, model, seed: of both.
        arms: evolution strategies, then the baseline.
        unequal: whether their rollouts differ by more than 1 % and the comparison was forced.
        notes: what is to be known of it.
    """

    adapter: str
    model: str
    seed: int
    arms: tuple[Arm, ...]
    unequal: bool
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Everything, by name."""
        return asdict(self)


def begin(
    config: TrainConfig, grpo: GrpoConfig, out: Path, *, force: bool, listener: TrainListener, notify: Notify
) -> TrainingComparison:
    """Run both arms into a new folder.

    Args:
        config: of evolution strategies; the baseline takes all from it that is not its way to learn.
        grpo: of the baseline.
        out: the folder.
        force: whether arms with different budgets are compared all the same, and labelled so.
        listener: hears of the progress.
        notify: takes lines for people.

    Raises:
        UserError: trl is missing, the budgets differ, or a setting, the data, the model or the folder cannot be used.
            All but the model is checked before anything is run.
    """
    check_library()
    grpo = matched(config, grpo, force=force)
    adapter, tasks = prepared(config.adapter, config.adapter_settings)
    check_batch(max(config.batch, grpo.prompts), adapter, tasks)
    if (out / SETTINGS).exists():
        raise UserError(
            f"{out} holds a comparison already. Choose another --out, or go on with: "
            f"eoh-esopt compare-training --resume {out}"
        )
    events.check_new(out)
    import_library()
    _make(out)
    events.write_atomically(out / _TRAIN_SETTINGS, config.to_json())
    settings = {"grpo": asdict(grpo), "force": force}
    events.write_atomically(out / SETTINGS, json.dumps(settings, indent=1) + "\n")  # last: then it can be resumed
    return go_on(out, listener=listener, notify=notify)


def go_on(out: Path, *, listener: TrainListener, notify: Notify) -> TrainingComparison:
    """Run what is not finished of a comparison: a finished arm is read, an interrupted one goes on.

    Raises:
        UserError: the folder holds no comparison, or an arm cannot go on.
    """
    config, grpo, force = _settings(out)
    if not (out / RESULT).exists():
        import_library()  # before the first arm has been trained for nothing
    es, baseline = out / ES_FOLDER, out / GRPO_FOLDER
    notify(f"Evolution strategies, in {es}")
    if events.holds_run(es):
        resume(es, listener=listener, notify=notify)
    else:
        start(config, es, listener=listener, notify=notify)
    notify(f"GRPO, in {baseline}")
    run_arm(config, grpo, baseline, listener=listener, notify=notify)
    comparison = compared(out, force=force)
    events.write_atomically(out / RESULT, json.dumps(comparison.as_dict(), indent=1) + "\n")
    return comparison


def compared(out: Path, *, force: bool) -> TrainingComparison:
    """Put the finished arms of a folder side by side.

    Raises:
        UserError: an arm is not finished, the arms do not belong together, or their rollouts differ by more than 1 %
            and that is not forced.
    """
    logs = [events.read_events(out / folder) for folder in (ES_FOLDER, GRPO_FOLDER)]
    for log, folder in zip(logs, (ES_FOLDER, GRPO_FOLDER), strict=True):
        if not log or log[-1]["event"] != "end":
            raise UserError(
                f"The arm in {out / folder} is not finished. Go on with: eoh-esopt compare-training --resume {out}"
            )
    _check_same(logs[0][0], logs[1][0], out)
    arms = (_es(logs[0]), _grpo(logs[1]))
    different = unequal(arms[0].rollouts, arms[1].rollouts)
    if different and not force:
        raise UserError(
            f"The arms in {out} spent different budgets: {arms[0].rollouts:,} and {arms[1].rollouts:,} rollouts. "
            "Begin a comparison with equal ones, or one with --force."
        )
    config = logs[0][0]["config"]
    notes = tuple(_notes(arms, different))
    return TrainingComparison(config["adapter"], config["model"], config["seed"], arms, different, notes)


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make {out}: {error.strerror}. Choose another --out.") from error


def _settings(out: Path) -> tuple[TrainConfig, GrpoConfig, bool]:
    path = out / SETTINGS
    if not path.is_file():
        raise UserError(f"{out} holds no comparison: there is no {SETTINGS}. Give the folder that --out named.")
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        grpo, force = GrpoConfig(**settings["grpo"]), bool(settings["force"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: {error}. Restore it from a copy.") from error
    return read_config(out / _TRAIN_SETTINGS, TrainConfig), grpo, force


def _check_same(es: events.Event, grpo: events.Event, out: Path) -> None:
    """Both arms began with the same settings, data and weights."""
    for name in ("config", "dataset", "base_checksum"):
        if es[name] != grpo[name]:
            raise UserError(
                f"The arms in {out} do not belong together: their {name.replace('_', ' ')} differs. "
                "Begin a new comparison with --out."
            )


def _es(log: Sequence[events.Event]) -> Arm:
    generations = [event for event in log if event["event"] == "generation"]
    peak = max(one["peak_bytes"] for one in generations)
    return _arm(ES, log[-1], generation_seconds(log), peak)


def generation_seconds(log: Sequence[events.Event]) -> float:
    """Wall time of the generations of a training: its clock at the end of each, minus that of the event before it."""
    total, before = 0.0, 0.0
    for event in log:
        if event["event"] in ("generation", "evaluation"):
            total += event["seconds"] - before if event["event"] == "generation" else 0.0
            before = event["seconds"]
    return round(total, 1)


def _grpo(log: Sequence[events.Event]) -> Arm:
    return _arm(GRPO, log[-1], log[-1]["learning_seconds"], log[-1]["memory"]["peak_bytes"])


def _arm(name: str, summary: Mapping[str, Any], seconds: float, peak: int) -> Arm:
    ledger = summary["ledger"]
    return Arm(
        name=name,
        rollouts=ledger["episodes"],
        replies=ledger["model_calls"],
        tokens=ledger["prompt_tokens"] + ledger["new_tokens"],
        flops=summary["flops"],
        seconds=seconds,
        peak_bytes=peak,
        inference_bytes=summary["memory"]["inference_bytes"],
        updates=ledger["updates"],
        before=_score(summary, "val", first=True),
        after=_score(summary, "val", first=False),
        test=_score(summary, "test", first=False),
        weights=summary["weights_after"],
    )


def _score(summary: Mapping[str, Any], split: str, *, first: bool) -> Score | None:
    found = [one for one in summary["evaluations"] if one["split"] == split and (one["generation"] < 0) == first]
    return Score(*(found[-1][name] for name in ("mean", "low", "high"))) if found else None


def _notes(arms: Sequence[Arm], different: bool) -> list[str]:
    notes = []
    if different:
        notes.append("The arms spent different budgets of rollouts, and the comparison was forced.")
    if arms[0].before != arms[1].before:
        notes.append(
            "The evaluations before the training differ although the weights are the same: replies depend in their "
            "last bits on the machine's threads and libraries."
        )
    return notes
