"""An attached run from its first check to its last file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from eoh_esopt.engine import events
from eoh_esopt.engine.batches import Parts
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.history import History
from eoh_esopt.engine.listener import Listener
from eoh_esopt.engine.methods import ablated, learning, sigma_schedule
from eoh_esopt.engine.recorded import Recorded
from eoh_esopt.engine.run import loaded, note_end, note_start, tested
from eoh_esopt.hosts.evaluation import HostEvaluation, SandboxEvaluation
from eoh_esopt.hosts.groups import Unwritten
from eoh_esopt.hosts.host import Host, HostFacts
from eoh_esopt.hosts.plan import explain
from eoh_esopt.hosts.preflight import check_evaluation
from eoh_esopt.hosts.session import Session
from eoh_esopt.hosts.settings import Settings, spent
from eoh_esopt.hosts.untouched import untouched
from eoh_esopt.models.protocol import LanguageModel
from operators.momentum import momentum
from operators.search import LEARNING, Operator
from operators.task import Task

Notify = Callable[[str], None]


def run(host: Host, settings: Settings, model: LanguageModel | None, notify: Notify) -> dict[str, Any]:
    """Run the host's search with the model learning from it.

    Args:
        host: the user's object.
        settings: what the user asked for.
        model: a model that is loaded already; None for the one that the settings name.
        notify: says a line to the user.

    Returns:
        The summary, as in `summary.json`.

    Raises:
        UserError: a setting, the user's evaluation, the model or the folder cannot be used. Nothing was asked of the
            model by then.
    """
    facts = host.facts
    for line in explain(facts, settings):
        notify(line)
    evaluate = SandboxEvaluation if settings.evaluator == "sandbox" else HostEvaluation
    with untouched(), evaluate(host, facts) as evaluator:  # before the model is loaded: processes are forked from here
        check_evaluation(facts, evaluator, notify, probe=settings.evaluator == "sandbox")
        with _model(settings, model, notify) as (model, config), _folder(settings, facts) as folder:
            settings = settings.resolved(config, facts)
            if settings.run.prefill == "signature":
                notify(
                    f"Replies are begun with the signature of {facts.function}: the prompts stay {facts.name}'s own."
                )
            return _search(host, facts, settings, model, evaluator, folder, notify)


@contextmanager
def _model(
    settings: Settings, model: LanguageModel | None, notify: Notify
) -> Iterator[tuple[LanguageModel, RunConfig]]:
    if model is None:
        with loaded(settings.run, notify) as pair:
            yield pair
    else:
        yield model, tested(model, settings.run, notify)


@contextmanager
def _folder(settings: Settings, facts: HostFacts) -> Iterator[Path]:
    """The claimed folder of our files: the one that was asked for, or the first free one in the host's."""
    folder = settings.output
    if folder is None:
        numbers = iter(range(2, 1_000_000))
        folder = facts.folder / "esopt"
        while events.holds_run(folder):
            folder = facts.folder / f"esopt-{next(numbers)}"
    with events.claim(folder, new=True):
        yield folder


def _search(
    host: Host,
    facts: HostFacts,
    settings: Settings,
    model: LanguageModel,
    evaluator: SandboxEvaluation | HostEvaluation,
    folder: Path,
    notify: Notify,
) -> dict[str, Any]:
    config, base = settings.run, model.checksum()
    began = time.monotonic()
    events.write_atomically(folder / events.CONFIG, config.to_json())
    with events.open_log(folder) as log:
        start = note_start(
            log,
            "start",
            config,
            model,
            base,
            isolation=evaluator.isolation_level,
            measure="objective",
            maximise=facts.maximise,
            references={},
            ceiling=None,
            host={"name": facts.name, **settings.as_fields()},
        )
        dtype = str(start["model"].get("dtype", config.dtype))
        history = History(config.model, base, config.scope, config.restore, dtype, rank=config.lowrank)
        parts = Parts(
            task=_task(facts),
            operators=_operators(facts, settings),
            momentum=momentum(config.momentum),
            model=model,
            evaluator=evaluator,
            log=log,
            recorded=Recorded([]),
            listener=Listener(),
            clock=lambda: time.monotonic() - began,
        )
        session = Session(settings, facts, parts, history, notify)
        host.drive(session)
        session.end()
        summary = note_end(log, session, model, start, time.monotonic() - began)
    _report(session, summary, folder, notify)
    return summary


def _task(facts: HostFacts) -> Task:
    """What our own code needs to know of the host's problem: the prompts are the host's."""
    arguments = facts.arguments or ()
    return Task(
        name=facts.problem,
        description="",
        function=facts.function,
        arguments=arguments,
        signature=f"def {facts.function}({', '.join(arguments)}):",
        docstring="",
        imports="import numpy as np",
        ideas=(),
        seeds=(),
    )


def _operators(facts: HostFacts, settings: Settings) -> dict[str, Operator]:
    """Those that the model learns from; sigma runs over the generations that the host plans."""
    config = settings.run
    if not config.learns:
        return {}
    sigma = sigma_schedule(config, settings.generations(facts))
    return {
        name: ablated(config, replace(learning(config, Unwritten(name)), sigma=sigma))
        for name in LEARNING
        if name in facts.operators
    }


def _report(session: Session, summary: dict[str, Any], folder: Path, notify: Notify) -> None:
    ledger = session.ledger
    costs = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in spent(ledger).items())
    notify(f"Spent: {costs}.")
    before, after = summary["weights_before"][:12], summary["weights_after"][:12]
    notify(f"Updates {ledger.updates}, skipped {ledger.skips}; weights {before} before, {after} after.")
    if summary["best"] is not None:
        sign = -1 if summary["maximise"] else 1
        notify(f"Best objective {sign * summary['best']['objective']:.6g}, in {folder / events.BEST}")
    notify(f"History of the weights and event log in {folder}")
