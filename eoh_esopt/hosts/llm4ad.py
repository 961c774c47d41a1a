"""LLM4AD: `llm4ad.method.eoh.EoH(llm=..., evaluation=...)`.

While the search runs, three names of the user's object are shadowed in that object, and `EoHPrompt` is borrowed in the
module of its loop. The loop, the prompts, the choice of parents, population, profiler and files are the host's own.
The threads of its samplers take turns: what they ask for at the same time is one batch.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from eoh_esopt.engine.batches import START
from eoh_esopt.engine.config import LONGEST_TIMEOUT
from eoh_esopt.hosts import together
from eoh_esopt.hosts.entry import entry
from eoh_esopt.hosts.host import BudgetSpent, Draft, HostFacts, Parent, Seam, Slot, Written
from eoh_esopt.hosts.one_function import one_function
from eoh_esopt.hosts.reading import read_reply
from eoh_esopt.hosts.seams import require, seam
from eoh_esopt.hosts.session import Session
from eoh_esopt.hosts.trial import counting
from eoh_esopt.hosts.untouched import shadowed, swapped
from eoh_esopt.sandbox.candidate import Progress
from operators.errors import UserError

SUPPORTS = "LLM4AD 1.11 (an object of llm4ad.method.eoh.EoH)"
MODULE = "llm4ad.method.eoh.eoh"
"""Where the class of the user's object stands."""

OPERATORS = ("e1", "e2", "m1", "m2")

START_GENERATIONS = 2
"""Generations that LLM4AD counts for a full start population."""

_OWN = (
    "_template_program_str",
    "_template_program",
    "_task_description_str",
    "_function_to_evolve",
    "_max_generations",
    "_max_sample_nums",
    "_pop_size",
    "_selection_num",
    "_use_e2_operator",
    "_use_m1_operator",
    "_use_m2_operator",
    "_num_samplers",
    "_num_evaluators",
    "_resume_mode",
    "_population",
    "_evaluator",
    "_evaluation_executor",
    "_profiler",
    "_tot_sample_nums",
)
"""Attributes of the user's object that are read."""


def recognise(host: object) -> Llm4ad | None:
    """The adapter for an object of LLM4AD's EoH, or of a class derived from it; None for another one."""
    for kind in type(host).__mro__:
        module = sys.modules.get(kind.__module__)
        if module is not None and hasattr(module, "EoHPrompt") and hasattr(host, "_evaluator"):
            return Llm4ad(host, module)
    return None


def seams(module: ModuleType) -> list[Seam]:
    """What the adapter takes hold of, and whether it is there.

    Args:
        module: the one of `MODULE`.
    """
    loop, prompt = getattr(module, "EoH", None), getattr(module, "EoHPrompt", None)
    population, evaluator = getattr(module, "Population", None), getattr(module, "SecureEvaluator", None)
    return [
        seam(loop, "EoH", "run", ("self",)),
        seam(loop, "EoH", "_multi_threaded_sampling", ("self", "fn", "args", "kwargs")),
        seam(loop, "EoH", "_iteratively_init_population", ("self",)),
        seam(loop, "EoH", "_iteratively_use_eoh_operator", ("self",)),
        seam(loop, "EoH", "_sample_evaluate_register", ("self", "prompt")),
        seam(prompt, "EoHPrompt", "get_prompt_i1", ("task_prompt", "template_function")),
        *(seam(prompt, "EoHPrompt", f"get_prompt_{name}", _SHOWN[name]) for name in OPERATORS),
        seam(population, "Population", "selection", ("self",)),
        seam(population, "Population", "register_function", ("self", "func")),
        seam(population, "Population", "survival", ("self",)),
        seam(evaluator, "SecureEvaluator", "_modify_program_code", ("self", "program_str")),
        seam(evaluator, "SecureEvaluator", "evaluate_program"),
        seam(module, "EoH's module", "TextFunctionProgramConverter"),
    ]


_SHOWN = {
    **dict.fromkeys(("e1", "e2"), ("task_prompt", "indivs", "template_function")),
    **dict.fromkeys(("m1", "m2"), ("task_prompt", "indi", "template_function")),
}


