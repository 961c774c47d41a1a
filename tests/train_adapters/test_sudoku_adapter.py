"""Whole episodes of Sudoku through the adapter: agents with a known score, what they are shown, and the settings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from operators.errors import UserError
from train_adapters.adapter import Adapter, AgentFailed, AgentTask, Environment, Limits
from train_adapters.registry import make_adapter
from train_adapters.sudoku.environment import Observation
from train_adapters.sudoku.generator import Recipe, generate
from train_adapters.sudoku.grid import blanks, from_compact
from train_adapters.sudoku.prompt import drawn, prompt
from train_adapters.sudoku.rows import as_text
from train_adapters.sudoku.rules import PUBLISHED, STRICT

PUBLISHED_FILES = Path(__file__).parents[2] / "../shared/data/sudoku"
FEW: dict[str, Any] = {"train": 2, "val": 1, "test": 1}
SIZES = [{"masks": masks} for masks in (5, 10, 15, 20)] + [{"masks": masks, "box": 2} for masks in (1, 4, 8)]

Agent = Callable[[AgentTask, Observation], str]


@dataclass(frozen=True)
class Played:
    """What became of an episode."""

    reward: float
    turns: int
    done: bool


def sudoku(**settings: Any) -> Adapter:
    return make_adapter("sudoku", {**FEW, **settings})


def play(adapter: Adapter, task: AgentTask, agent: Agent) -> Played:
    """An episode as the trainer plays it, with the agent in the model's place."""

    async def episode() -> Played:
        environment, turns = adapter.environment(task), 0
        await environment.reset()
        while not environment.done and turns < adapter.limits(task).turns:
            seen = environment.observe()
            assert adapter.prompt(task, seen)
            await environment.step(adapter.parse(agent(task, seen)))
            turns += 1
        reward = await adapter.score(task, environment)
        await environment.close()
        return Played(reward, turns, environment.done)

    return asyncio.run(episode())


def oracle(task: AgentTask, seen: Observation) -> str:
    """Sets the first cell that is not yet as in the solution."""
    solution = from_compact(task.payload["solution"])
    for row, values in enumerate(solution):
        for column, value in enumerate(values):
            if seen.board[row][column] != value:
                return f"set {row + 1} {column + 1} {value}"
    raise AssertionError("the episode goes on after the board was solved")


def anti_oracle(task: AgentTask, seen: Observation) -> str:
    """Fills the blanks, each with a digit that is not the solution's, and then sets the first of them again."""
    [(row, column), *_] = blanks(seen.board) or blanks(seen.puzzle)
    value = from_compact(task.payload["solution"])[row][column] % len(seen.board) + 1
    return f"set {row + 1} {column + 1} {value}"


def repairer(task: AgentTask, seen: Observation) -> str:
    """Fills the blanks wrongly, then sets them right."""
    return (
        anti_oracle(task, seen) if blanks(seen.board) and seen.turn < len(blanks(seen.puzzle)) else oracle(task, seen)
    )


def silent(task: AgentTask, seen: Observation) -> str:
    return ""


@pytest.mark.parametrize("settings", SIZES, ids=str)
@pytest.mark.parametrize("rules", ["published", "strict"])
def test_agents_with_a_known_score(settings: dict[str, Any], rules: str) -> None:
    """Else an agent that solves every puzzle would not score 1, or one that solves none would not score 0."""
    adapter, masks = sudoku(rules=rules, **settings), settings["masks"]
    for task in (*adapter.tasks("train"), *adapter.tasks("val"), *adapter.tasks("test")):
        assert task.minimum_horizon == masks
        assert play(adapter, task, oracle) == Played(1.0, masks, True)
        assert play(adapter, task, silent) == Played(0.0, 3 * masks, False)
        wrong = play(adapter, task, anti_oracle)
        assert wrong == (Played(0.0, masks, True) if rules == "published" else Played(0.0, 3 * masks, False))


