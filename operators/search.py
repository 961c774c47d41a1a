"""The search operators of EoH in ask/tell form: i1, e1, e2, m1, m2.

An operator is asked for proposals (prompts with parents) and told what became of them. These five learn nothing from
what they are told; `operators.evolution_strategy` wraps any of them with directions and does.
Source: Liu et al., "Evolution of Heuristics", ICML 2024, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from operators import prompts
from operators.records import Candidate, Proposal, Skip, Update
from operators.rewards import Trial
from operators.task import Task


@dataclass(frozen=True)
class Situation:
    """What an operator may look at when it is asked.

    Attributes:
        population: best first, distinct objectives, never empty for operators that need parents.
        generation: 0 for the first generation after the start population.
        rng: the batch's own random stream.
        updates: those made so far, oldest first.
        insights: what every prompt shows beside the task, see `operators.context`.
    """

    population: Sequence[Candidate]
    generation: int
    rng: np.random.Generator
    updates: Sequence[Update] = ()
    insights: Sequence[str] = ()


class Operator(Protocol):
    """Proposes candidates, and is told their outcomes."""

    @property
    def name(self) -> str: ...

    def ask(self, count: int, situation: Situation) -> list[Proposal]:
        """Exactly `count` proposals."""
        ...

    def tell(self, step: int, trials: Sequence[Trial], rng: np.random.Generator) -> Update | Skip | None:
        """The outcomes of the last proposals, in their order. Returns what to do to the weights, if anything."""
        ...


LEARNING = ("m1", "m2")
"""Operators of a search whose candidates the model learns from."""

PREFILLS = ("none", "signature", "suggestion")
"""How far a reply is begun for the model: not at all; up to the function's docstring; or, for m1, through a line of
code that computes what the idea speaks of, and for m2 up to a number of the parent that the prompt says to change."""

Writer = Callable[[Situation], Proposal]


@dataclass(frozen=True)
class SearchOperator:
    """An operator that writes each proposal by itself and ignores what it is told."""

    name: str
    write: Writer

    def ask(self, count: int, situation: Situation) -> list[Proposal]:
        """Exactly `count` proposals, each with its own draw of parents and ideas."""
        return [self.write(situation) for _ in range(count)]

    def tell(self, step: int, trials: Sequence[Trial], rng: np.random.Generator) -> None:
        """Nothing to learn."""


def select_parents(population: Sequence[Candidate], count: int, rng: np.random.Generator) -> tuple[Candidate, ...]:
    """Distinct members by rank: p ~ 1 / (rank + 1 + N), rank 0 for the best. Fewer when the population is smaller."""
    size = len(population)
    weights = 1.0 / (np.arange(size) + 1 + size)
    chosen = rng.choice(size, size=min(count, size), replace=False, p=weights / weights.sum())
    return tuple(population[index] for index in chosen)


def search_operators(task: Task, *, prefill: str, parents: int = 2) -> dict[str, SearchOperator]:
    """The five operators for one task.

    Args:
        task: what the prompts speak of.
        prefill: how far the assistant's turn is begun, one of `PREFILLS`.
        parents: how many parents e1 and e2 show.
    """
    prefilled, suggested = prefill != "none", prefill == "suggestion"
    begin = prompts.prefill(task) if prefilled else ""

    def i1(situation: Situation) -> Proposal:
        return Proposal("i1", prompts.from_task(task, situation.insights, prefilled=prefilled), begin, ())

    def shown(situation: Situation, chosen: Sequence[Candidate], request: str) -> str:
        return prompts.from_parents(task, chosen, request, situation.insights, prefilled=prefilled)

    def crossover(name: str, request: str) -> Writer:
        def write(situation: Situation) -> Proposal:
            chosen = select_parents(situation.population, parents, situation.rng)
            return Proposal(name, shown(situation, chosen, request), begin, chosen)

        return write

    def m1(situation: Situation) -> Proposal:
        chosen = select_parents(situation.population, 1, situation.rng)
        idea = task.ideas[situation.rng.integers(len(task.ideas))]
        request = f"Write a modified version of it that tries this: {idea.text}"
        if suggested and idea.hint:
            request += f" For example with `{idea.hint}`."
        beginning = prompts.prefill(task, idea) if suggested else begin
        return Proposal("m1", shown(situation, chosen, request), beginning, chosen)

    def m2(situation: Situation) -> Proposal:
        chosen = select_parents(situation.population, 1, situation.rng)
        numbers = prompts.numbers(task, chosen[0].code) if suggested else []
        if not numbers:
            request = "Name the numbers and weights it uses, then write the same algorithm with other settings of them."
            return Proposal("m2", shown(situation, chosen, request), begin, chosen)
        number = numbers[situation.rng.integers(len(numbers))]
        other = float(number.text) * 2 ** situation.rng.uniform(-1.5, 1.5)
        request = f"Write the same heuristic with the number {number.text} changed to another one, such as {other:.2g}."
        return Proposal("m2", shown(situation, chosen, request), prompts.prefill_before(number), chosen)

    writers = {
        "i1": i1,
        "e1": crossover("e1", "Write a heuristic that is totally different from these."),
        "e2": crossover("e2", "Find the idea that these share, and write a different heuristic motivated by it."),
        "m1": m1,
        "m2": m2,
    }
    return {name: SearchOperator(name, write) for name, write in writers.items()}
