"""Drawing tokens: each row from its own stream, and only tokens that the settings keep."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.sampling import RowSampler
from operators.errors import UserError

LOGITS = torch.log(torch.tensor([0.05, 0.4, 0.1, 0.25, 0.2]))
DRAWS = 4000


def drawn(scores: torch.Tensor, sampler: RowSampler, *, position: int = 0, prompt_length: int = 3) -> list[int]:
    """The tokens that the sampler decides on; checks that it leaves exactly one possible in each row."""
    tokens = torch.zeros(scores.shape[0], prompt_length + position, dtype=torch.long)
    decided = sampler(tokens, scores)
    assert decided.shape == scores.shape
    assert ((decided == 0).sum(dim=1) == 1).all()
    assert (torch.isinf(decided).sum(dim=1) == scores.shape[1] - 1).all()
    return [int(token) for token in decided.argmax(dim=1)]


def counts(sampling: Sampling, logits: torch.Tensor = LOGITS) -> list[int]:
    """How often each token is drawn by rows of different seeds."""
    tokens = drawn(logits.repeat(DRAWS, 1), RowSampler(sampling, list(range(DRAWS)), 3))
    return [int(count) for count in np.bincount(tokens, minlength=logits.numel())]


def with_number(sampling: Sampling, number: float) -> RowSampler:
    """A sampler whose only row draws at this uniform number."""
    sampler = RowSampler(sampling, [0], 3)
    sampler._numbers.fill_(number)
    return sampler


@pytest.mark.parametrize(
    ("sampling", "shares"),
    [
        (Sampling(1.0, 1.0, 50), [0.05, 0.4, 0.1, 0.25, 0.2]),
        (Sampling(0.5, 1.0, 50), [0.0025, 0.16, 0.01, 0.0625, 0.04]),
        (Sampling(1.0, 1.0, 3), [0, 0.4, 0, 0.25, 0.2]),
        (Sampling(1.0, 0.6, 50), [0, 0.4, 0, 0.25, 0]),
        (Sampling(1.0, 0.7, 50), [0, 0.4, 0, 0.25, 0.2]),
        (Sampling(1.0, 0.5, 3), [0, 0.4, 0, 0.25, 0]),
        (Sampling(1.0, 1e-9, 50), [0, 1, 0, 0, 0]),
        (Sampling(1.0, 1.0, 1), [0, 1, 0, 0, 0]),
    ],
)
def test_tokens_are_drawn_in_their_shares(sampling: Sampling, shares: list[float]) -> None:
    """A wrong cut or temperature would change what the model writes, in every run."""
    found = np.array(counts(sampling))
    expected = np.array(shares) / sum(shares) * DRAWS
    kept = expected > 0
    assert found[~kept].sum() == 0
    if kept.sum() > 1:
        assert chisquare(found[kept], expected[kept]).pvalue > 1e-4


def test_temperature_zero_takes_the_most_probable_token() -> None:
    """A greedy run that draws is not greedy."""
    scores = torch.randn(50, 20, generator=torch.Generator().manual_seed(1))
    assert drawn(scores, RowSampler(Sampling(temperature=0), list(range(50)), 3)) == scores.argmax(dim=1).tolist()


def test_a_rows_draws_do_not_depend_on_the_other_rows() -> None:
    """A candidate would change with the company that its batch puts it in."""
    sampling = Sampling(1.0, 0.95, 10, 32)
    scores = torch.randn(6, 40, generator=torch.Generator().manual_seed(2))
    seeds = [5, 2**64 - 1, 0, 77, 78, 79]
    together = [drawn(scores, RowSampler(sampling, seeds, 3), position=at) for at in range(32)]
    for row in range(6):
        alone = RowSampler(sampling, [seeds[row]], 9)
        for at in range(32):
            assert drawn(scores[row : row + 1], alone, position=at, prompt_length=9) == [together[at][row]]


def test_draws_leave_the_global_generators_alone_and_ignore_them() -> None:
    """A library that draws from a global generator would change the replies."""
    scores = LOGITS.repeat(100, 1)
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        random.seed(seed)
        states = torch.get_rng_state(), random.getstate()
        found.append(drawn(scores, RowSampler(Sampling(), list(range(100)), 3)))
        assert torch.equal(torch.get_rng_state(), states[0])
        assert random.getstate() == states[1]
    assert found[0] == found[1]


def test_positions_have_numbers_of_their_own() -> None:
    """One number for the whole reply would draw from the same quantile at every token."""
    sampler = RowSampler(Sampling(1.0, 1.0, 50, 200), [9], 3)
    tokens = [drawn(LOGITS[None], sampler, position=at)[0] for at in range(200)]
    assert set(tokens) == set(range(5))


@pytest.mark.parametrize("top_p", [0.1, 0.3, 0.6, 0.7, 0.9, 0.95, 0.99, 1.0])
def test_the_largest_number_draws_the_last_kept_token(top_p: float) -> None:
    """Rounding at the end of the interval would draw a token that top-p has cut."""
    generator = torch.Generator().manual_seed(3)
    for _ in range(50):
        scores = torch.randn(1, 30, generator=generator)
        probabilities = torch.softmax(scores.double(), dim=1)[0].sort(descending=True)
        kept = int((probabilities.values.cumsum(0) - probabilities.values < top_p).sum())
        token = drawn(scores, with_number(Sampling(1.0, top_p, 30), 1 - 2**-53))[0]
        assert token in probabilities.indices[:kept].tolist()


def test_numbers_at_the_ends_draw_possible_tokens() -> None:
    """A token that the model rules out must not come out of rounding."""
    scores = torch.tensor([[0.0, -torch.inf, 1.0, -torch.inf]])
    assert drawn(scores, with_number(Sampling(1.0, 1.0, 4), 0.0)) == [2]
    assert drawn(scores, with_number(Sampling(1.0, 1.0, 4), 1 - 2**-53)) == [0]


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_k": 0},
        {"max_new_tokens": 0},
        {"presence_penalty": 2.1},
        {"presence_penalty": float("nan")},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    """A wrong setting must be named before a model is loaded."""
    with pytest.raises(UserError, match="must"):
        Sampling(**settings)  # type: ignore[arg-type]


PENALTY = 1.5
HIGH = torch.tensor([[2.0, 1.9, 1.0, 0.6]])


def penalised(reply: list[int], sampling: Sampling, number: float = 0.0) -> int:
    """The token drawn at a number after a prompt that holds every token, and after a reply."""
    tokens = torch.tensor([[0, 1, 2, 3, *reply]])
    sampler = RowSampler(sampling, [0], 4)
    sampler._numbers.fill_(number)
    return int(sampler(tokens, HIGH).argmax())


def test_a_penalty_falls_once_on_the_tokens_of_the_reply() -> None:
    """A penalty on the prompt's words would forbid what the task asks for; one for every time would be another one."""
    greedy = Sampling(0, 1.0, 4, presence_penalty=PENALTY)
    assert penalised([], greedy) == 0
    assert penalised([0], greedy) == 1
    assert penalised([0, 1], greedy) == 2
    assert penalised([0, 1, 2], greedy) == 3
    assert penalised([0, 0, 0, 1, 1, 2, 2, 3], greedy) == 0, "all have lost the same, however often they stand there"
    assert penalised([0], Sampling(0, 1.0, 4, presence_penalty=-PENALTY)) == 0


