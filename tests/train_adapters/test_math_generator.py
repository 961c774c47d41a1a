"""Drawn mathematical tasks: exact answers, no question twice, the same ones from the same seed."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.errors import UserError
from train_adapters.math_tasks.exact import exact_value
from train_adapters.math_tasks.generator import KINDS, LEVELS, Recipe, generate
from train_adapters.math_tasks.rows import check_apart

SPLITS = (("train", 12), ("val", 6), ("test", 6))


def solved(kind: str, question: str) -> Fraction:
    """The answer, worked out from the question's text alone and in another way than it was drawn."""
    numbers = [int(one) for one in re.findall(r"\d+", question)]
    if kind == "sum":
        return Fraction(eval(question.removeprefix("What is ").removesuffix("?"), {"__builtins__": {}}))
    if kind == "shopping":
        return Fraction(numbers[0] - sum(a * b for a, b in zip(numbers[1::2], numbers[2::2], strict=True)))
    if kind == "multiples":
        _, last, first, second = numbers
        count, total = 0, 0
        for one in range(1, last + 1):
            if not (one % first and one % second):
                count, total = count + 1, total + one
        return Fraction(total if "the sum" in question else count)
    if kind == "remainder":
        return Fraction(numbers[0] ** numbers[1] % numbers[2])
    if kind == "fractions":
        return sum((Fraction(one) for one in re.findall(r"\d+(?:/\d+)?", question)), Fraction(0))
    factor, shift, right = (int(one) for one in re.findall(r"-?\d+", question))
    return Fraction(right - shift, factor)


@given(st.sampled_from(sorted(KINDS)), st.sampled_from(LEVELS), st.integers(0, 10**6))
def test_every_answer_is_right(kind: str, level: int, seed: int) -> None:
    """Else the agent is rewarded for what is wrong."""
    question, answer = KINDS[kind](random.Random(seed), level)
    assert solved(kind, question) == answer
    assert exact_value(str(answer)) == answer


def test_the_same_seed_draws_the_same_tasks_and_another_one_others() -> None:
    """Else a training cannot be resumed, since its data have changed."""
    recipe = Recipe(tuple(KINDS), (1, 2), SPLITS, seed=3)
    assert generate(recipe) == generate(recipe)
    assert generate(recipe) != generate(Recipe(tuple(KINDS), (1, 2), SPLITS, seed=4))


def test_nothing_else_draws_from_its_stream() -> None:
    """Else what happens elsewhere in the program changes the tasks."""
    recipe = Recipe(("sum",), (2,), SPLITS, seed=3)
    random.seed(1)
    first = generate(recipe)
    random.seed(2)
    assert generate(recipe) == first


def test_splits_are_apart_and_a_longer_last_one_leaves_the_others_alone() -> None:
    """Else the test asks what was learnt, or more test tasks mean another training."""
    rows = generate(Recipe(tuple(KINDS), LEVELS, SPLITS))
    check_apart(rows)
    longer = generate(Recipe(tuple(KINDS), LEVELS, (*SPLITS[:2], ("test", 20))))
    assert longer["train"] == rows["train"]
    assert longer["test"][:6] == rows["test"]


def test_kinds_and_levels_come_in_turn() -> None:
    """Else a small split has tasks of one kind only."""
    rows = generate(Recipe(("sum", "equation"), (1, 3), (("train", 5),)))["train"]
    assert [row.ability for row in rows] == ["sum-1", "equation-1", "sum-3", "equation-3", "sum-1"]
    assert [row.id for row in rows][:2] == ["train-000000", "train-000001"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kinds": ("sums",)}, "kinds must be of sum, .* not 'sums'"),
        ({"kinds": ()}, "kinds must be of .* not 'empty'"),
        ({"levels": (5,)}, "level must be of 1, 2, 3, 4, not 5"),
        ({"seed": "x"}, "must be a whole number, not 'x'"),
    ],
)
def test_a_setting_out_of_range_is_named(changes: dict[str, object], message: str) -> None:
    """Else a typing error draws other tasks, or none."""
    values: dict[str, object] = {"kinds": ("sum",), "levels": (1,), "splits": SPLITS, **changes}
    with pytest.raises(UserError, match=message):
        Recipe(**values)  # type: ignore[arg-type]


def test_more_rows_than_there_are_questions_are_refused() -> None:
    """Else the drawing never ends."""
    with pytest.raises(UserError, match="no more questions of kind 'sum' at level 1"):
        generate(Recipe(("sum",), (1,), (("train", 1000),)))
