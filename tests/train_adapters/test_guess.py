"""The smallest environment: fair splits, strict moves, and an oracle that always wins."""

from __future__ import annotations

import asyncio

import pytest

from operators.errors import UserError
from train_adapters.adapter import SPLITS
from train_adapters.guess import make_adapter


def test_no_number_stands_in_two_splits() -> None:
    """What was learnt would be tested on itself."""
    adapter = make_adapter()
    numbers = [task.payload["hidden"] for split in SPLITS for task in adapter.tasks(split)]
    assert sorted(numbers) == list(range(1, 49))
    assert {len(adapter.tasks(split)) for split in SPLITS} == {16}


def test_whoever_copies_the_example_finds_every_number() -> None:
    """The task could not be solved by what the prompt says."""
    adapter = make_adapter()

    async def play(hidden: int) -> int:
        [task] = [one for split in SPLITS for one in adapter.tasks(split) if one.payload["hidden"] == hidden]
        game, turns = adapter.environment(task), 0
        await game.reset()
        while not game.done:
            prompt = adapter.prompt(task, game.observe())
            await game.step(adapter.parse(prompt.removesuffix(".").rpartition(" ")[2]))
            turns += 1
        assert game.reward == await adapter.score(task, game) == 1.0
        return turns

    turns = [asyncio.run(play(hidden)) for hidden in range(1, 49)]
    assert max(turns) <= 6 < adapter.turns


def test_a_guess_outside_of_the_interval_does_not_widen_it() -> None:
    """An agent would lose what it knows by one careless reply."""
    adapter = make_adapter()
    task = adapter.tasks("train")[0]
    game = adapter.environment(task)

    async def play() -> None:
        for guess in (0, 1000, 1, 999, None):
            if guess != task.payload["hidden"]:
                await game.step(guess)

    asyncio.run(play())
    low, high = game.observe()
    assert 1 <= low <= task.payload["hidden"] <= high <= 48


@pytest.mark.parametrize(
    ("reply", "guess"),
    [
        ("14", 14),
        (" 14.\n", 14),
        ("007", 7),
        ("", None),
        ("It is 14", None),
        ("14 or 15", None),
        ("14..", None),
        ("-3", None),
        ("1.5", None),
        ("٣", None),
        ("9" * 100_000, None),
    ],
)
def test_only_digits_are_a_guess(reply: str, guess: int | None) -> None:
    """The form is what there is to learn."""
    assert make_adapter().parse(reply) == guess


def test_bad_settings_are_named() -> None:
    """A training would begin with an empty split."""
    with pytest.raises(UserError, match="highest must be at least 3"):
        make_adapter(highest=2)
    with pytest.raises(UserError, match="turns must be at least 1"):
        make_adapter(turns=0)
