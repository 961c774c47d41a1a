"""Moving the weights of a model: exact restores, no update lost, and no half-moved model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_models import FAMILIES, an_update, tiny_checkpoint, tiny_module
from torch import nn

from eoh_esopt.models import weights as weights_module
from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.weights import ScopedTensor, ScopedWeights
from operators.errors import UserError
from operators.noise import noise
from operators.records import Direction, Update

FULL, NORMS = SCOPES["full"], SCOPES["norms"]
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def copies(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def unchanged(model: nn.Module, before: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


def perturbed(values: torch.Tensor, name: str, direction: Direction) -> torch.Tensor:
    """By the definition: float32, product and sum rounded apart, then cast to the weights' dtype."""
    flat = values.float().reshape(-1).numpy()
    moved = flat + np.float32(direction.sigma) * noise(direction.seed, name, 0, flat.size)
    return torch.from_numpy(moved).reshape(values.shape).to(values.dtype)


def total(update: Update, name: str, size: int) -> NDArray[np.float32]:
    """The update of one tensor by the definition."""
    found = np.zeros(size, np.float32)
    for seed, coefficient in zip(update.seeds, update.coefficients, strict=True):
        found = found + np.float32(coefficient) * noise(seed, name, 0, size)
    return found


def test_a_thousand_cycles_leave_the_same_bits() -> None:
    """Weights that drift with each candidate are no longer the ones that the history speaks of."""
    model = tiny_module(torch.bfloat16)
    before, scoped = copies(model), ScopedWeights(model, FULL)
    for seed in range(1000):
        scoped.perturb(Direction(seed, 1e-3))
        scoped.restore()
    assert unchanged(model, before)
    assert scoped.drift() == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_direction_is_the_definitions_and_a_restore_exact(family: str, dtype: torch.dtype) -> None:
    """Every architecture and dtype must see the noise that the history names, tied weights once."""
    model = tiny_checkpoint(family, dtype)
    before, scoped = copies(model), ScopedWeights(model, FULL)
    for direction in (Direction(5, 1e-3), Direction(2**64 - 1, 0.03)):
        scoped.perturb(direction)
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, perturbed(before[name], name, direction)), name
        scoped.restore()
        assert unchanged(model, before)
    assert scoped.elements == sum(parameter.numel() for parameter in model.parameters())
    assert scoped.extra_bytes == 4 * scoped.elements


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_restore_after_an_update_goes_to_the_updated_weights(dtype: torch.dtype) -> None:
    """A restore to the weights of the beginning would undo what was learnt."""
    model = tiny_module(dtype)
    before, scoped = copies(model), ScopedWeights(model, FULL)
    update = an_update(0, alpha=0.05)
    scoped.update(update)
    after = copies(model)
    for name, values in before.items():
        moved = values.float().reshape(-1).numpy() + total(update, name, values.numel())
        assert torch.equal(after[name], torch.from_numpy(moved).reshape(values.shape).to(dtype)), name
        assert not torch.equal(after[name], values)
    scoped.perturb(Direction(1, 0.1))
    scoped.restore()
    assert unchanged(model, after)


def test_no_update_is_lost_to_rounding() -> None:
    """In bfloat16 an update of the published size is below half a step for a gain of 1: it would never be learnt."""
    model = tiny_module(torch.bfloat16)
    scoped = ScopedWeights(model, FULL)
    reference = {tensor.name: masters(tensor).copy() for tensor in scoped.tensors}
    start = {name: values.copy() for name, values in reference.items()}
    for step in range(50):
        update = an_update(step, alpha=5e-4, directions=10)
        scoped.perturb(Direction(step, 1e-3))
        scoped.restore()
        scoped.update(update)
        for name, values in reference.items():
            values += total(update, name, values.size)
    for tensor in scoped.tensors:
        assert np.array_equal(masters(tensor), reference[tensor.name]), tensor.name
        live = torch.from_numpy(reference[tensor.name]).to(torch.bfloat16).reshape(tensor.live.shape)
        assert torch.equal(tensor.live, live)
    gains = reference["norm.weight"] - start["norm.weight"]
    assert np.all(gains != 0)
    assert 5e-4 < gains.std() < 2e-3


def masters(tensor: ScopedTensor) -> NDArray[np.float32]:
    assert tensor.master is not None
    values: NDArray[np.float32] = tensor.master.numpy()
    return values


@pytest.mark.parametrize("dtype", DTYPES)
def test_subtracting_drifts_and_says_so(dtype: torch.dtype) -> None:
    """The paper's way of reverting loses weights bit by bit: a user must be able to see how much."""
    model = tiny_module(dtype)
    before, scoped = copies(model), ScopedWeights(model, FULL, "subtract")
    assert scoped.drift() == 0
    for seed in range(100):
        scoped.perturb(Direction(seed, 1e-3))
        scoped.restore()
    assert not unchanged(model, before)
    shadowed = torch.cat([(p.double() - before[n]).reshape(-1)[:4096] for n, p in model.named_parameters()])
    assert scoped.drift() == pytest.approx(float(shadowed.square().mean().sqrt()), rel=1e-9)
    assert 0 < scoped.drift() < 1e-3
    assert scoped.extra_bytes == 4 * shadowed.numel()


