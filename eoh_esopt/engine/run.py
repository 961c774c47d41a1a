"""From settings to a finished run: loads what a search works with, begins or resumes it, writes the summary."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, fields, replace
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from eoh_esopt.engine import events
from eoh_esopt.engine.backend import load_model
from eoh_esopt.engine.batches import Batches, Parts
from eoh_esopt.engine.config import MOVABLE, RunConfig, load_config
from eoh_esopt.engine.given import check_given, given_programs, keep_given
from eoh_esopt.engine.history import History
from eoh_esopt.engine.listener import Listener
from eoh_esopt.engine.methods import operators_of
from eoh_esopt.engine.recorded import Recorded
from eoh_esopt.engine.search import Search
from eoh_esopt.models.chat import PLAIN, ChatSettings
from eoh_esopt.models.protocol import LanguageModel, Sampling
from eoh_esopt.models.selftest import self_test
from eoh_esopt.models.weights import drifts
from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.momentum import momentum
from operators.task import SeedHeuristic
from problems.base import Problem
from problems.references import ceiling_of, references

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Notify = Callable[[str], None]


def start(
    config: RunConfig,
    out: Path,
    *,
    workers: int,
    listener: Listener,
    notify: Notify,
    given: Sequence[SeedHeuristic] = (),
) -> dict[str, Any]:
    """Begin a run in a new folder and work until its budget is spent.

    Args:
        given: programs that take the place of the i1 batch; they are kept in the run's folder.

    Returns:
        The run's summary, as in `summary.json`.

    Raises:
        UserError: a setting, the model, the folder or the given programs cannot be used. Nothing is written before
            the settings, the sandbox and the model have been checked.
    """
    _spec(config).build()
    events.check_new(out)
    with _sandbox(config, workers) as evaluator:
        check_given(given, config, evaluator, notify)
        with loaded(config, notify) as (model, config), events.claim(out, new=True):
            events.write_atomically(out / events.CONFIG, config.to_json())
            keep_given(given, out)
            return _work(config, out, model, evaluator, listener, notify)


def resume(
    out: Path, *, workers: int, listener: Listener, notify: Notify, moved: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Go on with a run where its log ends; a finished run is left as it is.

    Args:
        moved: settings of `MOVABLE` that are others now: where a server is, and how long it may take.

    Raises:
        UserError: the folder holds no run, is in use, or the settings or the model's weights are not those it began
            with.
    """
    with events.claim(out, new=False):
        config = replace(load_config(out / events.CONFIG), **(moved or {}))
        earlier = events.read_events(out)
        check_settings(earlier, config, out)
        if earlier and earlier[-1]["event"] == "end":
            notify(f"The run in {out} is finished: there is nothing to go on with.")
            return {name: value for name, value in earlier[-1].items() if name != "event"}
        with _sandbox(config, workers) as evaluator, loaded(config, notify) as (model, _):
            return _work(config, out, model, evaluator, listener, notify)


@contextmanager
def loaded(
    config: RunConfig, notify: Notify, settings: ChatSettings = PLAIN
) -> Iterator[tuple[LanguageModel, RunConfig]]:
    """The model of a run, tested, and the settings with the defaults that depend on it filled in.

    Raises:
        UserError: the model cannot be loaded, reached or perturbed.
    """
    with closing(load_model(config, notify, settings)) as model:
        yield model, tested(model, config, notify)


def tested(model: LanguageModel, config: RunConfig, notify: Notify) -> RunConfig:
    """The settings with the defaults that depend on the model filled in; a model that is to learn is tested first.

    Raises:
        UserError: the model cannot be perturbed.
    """
    config = config.resolved(model.parameters)
    if config.learns:
        assert config.sigma is not None
        change = self_test(model, config.sigma, exact=not drifts(config.restore))
        back = "nearly the same weights" if drifts(config.restore) else "the same bits"
        notify(f"Self-test passed: a direction moves the logits by up to {change:.3g}, a revert brings back {back}")
    return config


def _spec(config: RunConfig) -> ProblemSpec:
    return ProblemSpec.named(config.problem, data=config.data)


def _sandbox(config: RunConfig, workers: int) -> Evaluator:
    limits = Limits(wall_s=config.timeout)
    return Evaluator(_spec(config), workers=workers, limits=limits, isolation=config.isolation)


