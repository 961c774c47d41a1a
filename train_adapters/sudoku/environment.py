"""One episode: a board that is filled one cell a turn."""

from __future__ import annotations

from dataclasses import dataclass

from train_adapters.adapter import AgentFailed
from train_adapters.sudoku.grid import Grid, replaced
from train_adapters.sudoku.rules import Move, Rules, is_over, most_turns, refusal, reward

NO_MOVE = "No move was found in the answer. Answer with exactly one line: set <row> <col> <value>"


@dataclass(frozen=True)
class Observation:
    """All there is to know at a turn.

    Attributes:
        puzzle: side x side, as it was given; 0 for a blank.
        board: side x side, as it is now.
        turn: turns taken so far.
        feedback: what became of the last turn; empty before the first.
    """

    puzzle: Grid
    board: Grid
    turn: int = 0
    feedback: str = ""


def after(seen: Observation, move: Move | None, rules: Rules) -> Observation:
    """What is seen after a turn; without a legal move the turn is spent and the board stays as it is."""
    problem = NO_MOVE if move is None else refusal(seen.puzzle, seen.board, move, rules)
    if move is None or problem:
        return Observation(seen.puzzle, seen.board, seen.turn + 1, problem)
    board = replaced(seen.board, [(move.row - 1, move.column - 1)], move.value)
    return Observation(seen.puzzle, board, seen.turn + 1, f"r{move.row}c{move.column} is {move.value} now.")


class SudokuEnvironment:
    """An episode of one puzzle under given rules; nothing in it waits."""

    def __init__(self, puzzle: Grid, rules: Rules) -> None:
        self._rules = rules
        self._seen = Observation(puzzle, puzzle)

    async def reset(self) -> None:
        """Back to the untouched puzzle."""
        self._seen = Observation(self._seen.puzzle, self._seen.puzzle)

    def observe(self) -> Observation:
        return self._seen

    async def step(self, action: Move | None) -> None:
        """Take a turn.

        Raises:
            AgentFailed: the turns are spent.
        """
        turns = most_turns(self._seen.puzzle)
        if self._seen.turn >= turns:
            raise AgentFailed(f"the {turns} turns are spent")
        self._seen = after(self._seen, action, self._rules)

    @property
    def done(self) -> bool:
        return is_over(self._seen.board, self._rules)

    @property
    def reward(self) -> float:
        """1 for the solved board, else 0."""
        return reward(self._seen.puzzle, self._seen.board)

    async def close(self) -> None:
        """Nothing to let go of."""