class Llm4ad:
    """A user's search of LLM4AD, see `eoh_esopt.hosts.host.Host`."""

    def __init__(self, host: Any, module: ModuleType) -> None:
        self._host, self._module = host, module

    @property
    def facts(self) -> HostFacts:
        """What the user set up.

        Raises:
            UserError: the problem's template is no program.
        """
        host = self._host
        evaluation = host._evaluator._evaluator
        template = str(host._template_program_str)
        function, arguments = entry(template, type(evaluation).__name__)
        used = {"e1": True, "e2": host._use_e2_operator, "m1": host._use_m1_operator, "m2": host._use_m2_operator}
        operators = tuple(name for name in OPERATORS if used[name])
        return HostFacts(
            name="LLM4AD",
            problem=type(evaluation).__name__,
            function=function,
            arguments=arguments,
            template=template.strip() + "\n",
            operators=operators,
            population=host._pop_size,
            generations=self._generations(),
            drawn=dict.fromkeys(operators, host._pop_size / len(operators)),
            workers=host._num_evaluators,
            timeout=evaluation.timeout_seconds or LONGEST_TIMEOUT,
            folder=Path(getattr(host._profiler, "_log_dir", None) or "."),
            maximise=True,
            limit=max(1, host._max_sample_nums - (host._tot_sample_nums if host._resume_mode else host._pop_size)),
        )

    def _generations(self) -> int:
        """Those after the start population, or after what a search that is resumed has done."""
        host = self._host
        most: int = host._max_sample_nums if host._max_generations is None else host._max_generations
        begun: int = host._population.generation if host._resume_mode else START_GENERATIONS
        return most - begun

    def check(self) -> None:
        """Look whether the search can be attached to, see `eoh_esopt.hosts.host.Host`."""
        host = self._host
        own = [Seam(f"EoH object.{name}", hasattr(host, name), "not there") for name in _OWN]
        require([*seams(self._module), *own], "LLM4AD")
        if not host._resume_mode and (host._tot_sample_nums or host._population.generation):
            raise UserError("This search has run already. Attach before run(), to a new EoH(...).")
        if self._generations() < 1:
            raise UserError(
                f"max_generations={host._max_generations} leaves no generation to search in: LLM4AD counts its start "
                f"population as {START_GENERATIONS}, and those of a search that is resumed. Give a larger one."
            )

    def evaluate(self, code: str, progress: Progress) -> object:
        """The problem's own evaluation, with the errors that LLM4AD swallows."""
        secure = self._host._evaluator
        evaluation = secure._evaluator
        name = self._module.TextFunctionProgramConverter.text_to_function(code).name
        program = secure._modify_program_code(code)
        function = None
        if evaluation.exec_code:
            namespace: dict[str, Any] = {}
            exec(program, namespace)
            function = namespace[name]
        return counting(progress, lambda around: evaluation.evaluate_program(program, around(function)))

    def evaluate_as_host(self, code: str) -> object:
        """By LLM4AD's own process and timeout."""
        return self._host._evaluator.evaluate_program(code)

    def drive(self, session: Session) -> None:
        """Run the search to its end, or until the budget is spent."""
        host, loop = self._host, _Loop(self._host, self._module, session)
        np.random.seed(session.seed % 2**32)  # noqa: NPY002 - LLM4AD chooses parents by it, and never seeds it
        if not host._evaluator._evaluator.timeout_seconds:
            session.notify("WARNING: the evaluation has no timeout_seconds: a program that never ends holds it up.")
        with (
            swapped(self._module, EoHPrompt=_noting(self._module.EoHPrompt)),
            shadowed(host, _sample_evaluate_register=together.ask, _multi_threaded_sampling=loop.search),
        ):
            try:
                loop.begin()
                with shadowed(host, _resume_mode=True):  # the start is done: LLM4AD would give one of few members up
                    type(host).run(host)
            except BudgetSpent:
                session.notify("The budget is spent: the search ends here.")
                if host._profiler is not None:
                    host._profiler.finish()
            finally:
                host._evaluation_executor.shutdown(wait=False, cancel_futures=True)


class _Prompt(str):
    """A prompt that knows what it is for: its operator, and the members of LLM4AD's population that it shows."""

    operator: str
    shown: tuple[Any, ...]


def _noting(base: type[Any]) -> type[Any]:
    """LLM4AD's prompts, each with a note of what it is for."""

    def noting(operator: str) -> Callable[..., _Prompt]:
        def get_prompt(task: str, *given: Any) -> _Prompt:
            prompt = _Prompt(getattr(base, f"get_prompt_{operator}")(task, *given))
            parents = given[:-1]  # of i1 none, of e1 and e2 a list, of m1 and m2 one
            prompt.operator, prompt.shown = operator, tuple(parents[0] if operator in ("e1", "e2") else parents)
            return prompt

        return get_prompt

    names = ("i1", *OPERATORS)
    return type(base.__name__, (base,), {f"get_prompt_{name}": staticmethod(noting(name)) for name in names})


