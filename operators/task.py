"""What a language model is told about a problem: the text that operators build their prompts from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SeedHeuristic:
    """A known heuristic that stands in the start population.

    Attributes:
        idea: one sentence.
        code: Python source that defines the task's function.
    """

    idea: str
    code: str


@dataclass(frozen=True)
class Idea:
    """A suggestion for the mutation operator m1 to try.

    Attributes:
        text: one sentence.
        hint: one line of Python that computes what the sentence speaks of, from the function's arguments; may be empty.
    """

    text: str
    hint: str


@dataclass(frozen=True)
class Task:
    """One heuristic-design task as the model sees it.

    Attributes:
        name: the problem's name, as on the command line.
        description: what the function is for, in one or two sentences.
        function: name of the function the model writes.
        arguments: its argument names, in order.
        signature: the `def` line, ending in a colon; without annotations, which cost tokens in every prompt.
        docstring: what goes in and what comes out, one fact a line.
        imports: import lines that precede the function.
        ideas: suggestions for the mutation operator m1 to try, never empty.
        seeds: known heuristics for the start population, never empty.
        other_arguments: further argument lists that the problem knows how to call a function with.
    """

    name: str
    description: str
    function: str
    arguments: tuple[str, ...]
    signature: str
    docstring: str
    imports: str
    ideas: tuple[Idea, ...]
    seeds: tuple[SeedHeuristic, ...]
    other_arguments: tuple[tuple[str, ...], ...] = ()
