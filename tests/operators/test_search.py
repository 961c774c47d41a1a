"""The five search operators: exact counts, parents by rank, and prompts that hold what a small model needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from making import TASK, candidate, population
from scipy.stats import chisquare

from operators import prompts
from operators.records import Candidate
from operators.search import PREFILLS, Situation, search_operators, select_parents
from operators.task import Idea

NAMES = ("i1", "e1", "e2", "m1", "m2")


def situation(members: list[Candidate], seed: int = 0) -> Situation:
    return Situation(members, 0, np.random.default_rng(seed))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [0, 1, 7, 30])
def test_operators_write_exactly_what_is_asked(name: str, count: int) -> None:
    """One proposal more or less would break the budget that runs are compared by."""
    proposals = search_operators(TASK, prefill="none")[name].ask(count, situation(population(5)))
    assert len(proposals) == count
    assert {proposal.operator for proposal in proposals} <= {name}
    assert all(proposal.direction is None for proposal in proposals)


def test_there_are_five_operators() -> None:
    """A missing operator would be found out only when a run asks for it."""
    assert tuple(search_operators(TASK, prefill="none")) == NAMES


def test_first_parent_is_drawn_in_proportion_to_rank() -> None:
    """A wrong rank weight would press the search harder, or not at all, towards its best members."""
    members, draws = population(6), 20_000
    rng = np.random.default_rng(5)
    counts = np.bincount([select_parents(members, 1, rng)[0].id for _ in range(draws)], minlength=6)
    weights = np.array([1 / (rank + 1 + 6) for rank in range(6)])
    assert chisquare(counts, draws * weights / weights.sum()).pvalue > 1e-4


def test_parents_are_distinct_and_fewer_when_the_population_is_small() -> None:
    """A heuristic shown twice wastes the prompt; a population of one must not stop the run."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        assert len({parent.id for parent in select_parents(population(3), 2, rng)}) == 2
    assert select_parents(population(1), 2, rng) == tuple(population(1))
    assert sorted(parent.id for parent in select_parents(population(3), 9, rng)) == [0, 1, 2]


@pytest.mark.parametrize(("name", "shown"), [("i1", 0), ("e1", 3), ("e2", 3), ("m1", 1), ("m2", 1)])
def test_prompts_hold_the_task_and_the_parents(name: str, shown: int) -> None:
    """A parent that is rewarded but not shown, or shown but not rewarded, would make the reward meaningless."""
    operator = search_operators(TASK, prefill="none", parents=3)[name]
    for proposal in operator.ask(5, situation(population(6))):
        assert len(proposal.parents) == shown
        assert TASK.description in proposal.prompt
        assert "braces" in proposal.prompt
        for parent in proposal.parents:
            assert parent.idea in proposal.prompt
            assert parent.code.strip() in proposal.prompt
        for other in population(6):
            assert (other in proposal.parents) == (f"return {other.id}\n" in proposal.prompt)
        assert proposal.prefill == ""


def test_i1_shows_the_function_to_write() -> None:
    """Without the signature the model cannot know the name or the arguments."""
    prompt = search_operators(TASK, prefill="none")["i1"].ask(1, situation([]))[0].prompt
    assert TASK.signature in prompt
    assert TASK.imports in prompt
    for line in TASK.docstring.splitlines():
        assert line in prompt


@pytest.mark.parametrize("prefill", PREFILLS)
def test_m1_suggests_one_of_the_tasks_ideas(prefill: str) -> None:
    """With the same idea each time, all modifications would go one way."""
    seen = set()
    for proposal in search_operators(TASK, prefill=prefill)["m1"].ask(60, situation(population(4))):
        (idea,) = [idea for idea in TASK.ideas if idea.text in proposal.prompt]
        begun = {"none": "", "signature": prompts.prefill(TASK), "suggestion": prompts.prefill(TASK, idea)}
        assert proposal.prefill == begun[prefill]
        assert (idea.hint in proposal.prompt) == (prefill == "suggestion")
        seen.add(idea)
    assert seen == set(TASK.ideas)


SETTINGS = """import numpy as np

LIMIT = 9.75


def choose_v2(items: list, weights: list) -> int:
    share = 0.25 * items[0] + 1
    return int(share + 12.5) + 3
"""


def test_m2_names_a_number_of_its_parent_and_begins_before_it() -> None:
    """A small model copies its parent to the end unless it stands where a setting has to be chosen."""
    parent = replace(candidate(0, 1.0), code=SETTINGS)
    operator = search_operators(TASK, prefill="suggestion")["m2"]
    seen = set()
    for proposal in operator.ask(40, situation([parent])):
        number = "0.25" if "number 0.25 changed" in proposal.prompt else "12.5"
        assert f"number {number} changed to another one, such as " in proposal.prompt
        assert proposal.prefill == f"```python\n{SETTINGS.partition(number)[0].rstrip()}"
        seen.add(number)
    assert seen == {"0.25", "12.5"}
    plain = search_operators(TASK, prefill="none")["m2"].ask(1, situation([parent]))[0]
    assert (plain.prefill, "such as" in plain.prompt) == ("", False)


@pytest.mark.parametrize("idea", [None, *TASK.ideas])
def test_prefill_ends_inside_the_function_and_not_with_a_line_break(idea: Idea | None) -> None:
    """Small models close the block or start again after a line break."""
    begin = prompts.prefill(TASK, idea)
    assert not begin.endswith("\n")
    assert begin.startswith(f"```python\n{TASK.imports}\n\n{TASK.signature}\n")
    if idea:
        compile(begin.removeprefix("```python\n"), "reply", "exec")
        assert begin.endswith(f'"""{idea.text}"""\n    {idea.hint}')


@pytest.mark.parametrize("name", NAMES)
def test_prefilled_operators_begin_the_reply(name: str) -> None:
    """An operator that forgets the prefill would get no usable reply from a small model."""
    proposal = search_operators(TASK, prefill="suggestion")[name].ask(1, situation(population(3)))[0]
    assert proposal.prefill.startswith(prompts.prefill(TASK))


def test_proposals_depend_on_the_stream_alone() -> None:
    """A resumed run must ask the same again."""
    operator = search_operators(TASK, prefill="suggestion")["m1"]
    assert operator.ask(10, situation(population(5), 3)) == operator.ask(10, situation(population(5), 3))
    assert operator.ask(10, situation(population(5), 3)) != operator.ask(10, situation(population(5), 4))
