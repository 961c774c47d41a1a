"""Drawn puzzles: the published ones byte for byte, one solution each, none twice."""

from __future__ import annotations

import hashlib
from itertools import permutations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.errors import UserError
from train_adapters.sudoku.generator import PUBLISHED_SPLITS, Recipe, generate
from train_adapters.sudoku.grid import Grid, blanks, box_of, compact, from_compact, is_solved, replaced
from train_adapters.sudoku.rows import SudokuRow, as_text, read_rows
from train_adapters.sudoku.solver import count_solutions, has_one_solution

PUBLISHED = Path(__file__).parents[2] / "../shared/data/sudoku"
SHA256 = {
    "train": "cd66364e776831b8c40be9e0b91b38605daee086bfb1dd829ac5b43ae675df59",
    "eval": "10b072c941f2716da1e047cc9068ee5765983c50ab16b6ffe356f59b03a26388",
}

recipes = st.one_of(
    st.builds(
        Recipe,
        seed=st.integers(0, 2**32),
        box=st.just(2),
        masks=st.lists(st.integers(1, 10), min_size=1, max_size=3).map(tuple),
        splits=st.just((("train", 4), ("val", 3))),
    ),
    st.builds(
        Recipe,
        seed=st.integers(0, 2**32),
        box=st.just(3),
        masks=st.lists(st.integers(1, 30), min_size=1, max_size=3).map(tuple),
        splits=st.just((("train", 2), ("val", 1))),
    ),
)


def drawn(recipe: Recipe) -> list[SudokuRow]:
    return [row for rows in generate(recipe).values() for row in rows]


@pytest.mark.parametrize("split", ["train", "eval"])
def test_published_rows_are_drawn_byte_for_byte(split: str) -> None:
    """Else results could not be compared with those on the published puzzles."""
    text = as_text(generate(Recipe())[split])
    assert hashlib.sha256(text.encode()).hexdigest() == SHA256[split]


@pytest.mark.parametrize("split", ["train", "eval"])
def test_published_files_are_what_is_drawn(split: str) -> None:
    """Else the hashes above would be those of another file."""
    path = PUBLISHED / f"{split}.jsonl"
    if not path.exists():
        pytest.skip("the published puzzles are not here (../shared/data/sudoku)")
    rows = generate(Recipe())[split]
    assert as_text(rows).encode() == path.read_bytes()
    assert read_rows(path) == rows


def test_a_split_added_at_the_end_leaves_the_others_alone() -> None:
    """Else a validation split of one's own would cost the published training and test rows."""
    more = generate(Recipe(splits=(*PUBLISHED_SPLITS, ("val", 128))))
    published = generate(Recipe())
    assert {split: more[split] for split in published} == published
    assert len(more["val"]) == 128


@settings(max_examples=25, deadline=None)
@given(recipe=recipes)
def test_every_row_is_as_promised(recipe: Recipe) -> None:
    """A puzzle with two solutions, a changed given cell or the wrong number of blanks spoils what a horizon means."""
    rows = generate(recipe)
    for split, count in recipe.splits:
        assert [row.id for row in rows[split]] == [f"{split}-{index:06d}" for index in range(count)]
        for index, row in enumerate(rows[split]):
            assert len(blanks(row.puzzle)) == row.mask_count == recipe.masks[index % len(recipe.masks)]
            assert box_of(row.puzzle) == box_of(row.solution) == recipe.box
            assert is_solved(row.solution)
            assert all(left in (0, right) for left, right in cellwise(row.puzzle, row.solution))
            assert count_solutions(row.puzzle, limit=2) == 1


def test_no_puzzle_comes_twice() -> None:
    """Else small boards are in the training and in the test split: a learnt answer would pass for a learnt skill."""
    rows = drawn(Recipe(seed=3, box=2, masks=(1,), splits=(("train", 400), ("eval", 400))))
    assert len({row.puzzle for row in rows}) == 800


