"""Low-rank noise: every row of a batch under its own direction, as if the weights had been moved along it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from families import build
from tiny_models import FAMILIES, an_update, tiny_checkpoint
from torch import nn
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from eoh_esopt.models.protocol import Request, Sampling
from eoh_esopt.models.row_products import row_products
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.selftest import self_test
from eoh_esopt.models.transformers_model import TransformersModel
from eoh_esopt.models.weights import ScopedWeights
from operators.errors import UserError
from operators.records import Direction

SIGMA = 0.02
MIXED = [Direction(1, SIGMA), None, Direction(2**64 - 1, SIGMA), None, Direction(1, -SIGMA)]
TOKENS = torch.randint(64, (5, 7), generator=torch.Generator().manual_seed(4))
RANKS = [1, 3]


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    found: torch.Tensor = model(input_ids=TOKENS).logits
    return found


@torch.no_grad()
def logits_under(model: Any, directions: list[Direction | None], rank: int = 1) -> torch.Tensor:
    with row_products(ScopedWeights(model, get_scope("full", rank)), directions):
        return logits(model)


def logits_moved(model: Any, direction: Direction, rank: int) -> torch.Tensor:
    """Of the model with its weights moved in place, all rows."""
    weights = ScopedWeights(model, get_scope("full", rank))
    weights.perturb(direction)
    found = logits(model)
    weights.restore()
    return found


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_under_a_direction_is_a_model_with_those_weights(family: str, rank: int) -> None:
    """What is learnt from rows would not fit the update, which moves the weights themselves."""
    model = tiny_checkpoint(family)
    plain, mixed = logits(model), logits_under(model, MIXED, rank)
    for row, direction in enumerate(MIXED):
        if direction is not None:
            expected = logits_moved(model, direction, rank)[row]
            assert torch.allclose(mixed[row], expected, rtol=1e-4, atol=1e-5)
            assert (mixed[row] - plain[row]).abs().max() > 100 * (mixed[row] - expected).abs().max()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_under_a_direction_is_close_in_bfloat16(family: str) -> None:
    """In the dtype that runs use, rounding must stay well below what the direction does."""
    model = tiny_checkpoint(family, torch.bfloat16)
    plain, mixed = logits(model).float(), logits_under(model, MIXED).float()
    for row, direction in enumerate(MIXED):
        if direction is not None:
            error = (mixed[row] - logits_moved(model, direction, 1)[row].float()).square().mean().sqrt()
            effect = (mixed[row] - plain[row]).square().mean().sqrt()
            assert error < 0.4 * effect


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_without_low_rank_noise_keep_their_bits(family: str, dtype: torch.dtype) -> None:
    """A reply of the current weights would change because its neighbour is perturbed."""
    model = tiny_checkpoint(family, dtype)
    plain, mixed = logits(model), logits_under(model, MIXED)
    for row, direction in enumerate(MIXED):
        assert torch.equal(mixed[row], plain[row]) == (direction is None)
    assert torch.equal(logits(model), plain)


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_does_not_depend_on_its_place_or_its_neighbours(dtype: torch.dtype, rank: int) -> None:
    """The same direction must do the same in every row, or rewards would depend on the batch's order."""
    model, direction = tiny_checkpoint("qwen3", dtype), Direction(9, SIGMA)
    first = logits_under(model, [direction, None, None, None, None], rank)[0]
    assert torch.equal(first, logits_under(model, [direction, *MIXED[:4]], rank)[0])
    assert torch.equal(first, logits_under(model, [direction] * 5, rank)[0])


def test_low_rank_directions_end_with_the_block_even_after_an_error() -> None:
    """A hook left behind would perturb all later batches."""
    model = tiny_checkpoint("llama")
    plain, weights = logits(model), ScopedWeights(model, get_scope("full", 1))
    with pytest.raises(ZeroDivisionError), row_products(weights, MIXED):
        raise ZeroDivisionError
    assert torch.equal(logits(model), plain)
    with row_products(weights, [None] * 5):
        assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_of_another_size_is_refused(family: str) -> None:
    """Directions spread over the wrong rows would reward candidates for each other's noise."""
    with pytest.raises(UserError, match=r"3 rows.*Use --noise full"):
        logits_under(tiny_checkpoint(family), MIXED[:3])


