"""EoH 0.1: `eoh.EVOL(paras)`.

While the search runs, two names are borrowed: `InterfaceEC` in the module of its loop, and `InterfaceLLM` in the module
that asks the model. Prompts, choice of parents, retries, population and files are the host's own.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from eoh_esopt.engine.batches import START
from eoh_esopt.engine.streams import batch_stream
from eoh_esopt.hosts.eoh_common import EMPTY, check_operators, individual, llm, parent_of, valid_ones
from eoh_esopt.hosts.host import BudgetSpent, Draft, HostFacts, Seam, Slot
from eoh_esopt.hosts.reading import read_reply
from eoh_esopt.hosts.seams import require, seam
from eoh_esopt.hosts.session import Session
from eoh_esopt.hosts.untouched import swapped
from eoh_esopt.sandbox.candidate import Progress
from operators.errors import UserError

SUPPORTS = "EoH 0.1 (an object of eoh.eoh.EVOL)"
MODULE = "eoh.eoh"
"""Where the class of the user's object stands."""

_ATTEMPTS = 5
"""How often EoH asks for one reply with a program in it."""


def recognise(host: object) -> Eoh01 | None:
    """The adapter for an object of EoH 0.1, or of a class derived from it; None for another one."""
    for kind in type(host).__mro__:
        module = sys.modules.get(kind.__module__)
        if module is not None and hasattr(module, "EVOL") and hasattr(host, "paras"):
            return Eoh01(host, module)
    return None


def seams(module: ModuleType) -> list[Seam]:
    """What the adapter takes hold of, and whether it is there. Imports the host's loop.

    Args:
        module: the one of `MODULE`.
    """
    loop, exchange, asking = _modules(module)
    interface, evolution = getattr(exchange, "InterfaceEC", None), getattr(asking, "Evolution", None)
    return [
        seam(getattr(module, "problems", None), "problems", "Probs", ("paras",)),
        seam(getattr(module, "methods", None), "methods", "Methods", ("paras", "problem")),
        seam(loop, "eoh.methods.eoh.eoh", "InterfaceEC"),
        seam(asking, "eoh.methods.eoh.eoh_evolution", "InterfaceLLM"),
        seam(interface, "InterfaceEC", "get_algorithm", ("self", "pop", "operator")),
        seam(interface, "InterfaceEC", "population_generation", ("self",)),
        seam(interface, "InterfaceEC", "population_generation_seed", ("self", "seeds", "n_p")),
        seam(interface, "InterfaceEC", "check_duplicate", ("self", "population", "code")),
        seam(interface, "InterfaceEC", "_get_alg", ("self", "pop", "operator")),
        seam(evolution, "Evolution", "_get_alg", ("self", "prompt_content")),
    ]


def _modules(module: ModuleType) -> tuple[ModuleType | None, ...]:
    """The modules of the loop, of its exchange with model and problem, and of the prompts; None where one is not."""
    package = module.__name__.rpartition(".")[0]
    found: list[ModuleType | None] = []
    for name in ("eoh", "eoh_interface_EC", "eoh_evolution"):
        try:
            found.append(importlib.import_module(f"{package}.methods.eoh.{name}"))
        except ImportError:
            found.append(None)
    return tuple(found)


def _process_began() -> float:
    """When this process was started, in seconds since the epoch; infinity where the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return math.inf
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


class Eoh01:
    """A user's search of EoH 0.1, see `eoh_esopt.hosts.host.Host`."""

    def __init__(self, host: Any, module: ModuleType) -> None:
        self._paras = host.paras
        self._module = module
        self._made: Any = None

    @property
    def _problem(self) -> Any:
        """The user's problem, or the one of EoH's own that the user named."""
        if self._made is None:
            self._made = self._module.problems.Probs(self._paras).get_problem()
        return self._made

    @property
    def facts(self) -> HostFacts:
        """What the user set up."""
        paras, prompts = self._paras, self._problem.prompts
        weights = dict(zip(paras.ec_operators, paras.ec_operator_weights, strict=True))
        return HostFacts(
            name="EoH 0.1",
            problem=paras.problem if isinstance(paras.problem, str) else type(self._problem).__name__,
            function=prompts.get_func_name(),
            arguments=tuple(prompts.get_func_inputs()),
            template="",
            operators=tuple(paras.ec_operators),
            population=paras.ec_pop_size,
            generations=paras.ec_n_pop - (paras.exp_continue_id if paras.exp_use_continue else 0),
            drawn={name: paras.ec_pop_size * min(1.0, weight) for name, weight in weights.items()},
            workers=paras.exp_n_proc,
            timeout=paras.eva_timeout,
            folder=Path(paras.exp_output_path) / "results",
        )

    def check(self) -> None:
        """Look whether the search can be attached to, see `eoh_esopt.hosts.host.Host`."""
        paras = self._paras
        if hasattr(paras, "llm_es_enabled"):
            raise UserError(
                "This is a fork of EoH 0.1 that has an evolution strategy of its own. Attach to EoH 0.1 or 0.2 as "
                "their authors publish them."
            )
        if paras.method != "eoh":
            raise UserError(f"The method {paras.method!r} of EoH 0.1 cannot learn. Use method='eoh'.")
        pops = Path(paras.exp_output_path) / "results" / "pops"
        if any(path.stat().st_mtime > _process_began() for path in pops.glob("population_generation_*.json")):
            raise UserError(
                f"This search has run already: this process wrote populations into {pops}. Attach before run(), to a "
                "new EVOL with another exp_output_path."
            )
        if not paras.ec_operators or not paras.ec_operator_weights:
            raise UserError("The operators are not set. Call paras.set_paras(...) first, as EoH's examples do.")
        if len(paras.ec_operators) != len(paras.ec_operator_weights):
            raise UserError(
                f"There are {len(paras.ec_operators)} operators and {len(paras.ec_operator_weights)} weights of them. "
                "Give ec_operator_weights one number for each operator."
            )
        check_operators(self.facts)
        require(seams(self._module), "EoH 0.1")

    def evaluate(self, code: str, progress: Progress) -> object:
        """The problem's own evaluation."""
        return self._problem.evaluate(self._decorated(code))

    def evaluate_as_host(self, code: str) -> object:
        """The same: EoH 0.1 evaluates in its own process, and its timeout does not end anything."""
        try:
            return self._problem.evaluate(self._decorated(code))
        except Exception:  # noqa: BLE001 - as EoH does
            return None

    def _decorated(self, code: str) -> str:
        """The program as EoH evaluates it, compiled by numba where the user asked for that."""
        if not self._paras.eva_numba_decorator:
            return code
        exchange: Any = _modules(self._module)[1]
        decorated: str = exchange.add_numba_decorator(program=code, function_name=self._problem.prompts.get_func_name())
        return decorated

    def drive(self, session: Session) -> None:
        """Run the search to its end, or until the budget is spent."""
        loop, exchange, asking = _modules(self._module)
        assert loop is not None
        assert exchange is not None
        assert asking is not None
        search = self._module.methods.Methods(self._paras, self._problem).get_method()
        weights, search.operator_weights = search.operator_weights, [1] * len(search.operators)  # drawn here, see below
        interface = _learning_interface(exchange.InterfaceEC, session, search, weights)
        with swapped(loop, InterfaceEC=interface), swapped(asking, InterfaceLLM=llm(session)):
            try:
                search.run()
            except BudgetSpent:
                session.notify("The budget is spent: the search ends here.")