def test_subtracting_counts_updates_that_rounding_lost() -> None:
    """Drift that leaves out lost updates would look harmless where most of the learning is gone."""
    model = tiny_module(torch.bfloat16)
    scoped = ScopedWeights(model, FULL, "subtract")
    for step in range(20):
        scoped.update(an_update(step))
    assert torch.equal(model.norm.weight, torch.ones(33, dtype=torch.bfloat16))
    assert scoped.drift() > 1e-4


def test_two_directions_at_once_are_refused() -> None:
    """Noise on noise would score a candidate under a direction that no history can name."""
    scoped = ScopedWeights(tiny_module(), FULL)
    scoped.perturb(Direction(1, 1e-3))
    with pytest.raises(RuntimeError, match="restore first"):
        scoped.perturb(Direction(2, 1e-3))
    with pytest.raises(RuntimeError, match="restore first"):
        scoped.update(an_update(0))
    with pytest.raises(RuntimeError, match="restore first"):
        scoped.checksum()
    scoped.restore()
    scoped.restore()
    scoped.update(an_update(0))


def test_a_direction_that_breaks_off_can_be_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the middle would leave half of the model perturbed for the rest of the run."""
    model = tiny_module()
    before, scoped = copies(model), ScopedWeights(model, FULL)
    add_noise = weights_module._add_noise

    def breaks_off(tensor: ScopedTensor, seed: int, sigma: float) -> None:
        if tensor.name == "up.bias":
            raise KeyboardInterrupt
        add_noise(tensor, seed, sigma)

    monkeypatch.setattr(weights_module, "_add_noise", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        scoped.perturb(Direction(1, 0.1))
    assert not unchanged(model, before)
    scoped.restore()
    assert unchanged(model, before)


def test_checksums_tell_weights_apart() -> None:
    """Replicas that drift apart, or a replay that ends elsewhere, would not be noticed."""
    one, other = ScopedWeights(tiny_module(), FULL), ScopedWeights(tiny_module(), FULL)
    assert one.checksum() == other.checksum()
    assert ScopedWeights(tiny_module(seed=1), FULL).checksum() != one.checksum()
    one.update(an_update(0))
    assert one.checksum() != other.checksum()
    other.perturb(Direction(3, 1e-3))
    other.restore()
    other.update(an_update(0))
    assert one.checksum() == other.checksum()


@pytest.mark.parametrize("name", ["embed.weight", "up.weight", "up.bias"])
def test_checksums_cover_weights_outside_the_scope(name: str) -> None:
    """Another base model with the same norms would pass for the right one."""
    model = tiny_module()
    before = ScopedWeights(model, NORMS).checksum()
    with torch.no_grad():
        model.get_parameter(name).view(-1)[-1] += 1
    assert ScopedWeights(model, NORMS).checksum() != before


def test_checksums_see_what_the_live_weights_cannot() -> None:
    """Masters that differ below bfloat16 give other weights a few updates later."""
    model = tiny_module()
    scoped = ScopedWeights(model, FULL)
    before, live = scoped.checksum(), copies(model)
    scoped.update(an_update(0, alpha=1e-7))
    gains = model.norm.weight
    assert torch.equal(gains, live["norm.weight"])
    assert scoped.checksum() != before


@pytest.mark.parametrize("restore", ["exact", "subtract"])
def test_snapshots_are_true_weights_and_copies(restore: str) -> None:
    """A snapshot that follows later updates would save another step than was asked for."""
    model = tiny_module()
    scoped = ScopedWeights(model, FULL, restore)
    scoped.update(an_update(0))
    taken = scoped.snapshot()
    for tensor in scoped.tensors:
        true = tensor.live.float() if tensor.master is None else tensor.master.reshape(tensor.live.shape)
        assert taken[tensor.name].dtype == torch.float32
        assert torch.equal(taken[tensor.name], true)
    kept = {name: values.clone() for name, values in taken.items()}
    scoped.update(an_update(1, alpha=0.1))
    assert all(torch.equal(values, kept[name]) for name, values in taken.items())


def test_wrong_restore_modes_are_refused() -> None:
    """A typing error must not choose the drifting mode, nor a mode that the scope does not have."""
    with pytest.raises(UserError, match="exact, subtract"):
        ScopedWeights(tiny_module(), FULL, "exakt")
    with pytest.raises(UserError, match="use 'exact'"):
        ScopedWeights(tiny_module(), NORMS, "subtract")


@pytest.mark.parametrize("restore", ["exact", "subtract"])
def test_updates_of_size_zero_change_nothing(restore: str) -> None:
    """A learning rate of 0 is the control without learning: it must not round the weights."""
    model: Any = tiny_module()
    before, scoped = copies(model), ScopedWeights(model, FULL, restore)
    scoped.update(an_update(0, alpha=0.0))
    assert unchanged(model, before)
