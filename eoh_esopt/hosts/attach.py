"""`attach` and `detach`: the two lines that a user adds to a script that runs another engine's search.

Attaching shadows the `run` of the user's object, in that object alone; detaching takes that away. Nothing of the host
is changed otherwise: its module names are borrowed while its search is built or runs, and given back.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eoh_esopt.hosts import running
from eoh_esopt.hosts.host import Host
from eoh_esopt.hosts.settings import Settings, settings_of
from eoh_esopt.models.fetch import check_name
from eoh_esopt.models.protocol import LanguageModel
from operators.errors import UserError

ADAPTERS = ("eoh02", "eoh01", "llm4ad")
"""Modules of this package, one a host; each has `recognise` and `SUPPORTS`."""


def attach(
    host: Any,
    *,
    model: str | Path | LanguageModel,
    backend: str = "transformers",
    schedule: str = "host",
    evaluator: str = "sandbox",
    budget: int | None = None,
    budget_unit: str = "attempts",
    output: str | Path | None = None,
    method: str | None = None,
    notify: Callable[[str], None] | None = None,
    **settings: Any,
) -> None:
    """Have the model learn while the host's search runs: call `host.run()` afterwards as ever.

    Args:
        host: the user's search object: `EoH(...)` of EoH 0.2, `eoh.EVOL(paras)` of EoH 0.1,
            `llm4ad.method.eoh.EoH(...)` of LLM4AD.
        model: name or folder of the model that writes the candidates in place of the host's, or one that is loaded.
        backend: what runs it, as for `eoh-esopt run`; weights behind "openai" stay as they are.
        schedule: "host" keeps the host's own draw of operators, "paper" runs e1, e2, m1 and m2 in batches with the
            population renewed after each.
        evaluator: "sandbox" runs the problem's evaluation in processes of ours, "host" as the host does.
        budget: when to stop; None for when the host stops.
        budget_unit: what it counts: attempts, model_calls, tokens or evaluations.
        output: a new folder for our event log and history; None for one in the host's folder of results.
        method: "esopt-eoh" learns, "eoh" keeps the weights; None for what the backend can do.
        notify: takes each line that is said; None to print them.
        settings: any other setting of a run: seed, directions, samples_per_direction, scope, sigma, alpha, reward,
            dtype, max_new_tokens, ... See `eoh_esopt.engine.config.RunConfig`.

    Raises:
        UserError: the host is unknown, attached already or has run, or a setting cannot be used.
    """
    found = find_host(host)
    if isinstance(vars(host).get("run"), _AttachedRun):
        raise UserError("This search has been attached already. Call detach() first, or make a new one.")
    found.check()
    if isinstance(model, str | Path) and backend in ("transformers", "vllm"):
        check_name(str(model))
    loaded = None if isinstance(model, str | Path) else model
    asked = settings_of(
        found.facts,
        model=str(loaded.describe()["model"] if loaded is not None else model),
        backend=backend,
        method=method,
        schedule=schedule,
        evaluator=evaluator,
        budget=budget,
        budget_unit=budget_unit,
        output=None if output is None else Path(output),
        given=settings,
    )
    host.run = _AttachedRun(found, asked, loaded, notify or _say)


def detach(host: Any) -> None:
    """Take the plug-in off a search: it is as it was before `attach`.

    Raises:
        UserError: it is not attached.
    """
    if not isinstance(getattr(host, "__dict__", {}).get("run"), _AttachedRun):
        raise UserError("This search is not attached: there is nothing to detach.")
    del host.run


def find_host(host: object) -> Host:
    """The adapter for a user's object, found by what it can do.

    Raises:
        UserError: no adapter knows it.
    """
    supported = []
    for name in ADAPTERS:
        adapter = importlib.import_module(f"{__package__}.{name}")
        found: Host | None = adapter.recognise(host)
        if found is not None:
            return found
        supported.append(adapter.SUPPORTS)
    kind = type(host)
    raise UserError(
        f"Cannot attach to {kind.__module__}.{kind.__qualname__}: it is none of the supported searches. "
        f"Supported: {'; '.join(supported)}."
    )


class _AttachedRun:
    """What takes the place of a search's `run`."""

    def __init__(
        self, host: Host, settings: Settings, model: LanguageModel | None, notify: Callable[[str], None]
    ) -> None:
        self._host, self._settings, self._model, self._notify = host, settings, model, notify
        self._has_run = False

    def __call__(self) -> None:
        """Run the search, once.

        Raises:
            UserError: it has run, or as `running.run`.
        """
        if self._has_run:
            raise UserError("This search has run already. Make a new one and attach to that.")
        self._has_run = True
        running.run(self._host, self._settings, self._model, self._notify)


def _say(line: str) -> None:
    print(f"eoh-esopt: {line}", flush=True)