class Bypassed(nn.Module):
    """Computes with a layer's weight instead of asking the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.bypassed = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.used(values), self.bypassed.weight)


def test_a_layer_that_products_do_not_reach_is_refused() -> None:
    """Its weights would be moved by updates that no row ran under."""
    model = Bypassed().requires_grad_(False)
    weights = ScopedWeights(model, get_scope("full", 1))
    with pytest.raises(UserError, match=r"cannot reach bypassed\.weight"), row_products(weights, [Direction(1, 0.1)]):
        model(torch.ones(1, 2, 4))


def test_experts_are_left_out_where_they_are_no_linear_layers() -> None:
    """Each expert sees some tokens of some rows, which rows' products cannot follow."""
    config = Qwen3MoeConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, moe_intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, num_experts=4, num_experts_per_tok=2, head_dim=8,
    )  # fmt: skip
    model = Qwen3MoeForCausalLM(config).train(False).requires_grad_(False)
    names = {tensor.name for tensor in ScopedWeights(model, get_scope("full", 1)).tensors}
    assert not any("experts" in name for name in names)
    plain, mixed = logits(model), logits_under(model, MIXED)
    assert not torch.equal(mixed[0], plain[0])
    assert torch.equal(mixed[1], plain[1])


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> TransformersModel:
    """A tiny model with low-rank noise, four replies a batch."""
    folder = build("qwen3", tmp_path_factory.mktemp("lowrank") / "tiny", torch.float32)
    return TransformersModel(folder, scope=get_scope("full", 1), sampling=Sampling(max_new_tokens=8), max_batch=4)


def asked(*directions: Direction | None) -> list[Request]:
    return [Request("Write a function.", "", 7, direction) for direction in directions]


def test_a_batch_holds_replies_of_any_directions(opened: TransformersModel) -> None:
    """One at a time, most of the processor's or the GPU's work is wasted."""
    assert opened.batches(asked(*MIXED, *MIXED)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    replies = opened.generate(asked(*MIXED[:4]))
    assert replies[1] == replies[3]
    assert len({reply.text for reply in replies}) == 3


def test_generation_writes_nothing_to_the_weights(opened: TransformersModel) -> None:
    """A restore that can be wrong is not needed, and an interrupted batch leaves the true weights."""
    before = {name: one.clone() for name, one in opened.weights.live.items()}
    checksum = opened.checksum()
    opened.generate(asked(*MIXED[:4]))
    assert self_test(opened, SIGMA, exact=True) > 0
    assert all(torch.equal(one, before[name]) for name, one in opened.weights.live.items())
    assert opened.checksum() == checksum


def test_the_description_names_noise_and_rank(opened: TransformersModel) -> None:
    """Results of low-rank noise would be taken for the paper's."""
    described = opened.describe()
    assert (described["scope"], described["noise"], described["rank"]) == ("full", "lowrank", 1)
    assert described["scope_elements"] == opened.weights.elements < described["parameters"]


def test_an_update_shows_in_the_next_batch(opened: TransformersModel, tmp_path: Path) -> None:
    """Rows would go on with the weights of the beginning. Runs last: it moves the weights for good."""
    plain = opened.generate(asked(None))
    opened.apply(an_update(0, alpha=2.0))
    moved = opened.generate(asked(None))
    assert moved != plain
    opened.save(tmp_path / "adapted", float32=True)
    again = TransformersModel(
        tmp_path / "adapted", scope=get_scope("full"), sampling=Sampling(max_new_tokens=8), dtype="float32"
    )
    assert again.generate(asked(None)) == moved
