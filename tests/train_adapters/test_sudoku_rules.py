"""What a move may do and what a board is worth, against plain statements of the same rules."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.errors import UserError
from train_adapters.sudoku.environment import Observation, after
from train_adapters.sudoku.generator import Recipe, generate
from train_adapters.sudoku.grid import Grid, from_compact, is_solved, replaced
from train_adapters.sudoku.rows import SudokuRow
from train_adapters.sudoku.rules import (
    PUBLISHED,
    STRICT,
    Move,
    Rules,
    filled,
    is_over,
    most_turns,
    refusal,
    reward,
    rules_named,
)

RECIPES = [Recipe(seed=5, box=box, masks=(2, 6), splits=(("train", 8),)) for box in (2, 3)]
ROWS = [row for recipe in RECIPES for row in generate(recipe)["train"]]
BOTH = [PUBLISHED, STRICT]


@st.composite
def positions(draw: st.DrawFn) -> tuple[SudokuRow, Grid]:
    """A puzzle and a board on its way: some blanks filled, rightly or wrongly."""
    row = draw(st.sampled_from(ROWS))
    board = row.puzzle
    for place in filled(row.puzzle, row.solution):
        board = replaced(board, [place], draw(st.integers(0, len(board))))
    return row, board


@settings(max_examples=40, deadline=None)
@given(position=positions(), rules=st.sampled_from(BOTH))
def test_every_move_of_a_position(position: tuple[SudokuRow, Grid], rules: Rules) -> None:
    """Else an agent could change given cells, or is refused a move that the rules allow."""
    row, board = position
    puzzle, side = row.puzzle, len(board)
    for numbers in product((*range(-1, side + 2), 10**30), repeat=3):
        in_range = all(number in range(1, side + 1) for number in numbers)
        line, column, _ = numbers
        free = in_range and puzzle[line - 1][column - 1] == 0
        legal = free and (board[line - 1][column - 1] == 0 or rules is STRICT)
        why = refusal(puzzle, board, Move(*numbers), rules)
        assert (why == "") == legal
        assert why == "" or why.endswith(".")
        assert len(why) < 100


@settings(max_examples=150, deadline=None)
@given(position=positions(), rules=st.sampled_from(BOTH), data=st.data())
def test_a_turn(position: tuple[SudokuRow, Grid], rules: Rules, data: st.DataObject) -> None:
    """Else a refused move leaves a trace on the board, a turn is not counted, or a legal move touches another cell."""
    row, board = position
    number = st.integers(0, len(board) + 1)
    move = data.draw(st.none() | st.builds(Move, number, number, number))
    before = Observation(row.puzzle, board, data.draw(st.integers(0, 9)))
    seen = after(before, move, rules)
    assert (seen.puzzle, seen.turn) == (row.puzzle, before.turn + 1)
    if move is None or refusal(row.puzzle, board, move, rules):
        assert seen.board == board
        assert seen.feedback != ""
    else:
        changed = [place for place in product(range(len(board)), repeat=2) if at(seen.board, place) != at(board, place)]
        assert changed in ([], [(move.row - 1, move.column - 1)])
        assert at(seen.board, (move.row - 1, move.column - 1)) == move.value
        assert at(row.puzzle, (move.row - 1, move.column - 1)) == 0


def at(grid: Grid, place: tuple[int, ...]) -> int:
    return grid[place[0]][place[1]]


@settings(max_examples=200, deadline=None)
@given(position=positions())
def test_a_board_is_worth_1_only_when_it_is_the_solution(position: tuple[SudokuRow, Grid]) -> None:
    """Else training follows a reward for something else than solving: these puzzles have one solution each."""
    row, board = position
    assert reward(row.puzzle, board) == float(board == row.solution)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{len(row.puzzle)}-{row.id}")
def test_solved_and_untouched_boards(row: SudokuRow) -> None:
    """Else the ends of the scale are wrong."""
    assert reward(row.puzzle, row.solution) == 1.0
    assert reward(row.puzzle, row.puzzle) == 0.0


@settings(max_examples=100, deadline=None)
@given(row=st.sampled_from(ROWS), data=st.data())
def test_a_solved_board_of_another_puzzle(row: SudokuRow, data: st.DataObject) -> None:
    """Else a solved board whose given cells were changed would count: it is no solution of this puzzle."""
    digits = data.draw(st.permutations(range(1, len(row.puzzle) + 1)))
    other = tuple(tuple(digits[value - 1] for value in line) for line in row.solution)
    assert is_solved(other)
    assert reward(row.puzzle, other) == float(other == row.solution)


def test_another_completion_counts() -> None:
    """Else a puzzle of one's own with two solutions would punish an agent that found the other one."""
    puzzle = from_compact("..34" + "34.." + "..43" + "43..")
    one = from_compact("1234" + "3412" + "2143" + "4321")
    other = from_compact("2134" + "3421" + "1243" + "4312")
    assert reward(puzzle, one) == reward(puzzle, other) == 1.0
    assert reward(puzzle, replaced(one, [(0, 0)], 2)) == 0.0


@settings(max_examples=150, deadline=None)
@given(position=positions())
def test_when_an_episode_is_over(position: tuple[SudokuRow, Grid]) -> None:
    """Else an agent cannot repair a full board under the strict rules, or plays on after it has been solved."""
    row, board = position
    assert is_over(board, PUBLISHED) == all(value for line in board for value in line)
    assert is_over(board, STRICT) == (board == row.solution)


@settings(max_examples=150, deadline=None)
@given(position=positions(), data=st.data())
def test_the_rules_differ_at_filled_cells_and_full_boards_only(
    position: tuple[SudokuRow, Grid], data: st.DataObject
) -> None:
    """Else an experiment under the strict rules would change more than the hole that it is about."""
    row, board = position
    number = st.integers(0, len(board) + 1)
    move = data.draw(st.builds(Move, number, number, number))
    published, strict = (after(Observation(row.puzzle, board), move, rules) for rules in BOTH)
    if (move.row - 1, move.column - 1) in filled(row.puzzle, board) and 1 <= move.value <= len(board):
        assert published.board == board
        assert at(strict.board, (move.row - 1, move.column - 1)) == move.value
    else:
        assert published == strict
    full_and_wrong = all(value for line in board for value in line) and board != row.solution
    assert (is_over(board, PUBLISHED) != is_over(board, STRICT)) == full_and_wrong


@pytest.mark.parametrize("masks", [1, 5, 10, 15])
def test_turns(masks: int) -> None:
    """Else episodes are longer or shorter than the published ones: three turns for each blank cell."""
    [row] = generate(Recipe(masks=(masks,), splits=(("train", 1),)))["train"]
    assert most_turns(row.puzzle) == 3 * masks


def test_names_of_rules() -> None:
    """Else a typing error trains under rules that nobody asked for."""
    assert [rules_named(name) for name in ("published", "strict")] == BOTH
    with pytest.raises(UserError, match=r"Unknown rules 'Strict'\. Choose 'published' or 'strict'"):
        rules_named("Strict")