def test_a_penalty_comes_before_the_temperature_and_the_cuts() -> None:
    """In another order the share of a token, or whether it is possible at all, would not be vLLM's."""
    cut = Sampling(1.0, 1.0, 2, presence_penalty=PENALTY)
    assert {penalised([0], cut, number) for number in (0.0, 0.9999)} == {1, 2}, "top-k keeps two others"
    half = Sampling(0.5, 1.0, 4, presence_penalty=PENALTY)
    shares = torch.softmax((HIGH[0] - torch.tensor([PENALTY, 0, 0, 0])) / 0.5, dim=0)
    order = [1, 2, 3, 0]
    edges = torch.cumsum(shares[order], dim=0)
    for place, edge in enumerate(edges[:-1].tolist()):
        assert penalised([0], half, edge - 1e-4) == order[place]
        assert penalised([0], half, edge + 1e-4) == order[place + 1]


def test_rows_have_penalties_of_their_own() -> None:
    """A reply would avoid the words of its neighbours in the batch."""
    sampler = RowSampler(Sampling(0, presence_penalty=PENALTY), [0, 1], 1)
    decided = sampler(torch.tensor([[3, 0], [3, 1]]), HIGH.repeat(2, 1))
    assert decided.argmax(dim=1).tolist() == [1, 0]


def test_without_a_penalty_nothing_is_taken_from_the_logits() -> None:
    """Runs that were made before there were penalties could not be repeated bit by bit."""
    scores = torch.randn(40, 30, generator=torch.Generator().manual_seed(5))
    sampler = RowSampler(Sampling(), list(range(40)), 3)
    assert sampler._penalised(scores, torch.zeros(40, 7, dtype=torch.long)) is scores