@pytest.mark.parametrize("settings", SIZES, ids=str)
def test_repair(settings: dict[str, Any]) -> None:
    """Else the strict rules would not leave the turns, three for each blank, to mend a wrong digit with."""
    masks = settings["masks"]
    for rules, expected in (("published", Played(0.0, masks, True)), ("strict", Played(1.0, 2 * masks, True))):
        adapter = sudoku(rules=rules, **settings)
        [task, _] = adapter.tasks("train")
        assert play(adapter, task, repairer) == expected


@pytest.mark.parametrize("masks", [5, 10, 15, 20])
def test_published_rows_are_the_default(masks: int) -> None:
    """Else a training on the defaults would not be comparable with the published ones."""
    adapter, published = make_adapter("sudoku", {"masks": masks}), generate(Recipe())
    for split, name in (("train", "train"), ("test", "eval")):
        rows = [row for row in published[name] if row.mask_count == masks]
        assert [task.id for task in adapter.tasks(split)] == [row.id for row in rows]
        assert [from_compact(task.payload["puzzle"]) for task in adapter.tasks(split)] == [row.puzzle for row in rows]
        assert len(rows) == 32
    assert len(adapter.tasks("val")) == 32
    puzzles = [task.payload["puzzle"] for split in ("train", "val", "test") for task in adapter.tasks(split)]
    assert len(set(puzzles)) == 96


def test_published_files_give_the_same_tasks() -> None:
    """Else it would matter whether the puzzles are drawn or read."""
    if not PUBLISHED_FILES.exists():
        pytest.skip("the published puzzles are not here (../shared/data/sudoku)")
    read, made = make_adapter("sudoku", {"data": str(PUBLISHED_FILES)}), make_adapter("sudoku", {})
    for split in ("train", "test"):
        assert read.tasks(split) == made.tasks(split)
    assert read.tasks("val") == []


def test_payloads_are_json() -> None:
    """Else the data set has no hash, and a resumed run could not tell that it was exchanged."""
    for task in sudoku(masks=3, box=2).tasks("train"):
        assert json.loads(json.dumps(task.payload)) == task.payload


def test_mixed_numbers_of_blanks() -> None:
    """Else a curriculum of several horizons needs several runs."""
    adapter = sudoku(masks=[1, 2, 2], box=2)
    assert [task.minimum_horizon for task in adapter.tasks("train")] == [1, 2, 1, 2]
    assert [task.minimum_horizon for task in sudoku(masks=[5, 10]).tasks("train")] == [5, 10, 5, 10]


def test_an_unknown_split_has_no_tasks() -> None:
    """Else the trainer's question after a split that is not there ends in an error."""
    assert sudoku(masks=1, box=2).tasks("other") == []


def test_turns_are_limited_by_the_environment_too() -> None:
    """Else a caller other than the trainer could play on until the board happens to be right."""
    adapter = sudoku(masks=1, box=2)
    environment = adapter.environment(adapter.tasks("train")[0])

    async def overplay() -> None:
        for _ in range(4):
            await environment.step(None)

    with pytest.raises(AgentFailed, match="the 3 turns are spent"):
        asyncio.run(overplay())


def test_a_reset_episode_begins_anew() -> None:
    """Else what an earlier attempt did to the board is scored."""
    adapter = sudoku(masks=1, box=2)
    task = adapter.tasks("train")[0]

    async def twice(environment: Environment) -> None:
        first = environment.observe()
        await environment.step(adapter.parse(oracle(task, first)))
        assert environment.reward == 1.0
        await environment.reset()
        assert environment.observe() == first

    asyncio.run(twice(adapter.environment(task)))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"masks": 0}, "from 1 to 50"),
        ({"masks": []}, "masks is empty"),
        ({"masks": "15"}, "not '1'"),
        ({"box": 4}, "box size must be 2"),
        ({"rules": "lenient"}, "Choose 'published' or 'strict'"),
        ({"new_tokens": 0}, "new_tokens must be a whole number of at least 1, not 0"),
        ({"train": -1}, "train must be a whole number of at least 0, not -1"),
        ({"test": 1.5}, "test must be a whole number of at least 0, not 1.5"),
        ({"seed": -1}, "seed of the puzzles"),
        ({"data": "no/such/folder"}, "Cannot read no/such/folder/train.jsonl"),
        ({"mask": 15}, "has no setting 'mask'"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, Any], told: str) -> None:
    """Else a typing error trains on other puzzles than were asked for."""
    with pytest.raises(UserError, match=told):
        sudoku(**settings)