def _learning_interface(base: type[Any], session: Session, search: Any, weights: Sequence[float]) -> type[Any]:
    first = search.load_pop_id if search.load_pop else 0

    class LearningInterface(base):  # type: ignore[misc]
        """EoH's exchange with model and problem, with a batch written together and learnt from."""

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self._done = 0
            self.evol._get_alg = partial(self._read, self.evol.interface_llm)

        def get_algorithm(self, pop: list[Any], operator: str) -> tuple[list[Any], list[Any]]:
            if operator == "i1":
                return self._batch(START, pop, operator, self.pop_size)
            generation, place = divmod(self._done, len(search.operators))
            if session.plan is None and not self._is_drawn(generation, operator, weights[place]):
                self._done += 1
                return [], []  # EoH would add the offspring of the operator before once more
            count = self.pop_size if session.plan is None else session.plan[operator]
            try:
                result = self._batch(generation, pop, operator, count)
            except BudgetSpent:
                if place:
                    self._save(pop, first + generation + 1)
                raise
            self._done += 1
            return result

        def population_generation(self) -> list[Any]:
            population: list[Any] = super().population_generation()
            if not any(one["objective"] is not None for one in population):
                raise UserError(
                    f"No start candidate was valid ({session.causes()}). Try a larger model, or give EoH start "
                    "programs by exp_use_seed."
                )
            return population

        def population_generation_seed(self, seeds: list[dict[str, str]], n_p: int) -> list[Any]:
            population = valid_ones(session.given([Draft(seed["code"], seed["algorithm"], ()) for seed in seeds]))
            session.notify(f"Seeds: {len(population)} of {len(seeds)} are valid.")
            if not population:
                raise UserError(f"No program of the seed file {search.seed_path} is valid.")
            return population

        def _batch(self, generation: int, pop: list[Any], operator: str, count: int) -> tuple[list[Any], list[Any]]:
            slots = [Slot(operator, partial(self._draft, pop, operator)) for _ in range(count)]
            written = session.batch(generation, slots, [parent_of(one) for one in pop])
            offspring = [individual(one) or dict(EMPTY) for one in written if one.outcome is not None]
            return [None] * len(offspring), offspring

        def _draft(self, pop: list[Any], operator: str) -> Draft | None:
            parents, offspring = self._get_alg(pop, operator)
            if offspring["code"] is not None and self.check_duplicate(pop, offspring["code"]):
                parents, offspring = self._get_alg(pop, operator)
            if offspring["code"] is None:
                return None
            return Draft(offspring["code"], offspring["algorithm"], tuple(parent_of(one) for one in parents or ()))

        @staticmethod
        def _read(llm: Any, prompt: str) -> list[str | None]:
            for _ in range(_ATTEMPTS):
                found = read_reply(llm.get_response(prompt), session.facts.function)
                if found is not None:
                    return [found[0], found[1]]
            return [None, None]

        @staticmethod
        def _is_drawn(generation: int, operator: str, weight: float) -> bool:
            stream = batch_stream(session.seed, generation, operator, "draw")
            return bool(stream.random() < weight)

        @staticmethod
        def _save(population: list[Any], generation: int) -> None:
            """The files of a generation that a budget ended half-way, as EoH writes them."""
            results, name = Path(search.output_path) / "results", f"population_generation_{generation}.json"
            for folder, content in (("pops", population), ("pops_best", population[0])):
                (results / folder / name).write_text(json.dumps(content, indent=5), encoding="utf-8")

    return LearningInterface
