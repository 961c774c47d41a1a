"""What a user asks of the plug-in: one frozen record, checked as a whole before anything is loaded or run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from eoh_esopt.engine.config import ENDPOINTS, RunConfig
from eoh_esopt.engine.events import holds_run
from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.hosts.host import HostFacts
from eoh_esopt.models.protocol import Sampling
from operators.errors import UserError
from operators.search import LEARNING

SCHEDULES = ("host", "paper")
EVALUATORS = ("sandbox", "host")
UNITS = ("attempts", "model_calls", "tokens", "evaluations")
PREFILLS = ("none", "signature")
_SAMPLING = {one.name for one in fields(Sampling)}

_HOSTS_OWN = {
    "problem": "the problem",
    "population": "its size of the population",
    "timeout": "the timeout of its problem",
    "isolation": "its evaluation",
    "data": "its data",
    "init_from": "its own start programs",
    "co_evolve": "its prompts",
}
"""Settings of a run of ours that a host decides, and what it decides them by."""


@dataclass(frozen=True)
class Settings:
    """What a user asks of the plug-in.

    Attributes:
        run: model, directions and learning, by the names of a run of ours.
        schedule: one of `SCHEDULES`: the host's own draw of operators, or the paper's batches.
        evaluator: one of `EVALUATORS`: processes of ours, or the host's machinery.
        budget: when to stop; None leaves that to the host.
        budget_unit: what the budget counts, one of `UNITS`, the start population included.
        output: the folder of our files, which must be new; None for one in the host's folder.
    """

    run: RunConfig
    schedule: str
    evaluator: str
    budget: int | None
    budget_unit: str
    output: Path | None

    def __post_init__(self) -> None:
        _choice("schedule", self.schedule, SCHEDULES)
        _choice("evaluator", self.evaluator, EVALUATORS)
        _choice("budget_unit", self.budget_unit, UNITS)
        if self.run.prefill is not None:
            _choice("prefill", self.run.prefill, PREFILLS)
        if self.budget is not None and self.budget < 1:
            raise UserError(f"budget must be at least 1, not {self.budget}.")

    def plan(self, facts: HostFacts) -> dict[str, int] | None:
        """Candidates of each operator in a generation of the paper's schedule; None for the host's own draw."""
        if self.schedule == "host":
            return None
        return {name: self.run.learning_batch if name in LEARNING else facts.population for name in facts.operators}

    def resolved(self, run: RunConfig, facts: HostFacts) -> Settings:
        """The same with the run's defaults filled in. Prompts are the host's, so suggestions cannot be begun."""
        begun = run.prefill != "none" and facts.arguments is not None
        return replace(self, run=replace(run, prefill="signature" if begun else "none"))

    def generations(self, facts: HostFacts) -> int:
        """Generations that the host plans, as far as its limit of attempts reaches; the last may be cut short."""
        if facts.limit is None:
            return facts.generations
        plan = self.plan(facts)
        size = facts.population if plan is None else sum(plan.values())
        return max(1, min(facts.generations, -(-facts.limit // size)))

    def left(self, ledger: Ledger) -> int | None:
        """How much of the budget is left, at least 0; None without a budget."""
        return None if self.budget is None else max(0, self.budget - spent(ledger)[self.budget_unit])

    def as_fields(self) -> dict[str, Any]:
        """What the log's start event holds beside the run's settings."""
        return {
            "schedule": self.schedule,
            "evaluator": self.evaluator,
            "budget": self.budget,
            "budget_unit": self.budget_unit,
        }


def spent(ledger: Ledger) -> dict[str, int]:
    """What was spent, by the units of a budget."""
    return {
        "attempts": ledger.start_candidates + ledger.candidates,
        "model_calls": ledger.model_calls,
        "tokens": ledger.prompt_tokens + ledger.new_tokens,
        "evaluations": ledger.evaluations,
    }


def settings_of(
    facts: HostFacts,
    *,
    model: str,
    backend: str,
    method: str | None,
    schedule: str,
    evaluator: str,
    budget: int | None,
    budget_unit: str,
    output: Path | None,
    given: Mapping[str, Any],
) -> Settings:
    """Put together and check what was asked for.

    Args:
        facts: of the host.
        model: its name or folder.
        backend: what runs it.
        method: "esopt-eoh" or "eoh"; None for what the backend can do.
        schedule, evaluator, budget, budget_unit, output: see `Settings`.
        given: further settings of a run.

    Raises:
        UserError: a setting is unknown, the host's to decide, or out of its range.
    """
    _check_names(given, facts)
    if method is None:
        method = "eoh" if backend in ENDPOINTS else "esopt-eoh"
    _choice("method", method, ("esopt-eoh", "eoh"))
    try:
        run = RunConfig(
            **{
                **_with_sampling(given),
                "problem": facts.problem,
                "model": model,
                "backend": backend,
                "method": method,
                "budget": _planned(facts, given),
                "population": facts.population,
                "timeout": facts.timeout,
                "isolation": "none",
            }
        )
    except UserError as error:
        raise UserError(_as_arguments(str(error))) from None
    except TypeError as error:
        raise UserError(f"A setting of attach() has a value of the wrong type: {error}.") from error
    if run.prefill == "signature" and facts.arguments is None:
        raise UserError(
            "prefill='signature' begins replies with the one function that is asked for, and the template of "
            f"{facts.problem} holds more than a plain function. Leave it out."
        )
    if run.learns and not set(facts.operators) & set(LEARNING):
        raise UserError(
            f"The operators {list(facts.operators)} hold neither m1 nor m2, which the model learns from. "
            "Add one of them, or attach with method='eoh' to keep the weights as they are."
        )
    if output is not None and holds_run(output):
        raise UserError(f"output {output} holds a run already. Choose another one, or leave it out.")
    return Settings(run, schedule, evaluator, budget, budget_unit, output)


def _planned(facts: HostFacts, given: Mapping[str, Any]) -> int:
    """Candidates of the search as the host plans it; a run of ours is told no fewer than one update takes."""
    least = given.get("directions", RunConfig.directions) * given.get("samples_per_direction", 1)
    return int(max(facts.population * len(facts.operators) * facts.generations, least))


def _with_sampling(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with those of the sampling, which may be given by their own names, put together."""
    own = {name: value for name, value in given.items() if name not in _SAMPLING}
    changes = {name: value for name, value in given.items() if name in _SAMPLING}
    if changes:
        own["sampling"] = replace(given.get("sampling", Sampling()), **changes)
    return own


def _check_names(given: Mapping[str, Any], facts: HostFacts) -> None:
    known = {one.name for one in fields(RunConfig)} | _SAMPLING
    for name in given:
        if name in _HOSTS_OWN:
            raise UserError(f"{name} is {facts.name}'s to set, by {_HOSTS_OWN[name]}. Leave it out of attach().")
        if name not in known:
            near = get_close_matches(name, known - _HOSTS_OWN.keys(), n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise UserError(f"attach() has no setting {name!r}. {hint}See docs/plug-in.md.")


def _as_arguments(message: str) -> str:
    """A message about options of the command line as one about arguments."""
    return re.sub(r"--([a-z][a-z-]*)", lambda option: option[1].replace("-", "_"), message)


def _choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UserError(f"Unknown {name} {value!r}. Choose one of: {', '.join(allowed)}.")
