"""EoH 0.2: `EoH(llm=..., problem=...)`.

While the search is built, two names are borrowed: `Evolution` in the module of its loop, and `InterfaceLLM` in the
module of `Evolution`. Prompts, choice of parents, retries, population, log and files are the host's own.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from eoh_esopt.engine.batches import START
from eoh_esopt.hosts.entry import entry
from eoh_esopt.hosts.eoh_common import check_operators, individual, llm, parent_of, valid_ones
from eoh_esopt.hosts.host import BudgetSpent, Draft, HostFacts, Seam, Slot
from eoh_esopt.hosts.reading import read_reply
from eoh_esopt.hosts.seams import require, seam
from eoh_esopt.hosts.session import Session
from eoh_esopt.hosts.trial import Around, counting
from eoh_esopt.hosts.untouched import swapped
from eoh_esopt.sandbox.candidate import Progress
from operators.errors import UserError

SUPPORTS = "EoH 0.2 (an object of eoh.EoH)"
MODULE = "eoh.run"
"""Where the class of the user's object stands."""

_REWRITES = 2
"""How often EoH asks again for a candidate whose code stands in the population already."""


def recognise(host: object) -> Eoh02 | None:
    """The adapter for an object of EoH 0.2, or of a class derived from it; None for another one."""
    for kind in type(host).__mro__:
        module = sys.modules.get(kind.__module__)
        if module is not None and hasattr(module, "EOH") and hasattr(host, "_config") and hasattr(host, "_problem"):
            return Eoh02(host, module)
    return None


def seams(module: ModuleType) -> list[Seam]:
    """What the adapter takes hold of, and whether it is there.

    Args:
        module: the one of `MODULE`.
    """
    loop = getattr(module, "EOH", None)
    evolution = getattr(_module_of(loop), "Evolution", None)
    methods = ("_init_population", "_record", "_save", "_save_checkpoint", "_flush_samples", "_log_header", "run")
    return [
        *(seam(loop, "EOH", name) for name in methods),
        seam(_module_of(loop), "EOH's module", "population_management", ("pop", "size")),
        seam(evolution, "Evolution", "get_algorithm", ("self", "population", "operators")),
        seam(evolution, "Evolution", "evaluate_seeds", ("self", "seeds")),
        seam(evolution, "Evolution", "_generate", ("self", "population", "operator")),
        seam(evolution, "Evolution", "_extract", ("self", "response")),
        seam(evolution, "Evolution", "_is_duplicate", ("self", "population", "code")),
        seam(_module_of(evolution), "Evolution's module", "InterfaceLLM"),
        seam(_module_of(evolution), "Evolution's module", "_eval_with_timeout", ("problem", "code", "timeout")),
    ]


def _module_of(thing: object) -> ModuleType | None:
    return sys.modules.get(getattr(thing, "__module__", ""))


class Eoh02:
    """A user's search of EoH 0.2, see `eoh_esopt.hosts.host.Host`."""

    def __init__(self, host: Any, module: ModuleType) -> None:
        self._config, self._problem = host._config, host._problem
        self._module = module

    @property
    def facts(self) -> HostFacts:
        """What the user set up.

        Raises:
            UserError: the problem's template is no program.
        """
        config, problem = self._config, self._problem
        function, arguments = entry(problem.template_program, type(problem).__name__)
        total = sum(config.operator_weights) or 1.0
        shares = zip(config.operators, config.operator_weights, strict=True)
        return HostFacts(
            name="EoH 0.2",
            problem=type(problem).__name__,
            function=function,
            arguments=arguments,
            template=problem.template_program.strip() + "\n",
            operators=tuple(config.operators),
            population=config.pop_size,
            generations=config.n_pop - (config.continue_id if config.use_continue else 0),
            drawn={name: config.pop_size * weight / total for name, weight in shares},
            workers=problem.n_processes,
            timeout=problem.timeout,
            folder=Path(config.output_dir) / "results",
        )

    def check(self) -> None:
        """Look whether the search can be attached to, see `eoh_esopt.hosts.host.Host`."""
        require(seams(self._module), "EoH 0.2")
        check_operators(self.facts)
        log = (Path(self._config.output_dir) / "results" / "run_log.txt").absolute()
        handlers = logging.getLogger("eoh").handlers
        if any(getattr(handler, "baseFilename", None) == str(log) for handler in handlers):
            raise UserError(
                f"A search of this process has run already and wrote {log}. Attach before run(), to a new EoH(...) "
                "with an output_dir of its own."
            )

    def evaluate(self, code: str, progress: Progress) -> object:
        """The problem's own evaluation, with the errors that EoH swallows raised again."""
        problem, inner = self._problem, self._problem.evaluate_program
        errors: list[BaseException] = []
        _listen(errors)

        def attempt(around: Around) -> object:
            errors.clear()
            # Of the copy in this process alone.
            problem.evaluate_program = lambda program, function: inner(program, around(function))
            value = problem.evaluate(code)
            if value is None and errors:
                raise errors[-1]
            return value

        return counting(progress, attempt)

    def evaluate_as_host(self, code: str) -> object:
        """By EoH's own process and timeout."""
        module = _module_of(_module_of(self._module.EOH).Evolution)  # type: ignore[union-attr]
        return module._eval_with_timeout(self._problem, code, self._problem.timeout)  # type: ignore[union-attr]

    def drive(self, session: Session) -> None:
        """Run the search to its end, or until the budget is spent."""
        loop_module: Any = _module_of(self._module.EOH)
        evolution = loop_module.Evolution
        evolution_module: Any = _module_of(evolution)
        with (
            swapped(loop_module, Evolution=_learning_evolution(evolution, session)),
            swapped(evolution_module, InterfaceLLM=llm(session)),
        ):
            loop = _learning_loop(self._module.EOH, loop_module.population_management, session)(
                self._config, self._problem
            )
        try:
            loop.run()
        except BudgetSpent:
            session.notify("The budget is spent: the search ends here.")
            loop._flush_samples()


