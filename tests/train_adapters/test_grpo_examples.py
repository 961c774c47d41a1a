"""From episodes to examples: advantages, whose tokens they are, and how they are dealt out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_adapters.adapter import Ending, Episode
from train_adapters.grpo.examples import Example, advantages, examples_of, minibatches, passes
from train_adapters.seeds import turn_seed

REWARDS = st.lists(st.none() | st.floats(-10, 10), min_size=4, max_size=4)


@given(REWARDS, REWARDS)
def test_advantages_add_up_to_nothing_in_each_group(first: list[float | None], second: list[float | None]) -> None:
    """Else a group as a whole is pushed, and hard tasks are learnt to be avoided."""
    found = advantages([*first, *second], 4)
    for rewards, mine in ((first, found[:4]), (second, found[4:])):
        assert sum(mine) == pytest.approx(0, abs=1e-6)
        assert all(value == 0 for reward, value in zip(rewards, mine, strict=True) if reward is None)
        known = [(reward, value) for reward, value in zip(rewards, mine, strict=True) if reward is not None]
        assert [value for _, value in sorted(known)] == sorted(value for _, value in known)


def test_advantages_are_those_of_trl() -> None:
    """Else what is called GRPO is something else: minus the mean, over the unbiased standard deviation plus 1e-4."""
    assert advantages([0.0, 1.0, 1.0, 0.0], 4) == pytest.approx([-0.86588, 0.86588, 0.86588, -0.86588], abs=1e-4)
    assert advantages([1.0, None, 0.0], 3) == pytest.approx([0.70701, 0.0, -0.70701], abs=1e-4)
    assert advantages([1.0, None, 0.5, 0.5], 2) == [0.0] * 4


def episode(task: str, sample: int, reward: float | None, turns: int) -> Episode:
    ending = Ending.INFRA_FAILED if reward is None else Ending.SCORED
    return Episode(task, sample, ending, reward, turns=turns)


def test_replies_of_an_episode_share_its_advantage() -> None:
    """Else rewards go to the replies of other episodes."""
    episodes = [episode("a", 0, 1.0, 2), episode("a", 1, 0.0, 1), episode("b", 0, None, 1), episode("b", 1, 1.0, 1)]
    seeds = {
        (task, sample, turn): turn_seed(7, "p", task, sample, turn)
        for task in "ab"
        for sample in (0, 1)
        for turn in (0, 1)
    }
    written = {seed: ([1, 2, turn], [sample, turn]) for (task, sample, turn), seed in seeds.items()}
    found = examples_of(episodes, 2, written, 7, "p")
    assert [(one.prompt, one.drawn) for one in found] == [
        ((1, 2, 0), (0, 0)),
        ((1, 2, 1), (0, 1)),
        ((1, 2, 0), (1, 0)),
        ((1, 2, 0), (1, 0)),
    ]
    assert [round(one.advantage, 3) for one in found] == [0.707, 0.707, -0.707, 0.0]


def test_turns_without_a_token_teach_nothing() -> None:
    """Else a prompt that fills the context breaks the step."""
    one = replace(episode("a", 0, 0.0, 2), ending=Ending.AGENT_FAILED)
    written = {turn_seed(7, "p", "a", 0, 0): ([1], [2]), turn_seed(7, "p", "a", 1, 0): ([1], [])}
    found = examples_of([one, episode("a", 1, 1.0, 1)], 2, written, 7, "p")
    assert [one.drawn for one in found] == [(2,)]


EXAMPLES = st.lists(
    st.builds(
        Example,
        st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple),
        st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple),
        st.floats(-3, 3, width=32),
    ),
    max_size=12,
)


@given(EXAMPLES, st.integers(1, 4), st.integers(1, 5))
def test_every_example_is_in_exactly_one_pass(examples: list[Example], count: int, rows: int) -> None:
    """Else replies are learnt from twice or never, or padding is learnt from."""
    dealt = minibatches(examples, count, np.random.default_rng(0))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
    found = []
    for mine in dealt:
        for one in passes(mine, rows, padding=0):
            assert len(one.prompts) <= rows
            assert one.prompts_mask[:, -1].all()  # padded on the left
            assert one.drawn_mask[:, 0].all()
            for row in range(len(one.prompts)):
                prompt = one.prompts[row][one.prompts_mask[row] == 1].tolist()
                drawn = one.drawn[row][one.drawn_mask[row] == 1].tolist()
                found.append(Example(tuple(prompt), tuple(drawn), float(one.advantages[row])))
                assert (one.drawn[row][one.drawn_mask[row] == 0] == 0).all()
    assert sorted(found, key=repr) == sorted(examples, key=repr)