def _work(
    config: RunConfig, out: Path, model: LanguageModel, evaluator: Evaluator, listener: Listener, notify: Notify
) -> dict[str, Any]:
    problem, given = _spec(config).build(), given_programs(config, out)
    earlier = events.read_events(out) if (out / events.EVENTS).exists() else []
    notify("Taking the checksum of the weights")
    base = model.checksum()
    check_base(earlier, base, out)
    clock = working_clock(earlier)
    with events.open_log(out) as log:
        kind, isolation = "resume" if earlier else "start", evaluator.isolation_level
        facts = note_start(log, kind, config, model, base, isolation=isolation, **_facts(problem))
        listener.on_start(facts)
        description = model.describe()
        history = History(config.model, base, config.scope, config.restore, description["dtype"], rank=config.lowrank)
        parts = Parts(
            task=problem.task,
            operators=operators_of(config, problem.task),
            momentum=momentum(config.momentum),
            model=model,
            evaluator=evaluator,
            log=log,
            recorded=Recorded(earlier),
            listener=listener,
            clock=clock,
            given=given,
        )
        search = Search(config, parts, history)
        search.run()
        summary = note_end(log, search, model, facts, clock())
    listener.on_end(summary)
    return summary


def _facts(problem: Problem) -> dict[str, Any]:
    """What reports say of the objective: its name, its sense, and known values as people read them."""
    known = references(problem)
    ceiling = ceiling_of(known)
    return {
        "measure": problem.measure,
        "maximise": problem.maximise,
        "references": {one.name: one.mean for one in known if one.mean is not None},
        "ceiling": ceiling.name if ceiling is not None and ceiling.mean is not None else None,
    }


def check_settings(
    earlier: list[events.Event], config: DataclassInstance, out: Path, movable: Collection[str] = MOVABLE
) -> None:
    """Refuse settings that are not those a run began with, apart from the movable ones.

    Raises:
        UserError: it names the setting and both values.
    """
    if not earlier:
        return
    if earlier[0]["event"] != "start":
        raise UserError(f"{out / events.EVENTS} does not begin with a run's start. Restore the file from a copy.")
    defaults = {one.name: one.default for one in fields(config)}  # of settings that older runs did not have
    began, now = {**defaults, **earlier[0]["config"]}, asdict(config)
    began["sampling"] = {**asdict(Sampling()), **earlier[0]["config"].get("sampling", {})}
    for name in sorted(now.keys() - set(movable)):
        if began[name] != now[name]:
            raise UserError(
                f"{out / events.CONFIG} has {name} {now[name]!r}, but the run began with {began[name]!r}. "
                "Put it back, or begin a new run with --out."
            )


def check_base(earlier: list[events.Event], base: str, out: Path) -> None:
    """Refuse weights that are not those a run began with.

    Raises:
        UserError: it names both checksums.
    """
    if earlier and earlier[0]["base_checksum"] != base:
        raise UserError(
            f"The run in {out} began with weights {earlier[0]['base_checksum'][:12]}, "
            f"but the model has {base[:12]} now. Bring back the model it began with, or begin a new run."
        )


def working_clock(earlier: list[events.Event]) -> Callable[[], float]:
    """Seconds of work over all sittings of the run; the time of a batch that a kill cut short is not known."""
    before = max((event.get("seconds", 0.0) for event in earlier), default=0.0)
    began = time.monotonic()
    return lambda: before + time.monotonic() - began


def note_start(
    log: events.EventLog, kind: str, config: DataclassInstance, model: LanguageModel, base: str, **facts: Any
) -> events.Event:
    """Log what a search begins with.

    Args:
        kind: "start" or "resume".
        base: checksum of the weights.
        facts: of the problem and of how it is evaluated.
    """
    return log.append(
        kind,
        time=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        config=asdict(config),
        model=model.describe(),
        base_checksum=base,
        **facts,
        machine=machine(),
    )


def note_end(
    log: events.EventLog, search: Batches, model: LanguageModel, facts: events.Event, seconds: float
) -> dict[str, Any]:
    """Write the files of a search that has ended, and log its end.

    Returns:
        The summary; "best" is None where no candidate was valid.
    """
    summary = _summary(search, model, facts, seconds)
    final = replace(search.history, final_checksum=summary["weights_after"])
    log.write_file(events.HISTORY, final.to_json())
    log.write_file(events.SUMMARY, json.dumps(summary, indent=1) + "\n")
    log.append("end", **summary)  # last, so that a run that is called finished has all its files
    return summary


def _summary(search: Batches, model: LanguageModel, facts: events.Event, seconds: float) -> dict[str, Any]:
    best = asdict(search.population[0]) if search.population else {}
    return {
        "best": {name: best[name] for name in ("id", "operator", "idea", "objective")} if best else None,
        **{name: facts[name] for name in ("measure", "maximise", "references", "ceiling")},
        "ledger": search.ledger.as_dict(),
        "timings": search.time.timings.as_dict(),
        "parameters": facts["model"].get("parameters"),
        "weights_before": facts["base_checksum"],
        "weights_after": model.checksum(),
        "drift": model.drift(),
        "seconds": round(seconds, 1),
        **{name: facts["config"][name] for name in ("seed", "noise", "rank")},
    }


def machine() -> dict[str, Any]:
    """What results may depend on: processor, cores, and the versions of the libraries that compute."""
    packages = ("eoh-esopt", "torch", "transformers", "tokenizers", "numpy", "numba")
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "packages": {name: version(name) for name in packages},
    }
