"""Draws small tasks with exact answers, so that everything runs without any data.

They measure whether a model can use its tool, not whether it is good at mathematics: each is a line of Python away from
its answer. What grows with the level is how far it is from an answer by head.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from operators.errors import UserError
from train_adapters.math_tasks.rows import MathRow

SEED = 20260627
LEVELS = (1, 2, 3, 4)
_MOST_DRAWS = 1000

Drawn = tuple[str, int | Fraction]
"""A question, and its answer."""


@dataclass(frozen=True)
class Recipe:
    """What to draw.

    Attributes:
        kinds: of `KINDS`, taken in turn.
        levels: of `LEVELS`, taken in turn, each for all kinds.
        splits: names and numbers of rows, in the order they are drawn: all from one stream.
        seed: of the stream.

    Raises:
        UserError: a value is none of those.
    """

    kinds: tuple[str, ...]
    levels: tuple[int, ...]
    splits: tuple[tuple[str, int], ...]
    seed: int = SEED

    def __post_init__(self) -> None:
        for name, values, known in (("kinds", self.kinds, tuple(KINDS)), ("level", self.levels, LEVELS)):
            strange = [one for one in values if one not in known]
            if strange or not values:
                choice = ", ".join(map(str, known))
                raise UserError(f"{name} must be of {choice}, not {strange[0] if strange else 'empty'!r}.")
        if type(self.seed) is not int:
            raise UserError(f"The seed of the tasks must be a whole number, not {self.seed!r}.")


def generate(recipe: Recipe) -> dict[str, list[MathRow]]:
    """The rows of every split. No question comes twice.

    Raises:
        UserError: there are no more new questions: too many rows are asked of too few kinds.
    """
    stream, seen = random.Random(recipe.seed), set[str]()
    kinds = [(kind, level) for level in recipe.levels for kind in recipe.kinds]
    rows: dict[str, list[MathRow]] = {}
    for split, count in recipe.splits:
        rows[split] = []
        for index in range(count):
            kind, level = kinds[index % len(kinds)]
            question, answer = _new(stream, kind, level, seen)
            seen.add(question)
            rows[split].append(MathRow(f"{split}-{index:06d}", "generated", question, str(answer), f"{kind}-{level}"))
    return rows


def _new(stream: random.Random, kind: str, level: int, seen: set[str]) -> Drawn:
    for _ in range(_MOST_DRAWS):
        question, answer = KINDS[kind](stream, level)
        if question not in seen:
            return question, answer
    raise UserError(f"There are no more questions of kind {kind!r} at level {level}. Ask for fewer rows or more kinds.")


def _sum(stream: random.Random, level: int) -> Drawn:
    """Sums and products of whole numbers."""
    numbers = [stream.randint(2, 10**level) for _ in range(level + 1)]
    text = str(numbers[0])
    for number in numbers[1:]:
        text += f" {stream.choice('+-*' if level > 1 else '+-')} {number}"
    return f"What is {text}?", _value(text)


def _value(text: str) -> int:
    """Of a sum of products."""
    total = 0
    for sign, product in _terms(text):
        total += sign * math.prod(map(int, product.split(" * ")))
    return total


def _terms(text: str) -> list[tuple[int, str]]:
    return [(-1 if one.startswith("-") else 1, one.strip("-")) for one in text.replace(" - ", " + -").split(" + ")]


def _shopping(stream: random.Random, level: int) -> Drawn:
    """What is left of a sum of money."""
    goods = stream.sample(["pens", "apples", "cups", "books", "lamps", "tickets"], min(level + 1, 4))
    bought = [(stream.randint(2, 4 * 3**level), stream.randint(2, 9 * level * level), name) for name in goods]
    spent = sum(count * price for count, price, _ in bought)
    money = spent + stream.randint(1, 10**level)
    listed = ", ".join(f"{count} {name} at {price} coins each" for count, price, name in bought)
    return f"Mira has {money} coins. She buys {listed}. How many coins are left?", money - spent


def _multiples(stream: random.Random, level: int) -> Drawn:
    """Numbers that one or two others divide."""
    first, second = stream.sample(range(2, 6 + 4 * level), 2)
    last = stream.randint(5, 10) * 10**level // 2
    found = [one for one in range(1, last + 1) if one % first == 0 or one % second == 0]
    what, answer = ("the sum of the", sum(found)) if level > 2 else ("the number of", len(found))
    return f"What is {what} whole numbers from 1 to {last} that {first} or {second} divides?", answer


def _remainder(stream: random.Random, level: int) -> Drawn:
    """Of a power."""
    base, divisor = stream.randint(2, 9 * level), stream.randint(3, 10**level + 3)
    exponent = stream.randint(2, 2 + 3 ** (2 * level - 1))
    return f"What is the remainder of {base}^{exponent} divided by {divisor}?", pow(base, exponent, divisor)


def _fractions(stream: random.Random, level: int) -> Drawn:
    """A sum of fractions."""
    parts = [Fraction(stream.randint(1, 9), stream.randint(2, 3 + 3 * level)) for _ in range(level + 1)]
    return f"What is {' + '.join(map(str, parts))} as a fraction in lowest terms?", sum(parts, Fraction(0))


def _equation(stream: random.Random, level: int) -> Drawn:
    """A linear equation."""
    factor, solution = stream.randint(2, 5 * level), stream.randint(-(10**level), 10**level)
    shift = stream.randint(1, 10**level)
    return f"Solve {factor}x + {shift} = {factor * solution + shift} for x.", solution


KINDS: dict[str, Callable[[random.Random, int], Drawn]] = {
    "sum": _sum,
    "shopping": _shopping,
    "multiples": _multiples,
    "remainder": _remainder,
    "fractions": _fractions,
    "equation": _equation,
}
"""What can be drawn, by name."""
