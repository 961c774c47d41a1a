"""Norms scope: every row of a batch under its own direction, as if the gains had been set to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, an_update, tiny_checkpoint

from eoh_esopt.models.row_gains import row_directions
from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.weights import ScopedWeights
from operators.noise import noise
from operators.records import Direction

NORMS = SCOPES["norms"]
MIXED = [Direction(1, 0.06), None, Direction(2**64 - 1, 0.06), None, Direction(1, 0.02)]
TOKENS = torch.randint(64, (5, 7), generator=torch.Generator().manual_seed(4))


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    found: torch.Tensor = model(input_ids=TOKENS).logits
    return found


@torch.no_grad()
def logits_under(model: Any, directions: list[Direction | None]) -> torch.Tensor:
    with row_directions(ScopedWeights(model, NORMS), directions):
        return logits(model)


@torch.no_grad()
def set_gains(model: Any, direction: Direction) -> None:
    """Gains g become g * (1 + sigma * eps), whatever the norm adds to its weight."""
    for tensor in ScopedWeights(model, NORMS).tensors:
        eps = torch.from_numpy(noise(direction.seed, tensor.name, 0, tensor.live.numel())).double()
        gains = (tensor.live.double() + tensor.offset) * (1 + direction.sigma * eps)
        tensor.live.copy_(gains - tensor.offset)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_under_a_direction_is_a_model_with_those_gains(family: str) -> None:
    """What is learnt from rows would not fit the update, which moves the gains themselves."""
    mixed = logits_under(tiny_checkpoint(family), MIXED)
    plain = logits(tiny_checkpoint(family))
    for row, direction in enumerate(MIXED):
        if direction is not None:
            model = tiny_checkpoint(family)
            set_gains(model, direction)
            expected = logits(model)[row]
            assert torch.allclose(mixed[row], expected, rtol=1e-4, atol=2e-6)
            assert (mixed[row] - plain[row]).abs().max() > 100 * (mixed[row] - expected).abs().max()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_under_a_direction_is_close_in_bfloat16(family: str) -> None:
    """In the dtype that runs use, rounding must stay well below what the direction does."""
    mixed = logits_under(tiny_checkpoint(family, torch.bfloat16), MIXED).float()
    plain = logits(tiny_checkpoint(family, torch.bfloat16)).float()
    for row, direction in enumerate(MIXED):
        if direction is not None:
            model = tiny_checkpoint(family, torch.bfloat16)
            set_gains(model, direction)
            error = (mixed[row] - logits(model)[row].float()).square().mean().sqrt()
            effect = (mixed[row] - plain[row]).square().mean().sqrt()
            assert error < 0.4 * effect


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_without_a_direction_keep_their_bits(family: str, dtype: torch.dtype) -> None:
    """A reply of the current weights would change because its neighbour is perturbed."""
    model = tiny_checkpoint(family, dtype)
    plain, mixed = logits(model), logits_under(model, MIXED)
    for row, direction in enumerate(MIXED):
        assert torch.equal(mixed[row], plain[row]) == (direction is None)
    assert torch.equal(logits(model), plain)


def test_rows_do_not_depend_on_their_place() -> None:
    """The same direction must do the same in every row, or rewards would depend on the batch's order."""
    model = tiny_checkpoint("qwen3")
    first = logits_under(model, [Direction(9, 0.06), None, None, None, None])[0]
    assert torch.equal(first, logits_under(model, [Direction(9, 0.06), *MIXED[:4]])[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_row_factors_are_one_plus_the_scaled_noise(family: str) -> None:
    """Other factors than the update's noise would reward one direction and move along another."""
    scoped = ScopedWeights(tiny_checkpoint(family), NORMS)
    for tensor in scoped.tensors:
        factors = tensor.row_factors(MIXED)
        for row, direction in zip(factors.numpy(), MIXED, strict=True):
            size = tensor.live.numel()
            eps = np.zeros(size, np.float32) if direction is None else noise(direction.seed, tensor.name, 0, size)
            sigma = np.float32(direction.sigma if direction else 0)
            assert np.array_equal(row, sigma * eps + np.float32(1))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_update_scales_the_gains_and_nothing_else(family: str) -> None:
    """Gains around zero must be moved as 1 + weight; all other weights belong to the base model."""
    model = tiny_checkpoint(family, torch.bfloat16)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    scoped, update = ScopedWeights(model, NORMS), an_update(0, alpha=0.03)
    scoped.update(update)
    moved = {tensor.name: tensor for tensor in scoped.tensors}
    for name, parameter in model.named_parameters():
        if name not in moved:
            assert torch.equal(parameter, before[name]), name
            continue
        offset = np.float32(moved[name].offset)
        total = np.zeros(parameter.numel(), np.float32)
        for seed, coefficient in zip(update.seeds, update.coefficients, strict=True):
            total = total + np.float32(coefficient) * noise(seed, name, 0, parameter.numel())
        expected = (before[name].float().numpy() + offset) * (np.float32(1) + total) - offset
        master = moved[name].master
        assert master is not None
        assert np.array_equal(master.numpy(), expected), name
        assert torch.equal(parameter, torch.from_numpy(expected).to(torch.bfloat16))
        assert 0.005 < np.abs(total).mean() < 0.03


@pytest.mark.parametrize("family", FAMILIES)
def test_gains_can_also_be_moved_in_place(family: str) -> None:
    """A server without rows of its own would learn from other directions than this process."""
    model, direction = tiny_checkpoint(family), Direction(1, 0.06)
    scoped = ScopedWeights(model, NORMS)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    scoped.perturb(direction)
    for tensor in scoped.tensors:
        assert tensor.master is not None
        eps = noise(direction.seed, tensor.name, 0, tensor.live.numel())
        factors = np.float32(0.06) * eps + np.float32(1)
        gains = (tensor.master.numpy() + np.float32(tensor.offset)) * factors - np.float32(tensor.offset)
        assert torch.equal(tensor.live.reshape(-1), torch.from_numpy(gains).to(tensor.live.dtype)), tensor.name
    scoped.restore()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_directions_end_with_the_block_even_after_an_error() -> None:
    """A hook left behind would perturb all later batches."""
    model = tiny_checkpoint("llama")
    plain = logits(model)
    with pytest.raises(ZeroDivisionError), row_directions(ScopedWeights(model, NORMS), MIXED):
        raise ZeroDivisionError
    assert torch.equal(logits(model), plain)
    with row_directions(ScopedWeights(model, NORMS), [None] * 5):
        assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_of_another_size_is_refused(family: str) -> None:
    """Directions spread over the wrong rows would reward candidates for each other's noise."""
    with pytest.raises(RuntimeError, match="3 rows"):
        logits_under(tiny_checkpoint(family), MIXED[:3])
