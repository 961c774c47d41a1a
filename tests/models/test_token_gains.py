"""Gains by row in a vLLM worker, on a model that takes its tokens one after the other as vLLM's do."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.vllm.token_gains import TokenGains, carry, trouble
from eoh_esopt.models.weights import ScopedWeights
from operators.records import Direction

WIDTH, HEADS, VOCABULARY = 12, 3, 17
DIRECTIONS = [None, Direction(1, 0.06), Direction(2**64 - 1, 0.06), Direction(1, -0.06)]


class RMSNorm(nn.Module):
    """As vLLM's: given a residual, it adds it first and gives the sum too."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(size))

    def forward(self, values: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        total = values if residual is None else values + residual
        normed = total * total.square().mean(-1, keepdim=True).add(1e-6).rsqrt() * self.weight
        return normed if residual is None else (normed, total)


class Served(nn.Module):
    """Norms of whole vectors, of heads in a dimension of their own, and of heads one below the other."""

    def __init__(self, skip: str = "") -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.first, self.last = RMSNorm(WIDTH), RMSNorm(WIDTH)
        self.heads, self.flat = RMSNorm(WIDTH // HEADS), RMSNorm(WIDTH // HEADS)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.skip = skip
        self.requires_grad_(False)

    def forward(self, input_ids: torch.Tensor, positions: torch.Tensor, **others: Any) -> torch.Tensor:
        residual = self.embed(input_ids) + positions[:, None] / 100
        values = self.mix(self.first(residual))
        values = self.heads(values.view(-1, HEADS, WIDTH // HEADS)).reshape(-1, WIDTH)
        values = self.flat(values.reshape(-1, WIDTH // HEADS)).reshape(-1, WIDTH)
        if self.skip == "all":
            return values
        if self.skip == "tokens":
            values, residual = values[-1:], residual[-1:]
        values, residual = self.last(values, residual)
        return values + residual


def runner_of(model: nn.Module) -> Any:
    """What of vLLM's model runner is read; without a batch yet."""
    batch, ends = SimpleNamespace(req_ids=[]), SimpleNamespace(np=np.zeros(65, np.int32))
    return SimpleNamespace(model=model, requests={}, input_batch=batch, query_start_loc=ends)


def step(runner: Any, asked: Sequence[tuple[Direction | None, int]], padding: int = 0) -> torch.Tensor:
    """A forward pass of requests with so many tokens each, which are the same for the same place in the step."""
    runner.requests = {f"{i}-x": SimpleNamespace(sampling_params=params_of(one)) for i, (one, _) in enumerate(asked)}
    runner.input_batch.req_ids = list(runner.requests)
    ends = np.cumsum([0, *(count for _, count in asked)])
    runner.query_start_loc.np[:] = ends[-1]
    runner.query_start_loc.np[: len(ends)] = ends
    return run(runner.model, int(ends[-1]) + padding)


def run(model: nn.Module, tokens: int) -> torch.Tensor:
    places = torch.arange(tokens)
    output: torch.Tensor = model(input_ids=places * 7 % VOCABULARY, positions=places, intermediate_tensors=None)
    return output


def params_of(direction: Direction | None) -> Any:
    params = SimpleNamespace(extra_args=None)
    if direction is not None:
        carry({}, params, direction)
    return params


def in_place(direction: Direction | None, tokens: int) -> torch.Tensor:
    """The same with the gains themselves set to the direction."""
    model = Served()
    if direction is not None:
        ScopedWeights(model, SCOPES["norms"]).perturb(direction)
    return run(model, tokens)


def hooked(model: nn.Module) -> tuple[Any, TokenGains]:
    runner = runner_of(model)
    return runner, TokenGains(runner, ScopedWeights(model, SCOPES["norms"]).tensors)


REQUESTS = st.lists(st.tuples(st.sampled_from(DIRECTIONS), st.integers(1, 5)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=50)  # the first example compiles kernels
@given(steps=st.lists(st.tuples(REQUESTS, st.integers(0, 4)), min_size=1, max_size=3))
def test_every_token_runs_under_its_requests_direction(steps: list[tuple[Any, int]]) -> None:
    """Rewards would be measured under other gains than updates move, or a reply written under its neighbour's."""
    runner, gains = hooked(Served())
    for asked, padding in steps:
        found = step(runner, asked, padding)
        of_token = [one for one, count in asked for _ in range(count)] + [None] * padding
        for direction in DIRECTIONS:
            here = [token for token, one in enumerate(of_token) if one == direction]
            expected = in_place(direction, len(of_token))[here]
            if direction is None:
                assert torch.equal(found[here], expected)
            else:
                assert torch.allclose(found[here], expected, rtol=1e-4, atol=1e-5)
    directed = sum(any(one for one, _ in asked) for asked, _ in steps)
    assert gains.report() == {"steps": directed, "missed": []}
    assert gains.report() == {"steps": 0, "missed": []}


def test_directions_move_more_than_rounding() -> None:
    """The comparison with gains in place would hold for hooks that do nothing."""
    outputs = [in_place(direction, 6) for direction in DIRECTIONS]
    assert all((one - other).abs().max() > 0.05 for one in outputs for other in outputs if one is not other)


@pytest.mark.parametrize("skip", ["all", "tokens"])
def test_gains_that_a_step_leaves_out_are_named(skip: str) -> None:
    """Part of a direction would be missing from the replies that it is rewarded for."""
    runner, gains = hooked(Served(skip))
    step(runner, [(DIRECTIONS[1], 3), (None, 2)])
    report = gains.report()
    assert report == {"steps": 1, "missed": ["last.weight"]}
    assert "last.weight" in trouble([report], 1)


def test_trouble_on_any_worker_counts() -> None:
    """One worker of a split model, or one step in a graph, would go on under other gains unseen."""
    fine = {"steps": 4, "missed": []}
    assert trouble([fine, fine], 4) == ""
    assert "3 of at least 4" in trouble([fine, {"steps": 3, "missed": []}], 4)
    assert "q.weight" in trouble([fine, {"steps": 4, "missed": ["q.weight"]}], 4)


def test_a_runner_without_a_batch_gets_no_hooks() -> None:
    """vLLM's other model runner would end with an attribute error at the first reply."""
    model = Served()
    gains = TokenGains(SimpleNamespace(model=model), ScopedWeights(model, SCOPES["norms"]).tensors)
    assert torch.equal(run(model, 5), in_place(None, 5))
    assert trouble([gains.report()], 1)


def test_requests_with_arguments_of_others_have_no_direction() -> None:
    """vLLM's own extra arguments would be taken for a direction."""
    runner, gains = hooked(Served())
    params = SimpleNamespace(extra_args={"kv_transfer_params": {}})
    runner.requests = {"a": SimpleNamespace(sampling_params=params), "b": SimpleNamespace(sampling_params=None)}
    runner.input_batch.req_ids = ["a", "b"]
    assert torch.equal(run(runner.model, 5), in_place(None, 5))
    assert gains.report()["steps"] == 0


def test_prompts_share_a_cache_with_their_direction_alone() -> None:
    """The second of two equal prompts would read what was computed under the first one's direction."""
    salts = []
    for direction in [Direction(1, 0.06), Direction(1, -0.06), Direction(2, 0.06), Direction(1, 0.02)]:
        prompt: dict[str, Any] = {"prompt_token_ids": [1, 2]}
        carry(prompt, SimpleNamespace(), direction)
        salts.append(prompt["cache_salt"])
    assert len(set(salts)) == 4