def _listen(errors: list[BaseException]) -> None:
    """Collect the errors that EoH only logs. For a process that ends with the evaluation."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[1] is not None:
                errors.append(record.exc_info[1])

    logger = logging.getLogger("eoh")
    logger.handlers, logger.propagate = [Collector()], False
    logger.setLevel(logging.DEBUG)


def _learning_evolution(base: type[Any], session: Session) -> type[Any]:
    class LearningEvolution(base):  # type: ignore[misc]
        """EoH's Evolution, with a batch's candidates written together and learnt from."""

        generation = 0  # of ours: from the first one after the start, also where EoH goes on from a file

        def get_algorithm(self, population: list[Any], operators: Sequence[str]) -> tuple[list[Any], list[Any]]:
            start = set(operators) == {"i1"}
            slots = [Slot(operator, partial(self._draft, population, operator)) for operator in operators]
            written = session.batch(START if start else self.generation, slots, [parent_of(one) for one in population])
            if session.plan is None and not start:
                self.generation += 1
            while written and written[-1].outcome is None:
                written.pop()  # EoH pairs offspring with operators and leaves the rest out
            return [None] * len(written), [individual(one) for one in written]

        def evaluate_seeds(self, seeds: list[dict[str, str]]) -> list[Any]:
            population = valid_ones(session.given([Draft(seed["code"], seed["algorithm"], ()) for seed in seeds]))
            session.notify(f"Seeds: {len(population)} of {len(seeds)} are valid.")
            return population

        def _draft(self, population: list[Any], operator: str) -> Draft | None:
            parents, code, idea = self._generate(population, operator)
            for _ in range(_REWRITES):
                if code is None or not self._is_duplicate(population, code):
                    break
                parents, code, idea = self._generate(population, operator)
            if code is None:
                return None
            shown = parents if isinstance(parents, list) else [parents] if parents else []
            return Draft(code, idea, tuple(parent_of(one) for one in shown))

        def _extract(self, response: str) -> tuple[list[str], list[str]]:
            found = read_reply(response, session.facts.function)
            return ([], []) if found is None else ([found[1]], [found[0]])

    return LearningEvolution


def _learning_loop(base: type[Any], population_management: Any, session: Session) -> type[Any]:
    class LearningLoop(base):  # type: ignore[misc]
        """EoH's loop, with a start that survives without a valid candidate, and with the paper's schedule."""

        def _init_population(self, began: float) -> tuple[list[Any], int]:
            try:
                population, first = super()._init_population(began)
            except RuntimeError:
                if self.config.use_seed or self.config.use_continue:
                    raise
                population, first = self._from_template(), 0
            return population, first

        def _from_template(self) -> list[Any]:
            facts = session.facts
            population = valid_ones(session.given([Draft(facts.template, "The template of the problem.", ())]))
            if not population:
                raise UserError(
                    f"No start candidate was valid ({session.causes()}), nor is the problem's template. "
                    "Try a larger model, or give EoH start programs by use_seed."
                )
            session.notify(f"No start candidate was valid ({session.causes()}): starting from the problem's template.")
            self._save_checkpoint(population, 0)
            return population

        def run(self) -> None:
            if session.plan is None:
                super().run()
                return
            self._log_header(self.config)
            began = time.time()
            population, first = self._init_population(began)
            for generation in range(first, self.n_pop):
                for operator, count in session.plan.items():
                    self.evolution.generation = generation - first
                    population = self._one_operator(population, operator, count)
                    self._save(population, generation + 1)  # each time: a budget may end inside a generation
                self._logger.info(
                    f"  --- gen {generation + 1} of {self.n_pop} done  pop={len(population)}  "
                    f"best={population[0]['objective']}  elapsed={(time.time() - began) / 60:.1f}m"
                )
            self._flush_samples()

        def _one_operator(self, population: list[Any], operator: str, count: int) -> list[Any]:
            _, offspring = self.evolution.get_algorithm(population, [operator] * count)
            for one in offspring:
                self._record(operator, one)
            managed: list[Any] = population_management([*population, *filter(None, offspring)], self.pop_size)
            return managed

    return LearningLoop