class _Loop:
    """LLM4AD's search with what its samplers ask for written together, evaluated and learnt from."""

    def __init__(self, host: Any, module: ModuleType, session: Session) -> None:
        self._host, self._module, self._session = host, module, session
        self._converter = module.TextFunctionProgramConverter
        self._first = 0

    def begin(self) -> None:
        """Make the start population, or take the one of a search that is resumed.

        Raises:
            UserError: there is no valid candidate to begin with.
        """
        host, population = self._host, self._host._population
        if not host._resume_mode:
            self._threads(host._iteratively_init_population)
            population.survival()
        elif not self._members():
            generation = population.generation
            population.survival()  # LLM4AD leaves a small population that it reads aside, and never looks at it
            population._generation = generation
        if not self._members():
            self._add_template()
        self._first = population.generation

    def search(self, host_loop: Callable[[], None]) -> None:
        """In place of LLM4AD's threads: its own schedule, or the paper's."""
        if self._session.plan is None:
            self._threads(host_loop)
        else:
            self._paper_schedule()

    def _threads(self, host_loop: Callable[[], None]) -> None:
        """Run the loop of LLM4AD's samplers in as many threads as the user asked for, in turns."""

        def answer(asked: Sequence[tuple[int, _Prompt]]) -> list[bool | None]:
            generation = self._host._population.generation - self._first
            written = self._batch(generation, [prompt for _, prompt in asked])
            return [None if one.outcome is None else True for one in written]

        together.write_together([host_loop] * self._host._num_samplers, answer)

    def _paper_schedule(self) -> None:
        host, session = self._host, self._session
        assert session.plan is not None
        for generation in range(session.facts.generations):
            for operator, count in session.plan.items():
                left = host._max_sample_nums - host._tot_sample_nums
                if left <= 0:
                    return
                self._batch(generation, [self._prompt(operator) for _ in range(min(count, left))])
                host._population.survival()
                host._population._generation = self._first + generation  # it counts each renewal
            host._population._generation += 1
            self._note_population()

    def _prompt(self, operator: str) -> _Prompt:
        host = self._host
        draw = host._population.selection
        parents = [draw() for _ in range(host._selection_num)] if operator in ("e1", "e2") else draw()
        make = getattr(self._module.EoHPrompt, f"get_prompt_{operator}")
        prompt: _Prompt = make(host._task_description_str, parents, host._function_to_evolve)
        return prompt

    def _batch(self, generation: int, prompts: Sequence[_Prompt]) -> list[Written]:
        slots = [Slot(one.operator, partial(self._draft, one)) for one in prompts]
        is_start = prompts[0].operator == "i1"
        written = self._session.batch(START if is_start else generation, slots, self._members())
        for one in written:
            if one.outcome is not None:
                self._register(one)
        return written

    def _draft(self, prompt: _Prompt) -> Draft | None:
        facts, template = self._session.facts, self._host._template_program
        found = read_reply(self._session.ask(str(prompt)), facts.function)
        if found is None:
            return None
        code, idea = found
        function = self._parsed(one_function(code, facts.function, template.preface))
        if function is not None:
            function.docstring = template.functions[0].docstring
            code = str(replace(template, functions=[function]))
        return Draft(code, idea, tuple(self._parent(one) for one in prompt.shown))

    def _parsed(self, code: str) -> Any:
        """LLM4AD's form of a program; None where it has none."""
        try:
            function = self._converter.text_to_function(code)
        except ValueError:  # not exactly one function
            return None
        return function if function is not None and function.name == self._session.facts.function else None

    def _register(self, written: Written) -> None:
        """Hand a candidate to LLM4AD. Its own code never counts those without a program, and asks for them for ever."""
        host, draft, outcome = self._host, written.draft, written.outcome
        host._tot_sample_nums += 1
        function = None if draft is None else self._parsed(draft.code)
        if draft is None or outcome is None or function is None:
            return
        function.algorithm = f"{{{draft.idea}}}"
        function.score = None if outcome.objective is None else -outcome.objective
        self._keep(function, draft.code)
        if host._profiler is not None:
            takes_program = "program" in inspect.signature(host._profiler.register_function).parameters  # after 1.11
            host._profiler.register_function(function, **({"program": draft.code} if takes_program else {}))
            self._note_population()
        host._population.register_function(function)

    def _note_population(self) -> None:
        if hasattr(self._host._profiler, "register_population"):
            self._host._profiler.register_population(self._host._population)

    @staticmethod
    def _keep(function: Any, code: str) -> None:
        """LLM4AD takes the docstrings of parents away, so that their code does not tell who they are."""
        function.esopt_code = code

    def _members(self) -> list[Parent]:
        population = self._host._population.population
        return [self._parent(one) for one in population if one.score is not None and math.isfinite(one.score)]

    def _parent(self, function: Any) -> Parent:
        code = getattr(function, "esopt_code", None)
        if code is None:  # from a file of LLM4AD's
            code = str(replace(self._host._template_program, functions=[function]))
            self._keep(function, code)
        return Parent(code, function.algorithm.strip("{}"), -float(function.score))

    def _add_template(self) -> None:
        session = self._session
        [written] = session.given([Draft(session.facts.template, "The template of the problem.", ())])
        if written.outcome is None or written.outcome.objective is None:
            raise UserError(
                f"No start candidate was valid ({session.causes()}), nor is the problem's template. Try a larger "
                "model, or a problem that is easier at first."
            )
        session.notify(f"No start candidate was valid ({session.causes()}): starting from the problem's template.")
        function = self._parsed(session.facts.template)
        function.algorithm, function.score = "{The template of the problem.}", -written.outcome.objective
        self._keep(function, session.facts.template)
        self._host._population.population.append(function)
