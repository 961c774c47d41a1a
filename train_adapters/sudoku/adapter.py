"""Sudoku as the trainer sees it: tasks from the generator or from files, and the parts of an episode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from operators.errors import UserError
from train_adapters.adapter import AgentTask, Environment, Limits
from train_adapters.sudoku.environment import Observation, SudokuEnvironment
from train_adapters.sudoku.generator import PUBLISHED_MASKS, PUBLISHED_SEED, Recipe, generate
from train_adapters.sudoku.grid import box_of, check_box, compact, from_compact
from train_adapters.sudoku.parser import parse_move
from train_adapters.sudoku.prompt import prompt
from train_adapters.sudoku.rows import SudokuRow, read_rows
from train_adapters.sudoku.rules import PUBLISHED, Move, Rules, most_turns, rules_named

ROW_SPLITS = {"train": "train", "test": "eval", "val": "val"}
"""The split of the rows behind each split of the tasks. In the order they are drawn: the published ones come first."""


class SudokuAdapter:
    """The adapter over given rows.

    Args:
        tasks: the tasks by split.
        rules: what a move may do.
        new_tokens: limit of a reply, in tokens.
    """

    def __init__(self, tasks: dict[str, list[AgentTask]], rules: Rules, new_tokens: int) -> None:
        self._tasks = tasks
        self._rules = rules
        self._new_tokens = new_tokens

    @property
    def name(self) -> str:
        return "sudoku"

    def tasks(self, split: str) -> Sequence[AgentTask]:
        return self._tasks.get(split, [])

    def limits(self, task: AgentTask) -> Limits:
        return Limits(most_turns(from_compact(task.payload["puzzle"])), self._new_tokens)

    def environment(self, task: AgentTask) -> Environment:
        return SudokuEnvironment(from_compact(task.payload["puzzle"]), self._rules)

    def prompt(self, task: AgentTask, observation: Observation) -> str:
        return prompt(observation, self._rules)

    def parse(self, reply: str) -> Move | None:
        return parse_move(reply, self._rules)

    async def score(self, task: AgentTask, environment: Environment) -> float:
        return environment.reward


def make_adapter(
    masks: int | Iterable[int] = 15,
    box: int = 3,
    rules: str = PUBLISHED.name,
    train: int = 32,
    val: int = 32,
    test: int = 32,
    seed: int = PUBLISHED_SEED,
    data: str | None = None,
    new_tokens: int = 64,
) -> SudokuAdapter:
    """The Sudoku adapter from its settings.

    With the defaults, `train` and `test` are the 32 published rows of that number of blanks in each split; `val` is
    drawn after them from the same stream.

    Args:
        masks: number of blank cells, or several of them to mix.
        box: box size; 3 for 9 x 9 boards, 2 for 4 x 4.
        rules: `published` or `strict`.
        train: rows to learn from, of each number of blanks.
        val: rows to evaluate on during the training, of each number of blanks.
        test: rows to evaluate on at the end, of each number of blanks.
        seed: of the generator.
        data: folder with train.jsonl and, if there are, eval.jsonl (the test rows) and val.jsonl, to read instead of
            drawing; of each, the first rows that fit are taken.
        new_tokens: limit of a reply, in tokens.

    Raises:
        UserError: a setting is out of range, or the files cannot be used.
    """
    check_box(box)
    wanted = (masks,) if isinstance(masks, int) else tuple(dict.fromkeys(masks))
    if not wanted:
        raise UserError("masks is empty. Give at least one number of blank cells.")
    counts = {"train": train, "val": val, "test": test}
    for name, value, least in (("new_tokens", new_tokens, 1), *((split, count, 0) for split, count in counts.items())):
        if type(value) is not int or value < least:
            raise UserError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    rows = _drawn(seed, box, wanted, counts) if data is None else _read(Path(data), box, wanted, counts)
    tasks = {split: [_task(split, row) for row in rows.get(split, [])] for split in counts}
    return SudokuAdapter(tasks, rules_named(rules), new_tokens)


def _drawn(seed: int, box: int, masks: tuple[int, ...], counts: dict[str, int]) -> dict[str, list[SudokuRow]]:
    """Drawn rows. Published numbers of blanks are drawn in the published cycle, so that the published rows come out."""
    published = box == 3 and set(masks) <= set(PUBLISHED_MASKS)
    cycle = PUBLISHED_MASKS if published else masks
    splits = tuple((name, counts[split] * len(cycle)) for split, name in ROW_SPLITS.items())
    rows = generate(Recipe(seed, box, cycle, splits))
    return {split: [row for row in rows[name] if row.mask_count in masks] for split, name in ROW_SPLITS.items()}


def _read(folder: Path, box: int, masks: tuple[int, ...], counts: dict[str, int]) -> dict[str, list[SudokuRow]]:
    rows = {}
    for split, name in ROW_SPLITS.items():
        path = folder / f"{name}.jsonl"
        # A data set without rows to learn from is a mistake; without the others it can still be used.
        if split == "train" or path.exists():
            rows[split] = _fitting(path, box, masks, counts[split])
    return rows


def _fitting(path: Path, box: int, masks: tuple[int, ...], count: int) -> list[SudokuRow]:
    """The first `count` rows of each number of blanks, in the order of the file."""
    of_size = [row for row in read_rows(path) if box_of(row.puzzle) == box]
    positions = dict.fromkeys(masks, 0)
    rows = []
    for row in of_size:
        if positions.get(row.mask_count, count) < count:
            positions[row.mask_count] += 1
            rows.append(row)
    for mask_count, found in positions.items():
        if found < min(count, 1):
            there = ", ".join(str(one) for one in sorted({row.mask_count for row in of_size})) or "none"
            raise UserError(
                f"{path} has no row of box size {box} with masks {mask_count}; numbers of blanks there: {there}. "
                "Choose one of them, or another file."
            )
    return rows


def _task(split: str, row: SudokuRow) -> AgentTask:
    payload = {"puzzle": compact(row.puzzle), "solution": compact(row.solution)}
    return AgentTask(row.id, split, payload, minimum_horizon=row.mask_count)