def test_limits() -> None:
    """Else the horizon or the length of a reply is not what was asked for."""
    adapter = sudoku(masks=4, box=2, new_tokens=12)
    assert {adapter.limits(task) for task in adapter.tasks("train")} == {Limits(turns=12, new_tokens=12)}
    default = sudoku(masks=5)
    assert default.limits(default.tasks("train")[0]).new_tokens == 64


def test_files_of_ones_own(tmp_path: Path) -> None:
    """Else puzzles from elsewhere cannot be played, or more of them are than were asked for."""
    rows = generate(Recipe(box=2, masks=(2, 3), splits=(("train", 8), ("eval", 4))))
    (tmp_path / "train.jsonl").write_text(as_text(rows["train"]), encoding="utf-8")
    (tmp_path / "eval.jsonl").write_text(as_text(rows["eval"]), encoding="utf-8")
    adapter = sudoku(data=str(tmp_path), box=2, masks=3, train=3)
    assert [task.id for task in adapter.tasks("train")] == ["train-000001", "train-000003", "train-000005"]
    assert [task.id for task in adapter.tasks("test")] == ["eval-000001"]
    assert adapter.tasks("val") == []
    with pytest.raises(UserError, match="no row of box size 2 with masks 4; numbers of blanks there: 2, 3"):
        sudoku(data=str(tmp_path), box=2, masks=4)
    with pytest.raises(UserError, match="no row of box size 3 with masks 2; numbers of blanks there: none"):
        sudoku(data=str(tmp_path), masks=2)


PUZZLE = from_compact("1.34" + "34.2" + "2143" + "4321")

DRAWN = """\
     c1 c2 | c3 c4
r1:  1  .  | 3  4
r2:  3  4  | .  2
     ------+------
r3:  2  1  | 4  3
r4:  4  3  | 2  1"""


def test_a_drawn_board() -> None:
    """Else the model cannot tell which cell is which: columns must stand below their names."""
    assert drawn(PUZZLE) == DRAWN
    for line in DRAWN.splitlines()[1:]:
        assert line.rstrip() == line


@pytest.mark.parametrize("rules", [PUBLISHED, STRICT], ids=lambda rules: rules.name)
def test_what_the_model_is_shown(rules: Any) -> None:
    """Else the model lacks what it needs: no earlier turn is shown to it."""
    board = from_compact("1234" + "34.2" + "2143" + "4321")
    shown = prompt(Observation(PUZZLE, board, 4, "r1c2 is 2 now."), rules)
    parts = ["set <row> <col> <value>", "Last turn: r1c2 is 2 now.", f"2 blank cells:\n{DRAWN}\n"]
    parts += [f"turn 4, 1 blank cells left:\n{drawn(board)}\n", "Blank cells: r2c3\n"]
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)
    assert ("may set again: r1c2" in shown) == (rules is STRICT)


def test_nothing_is_said_of_a_last_turn_before_the_first() -> None:
    """Else the first prompt begins with an empty remark."""
    assert "Last turn" not in prompt(Observation(PUZZLE, PUZZLE), PUBLISHED)


def test_a_full_board_under_the_strict_rules() -> None:
    """Else the model is asked to choose a blank cell where there is none."""
    board = from_compact("1234" + "3442" + "2143" + "4321")
    shown = prompt(Observation(PUZZLE, board, 2, "r2c3 is 4 now."), STRICT)
    assert "Blank cells: none" in shown
    assert "r1c2, r2c3" in shown
    assert "The board is full, but" in shown


def test_the_solution_is_not_shown() -> None:
    """Else the agent would learn to copy: nothing that depends on the solution may reach the prompt."""
    adapter = sudoku(masks=5)
    task = adapter.tasks("train")[0]
    seen = adapter.environment(task).observe()
    blind = AgentTask(task.id, task.split, {"puzzle": task.payload["puzzle"]}, task.minimum_horizon)
    assert adapter.prompt(blind, adapter.environment(blind).observe()) == adapter.prompt(task, seen)