def test_the_seed_decides() -> None:
    """Else repeats over seeds would all play the same puzzles, or a run could not be repeated."""
    one, again, other = (drawn(Recipe(seed=seed, splits=(("train", 3),))) for seed in (1, 1, 2))
    assert one == again
    assert one != other


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"box": 4}, "box size must be 2"),
        ({"box": True}, "box size must be 2"),
        ({"seed": -1}, "seed of the puzzles"),
        ({"seed": 1.5}, "seed of the puzzles"),
        ({"masks": ()}, "masks is empty"),
        ({"masks": (5, 0)}, "from 1 to 50 for box size 3, not 0"),
        ({"masks": (5, 51)}, "from 1 to 50 for box size 3, not 51"),
        ({"masks": ("5",)}, "not '5'"),
        ({"masks": (13,), "box": 2}, "from 1 to 12 for box size 2, not 13"),
        ({"splits": (("train", 1), ("train", 2))}, "name one of them twice"),
        ({"splits": (("train", -1),)}, "'train' must have a whole number of rows"),
    ],
)
def test_recipes_that_cannot_be_drawn(settings: dict[str, object], told: str) -> None:
    """Else a typing error runs for minutes, or draws something else than was asked for."""
    with pytest.raises(UserError, match=told):
        Recipe(**settings)  # type: ignore[arg-type]


def test_more_rows_than_there_are_puzzles() -> None:
    """Else the command would never end: a 4 x 4 board has 288 solutions, so few puzzles with one blank cell."""
    with pytest.raises(UserError, match="fewer blank cells or fewer rows"):
        generate(Recipe(box=2, masks=(1,), splits=(("train", 288 * 16 + 1),)))


def cellwise(left: Grid, right: Grid) -> list[tuple[int, int]]:
    return [pair for rows in zip(left, right, strict=True) for pair in zip(*rows, strict=True)]


def all_small_solutions() -> list[Grid]:
    """Every solved 4 x 4 grid, found by trying all rows in the upper and in the lower half."""
    lines = list(permutations(range(1, 5)))
    halves = [(one, two) for one, two in product(lines, repeat=2) if len({*one[:2], *two[:2]}) == 4]
    return [(*upper, *lower) for upper, lower in product(halves, repeat=2) if is_solved((*upper, *lower))]


SMALL_SOLUTIONS = all_small_solutions()


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_solutions_are_counted(data: st.DataObject) -> None:
    """Else puzzles that have several solutions, or none, would pass for good ones."""
    solution = data.draw(st.sampled_from(SMALL_SOLUTIONS))
    every = list(product(range(4), repeat=2))
    masked = data.draw(st.lists(st.sampled_from(every), unique=True))
    puzzle = replaced(solution, masked, 0)
    if data.draw(st.booleans()):  # a digit that may clash
        puzzle = replaced(puzzle, [data.draw(st.sampled_from(every))], data.draw(st.integers(1, 4)))
    brute = sum(all(left in (0, right) for left, right in cellwise(puzzle, grid)) for grid in SMALL_SOLUTIONS)
    assert count_solutions(puzzle, limit=1000) == brute
    assert count_solutions(puzzle, limit=2) == min(brute, 2)
    assert has_one_solution(puzzle) == (brute == 1)


def test_there_are_288_small_solutions() -> None:
    """Else the brute-force check above would count against a part of the grids."""
    assert len(SMALL_SOLUTIONS) == 288 == count_solutions(((0,) * 4,) * 4, limit=1000)


def test_a_hard_puzzle_is_counted() -> None:
    """Else a file with few given digits could not be read: 17 of them, the fewest there are."""
    puzzle = from_compact(
        "000000010400000000020000000000050407008000300001090000300400200050100000000806000".replace("0", ".")
    )
    assert len(blanks(puzzle)) == 64
    assert has_one_solution(puzzle)
    assert not has_one_solution(replaced(puzzle, [(0, 7)], 0))


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(SMALL_SOLUTIONS), st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_compact_is_read_back(solution: Grid, masked: set[tuple[int, int]]) -> None:
    """Else the board that is played is not that of the row."""
    puzzle = replaced(solution, masked, 0)
    assert from_compact(compact(puzzle)) == puzzle
