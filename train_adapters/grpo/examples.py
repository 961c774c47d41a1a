"""From episodes to what a policy gradient learns from: one example a reply, with the advantage of its episode.

The model sees one prompt a turn and nothing else, so a turn is a sequence of its own: the prompt as it was read, and
the tokens that were drawn after it. An episode's turns in one long sequence would be read in a context in which they
were never written. All replies of an episode share its advantage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from train_adapters.adapter import Episode
from train_adapters.seeds import turn_seed

_EPSILON = 1e-4
"""Added to a group's standard deviation; trl's."""


@dataclass(frozen=True)
class Example:
    """One reply.

    Attributes:
        prompt: tokens that were read.
        drawn: tokens that were written, at least one.
        advantage: of its episode.
    """

    prompt: tuple[int, ...]
    drawn: tuple[int, ...]
    advantage: float


Written = Mapping[int, tuple[Sequence[int], Sequence[int]]]
"""By the seed of the request: the tokens of the prompt, and those that were drawn."""


def advantages(rewards: Sequence[float | None], group: int) -> list[float]:
    """How much better each episode was than the others of its group.

    Shao et al., arXiv 2402.03300, section 4.1.2: reward minus the group's mean, over its standard deviation.

    Args:
        rewards: group after group; None for an episode that does not count.
        group: episodes of a group.

    Returns:
        One an episode; 0 where it does not count, or fewer than two of its group do.
    """
    found: list[float] = []
    for first in range(0, len(rewards), group):
        mine = rewards[first : first + group]
        known = np.array([one for one in mine if one is not None], np.float64)
        if len(known) < 2:
            found += [0.0] * len(mine)
            continue
        mean, scale = known.mean(), known.std(ddof=1) + _EPSILON
        found += [0.0 if one is None else float((one - mean) / scale) for one in mine]
    return found


def examples_of(episodes: Sequence[Episode], group: int, written: Written, seed: int, place: str) -> list[Example]:
    """The replies of the episodes that count.

    Args:
        episodes: group after group.
        group: episodes of a group.
        written: what was written in them.
        seed: of the run.
        place: of the seeds of their replies.
    """
    found = []
    for episode, advantage in zip(episodes, advantages([one.reward for one in episodes], group), strict=True):
        for turn in range(episode.turns if episode.ending.counts else 0):
            prompt, drawn = written.get(turn_seed(seed, place, episode.task, episode.sample, turn), ((), ()))
            if drawn:  # nothing is drawn where the prompt fills the context
                found.append(Example(tuple(prompt), tuple(drawn), advantage))
    return found


@dataclass(frozen=True)
class Pass:
    """Examples of one forward and backward pass, padded: prompts on the left, drawn tokens on the right.

    Attributes:
        prompts, drawn: tokens, int64, shape (rows, longest prompt) and (rows, longest reply).
        prompts_mask, drawn_mask: 1 where there is a token, 0 where there is padding; the same shapes.
        advantages: float32, shape (rows,).
    """

    prompts: torch.Tensor
    prompts_mask: torch.Tensor
    drawn: torch.Tensor
    drawn_mask: torch.Tensor
    advantages: torch.Tensor


def minibatches(examples: Sequence[Example], count: int, rng: np.random.Generator) -> list[list[Example]]:
    """The examples in random order, dealt out to minibatches whose sizes differ by at most one."""
    order = rng.permutation(len(examples))
    return [[examples[place] for place in order[first::count]] for first in range(count)]


def passes(examples: Sequence[Example], rows: int, padding: int) -> Iterator[Pass]:
    """A minibatch in passes of at most `rows` examples, those of like length together."""
    by_length = sorted(examples, key=lambda one: len(one.prompt) + len(one.drawn))
    for first in range(0, len(by_length), rows):
        mine = by_length[first : first + rows]
        prompts, prompts_mask = _padded([one.prompt[::-1] for one in mine], padding)
        drawn, drawn_mask = _padded([one.drawn for one in mine], padding)
        values = torch.tensor([one.advantage for one in mine], dtype=torch.float32)
        yield Pass(prompts.flip(1), prompts_mask.flip(1), drawn, drawn_mask, values)


def _padded(rows: Sequence[Sequence[int]], padding: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Padded on the right, and where there is no padding."""
    tokens = torch.full((len(rows), max(map(len, rows))), padding, dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = torch.tensor(row, dtype=torch.long)
        mask[place, : len(row)] = 1
    return tokens, mask
