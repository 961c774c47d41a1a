"""Moving the weights of a model: exact restores, no update lost, and no half-moved model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_models import FAMILIES, an_update, tiny_checkpoint, tiny_module
from torch import nn

from eoh_esopt.models import triton_kernels
from eoh_esopt.models.precision import arithmetic, host
from eoh_esopt.models.precision.piece import Piece
from eoh_esopt.models.scopes import SCOPES, get_scope
from eoh_esopt.models.spans import Span
from eoh_esopt.models.weights import MovableTensors, ScopedTensor, ScopedWeights
from operators.errors import UserError
from operators.noise import noise
from operators.records import Direction, Update

FULL, NORMS = SCOPES["full"], SCOPES["norms"]
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
EXACT = ("exact", "residual", "host")
MODES = [(restore, dtype) for restore in EXACT for dtype in DTYPES if restore != "residual" or dtype == torch.bfloat16]


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tiny models' tensors are streamed in several pieces."""
    monkeypatch.setattr(host, "LIMIT", 1000)


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


@pytest.mark.parametrize("restore", EXACT)
def test_a_thousand_cycles_leave_the_same_bits(restore: str) -> None:
    """Weights that drift with each candidate are no longer the ones that the history speaks of."""
    model = tiny_module(torch.bfloat16)
    before, scoped = copies(model), ScopedWeights(model, FULL, restore)
    for seed in range(1000):
        scoped.perturb(Direction(seed, 1e-3))
        scoped.restore()
    assert unchanged(model, before)
    assert scoped.drift() == 0


@pytest.mark.parametrize(("restore", "dtype"), MODES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_direction_is_the_definitions_and_a_restore_exact(family: str, restore: str, dtype: torch.dtype) -> None:
    """Every architecture and dtype must see the noise that the history names, tied weights once."""
    model = tiny_checkpoint(family, dtype)
    before, scoped = copies(model), ScopedWeights(model, FULL, restore)
    for direction in (Direction(5, 1e-3), Direction(2**64 - 1, 0.03)):
        scoped.perturb(direction)
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, perturbed(before[name], name, direction)), name
        scoped.restore()
        assert unchanged(model, before)
    assert scoped.elements == sum(parameter.numel() for parameter in model.parameters())
    on_device, on_host = {"exact": (4, 0), "residual": (2, 0), "host": (0, 4)}[restore]
    assert (scoped.device_bytes, scoped.host_bytes) == (on_device * scoped.elements, on_host * scoped.elements)
    assert scoped.extra_bytes == (on_device + on_host) * scoped.elements


@pytest.mark.parametrize("dtype", DTYPES)
def test_layers_that_share_a_buffer_are_moved_from_their_masters(dtype: torch.dtype) -> None:
    """Served layers would compute with one another's weights: the buffer holds those of the last one moved."""
    masters = [torch.full((5,), 1.0), torch.full((5,), -7.0)]
    buffer = torch.empty(5, dtype=dtype)
    layers = [
        MovableTensors([ScopedTensor(name, nn.Module(), buffer, master, None, 0.0, Span.whole(5), buffer=True)], FULL)
        for name, master in zip("ab", masters, strict=True)
    ]
    direction = Direction(3, 1e-2)
    for name, master, layer in zip("ab", masters, layers, strict=True):
        layer.perturb(direction)
        assert torch.equal(buffer, perturbed(master.to(dtype), name, direction)), name


@pytest.mark.parametrize(("restore", "dtype"), MODES)
def test_a_restore_after_an_update_goes_to_the_updated_weights(restore: str, dtype: torch.dtype) -> None:
    """A restore to the weights of the beginning would undo what was learnt."""
    model = tiny_module(dtype)
    before, scoped = copies(model), ScopedWeights(model, FULL, restore)
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


@pytest.mark.parametrize("restore", EXACT)
def test_no_update_is_lost_to_rounding(restore: str) -> None:
    """In bfloat16 an update of the published size is below half a step for a gain of 1: it would never be learnt."""
    model = tiny_module(torch.bfloat16)
    scoped = ScopedWeights(model, FULL, restore)
    reference = true_weights(scoped)
    start = {name: values.copy() for name, values in reference.items()}
    for step in range(50):
        update = an_update(step, alpha=5e-4, directions=10)
        scoped.perturb(Direction(step, 1e-3))
        scoped.restore()
        scoped.update(update)
        for name, values in reference.items():
            values += total(update, name, values.size)
    found = true_weights(scoped)
    for tensor in scoped.tensors:
        assert np.array_equal(found[tensor.name], reference[tensor.name]), tensor.name
        live = torch.from_numpy(reference[tensor.name]).to(torch.bfloat16).reshape(tensor.live.shape)
        assert torch.equal(tensor.live, live)
    gains = reference["norm.weight"] - start["norm.weight"]
    assert np.all(gains != 0)
    assert 5e-4 < gains.std() < 2e-3


def true_weights(scoped: ScopedWeights) -> dict[str, NDArray[np.float32]]:
    return {name: values.reshape(-1).numpy() for name, values in scoped.snapshot().items()}


def steps(scoped: ScopedWeights) -> None:
    """A little of everything, with sizes of noise that move a few weights to coarser numbers and nearly all."""
    for step, sigma in enumerate((1e-3, 0.5, 0.0)):
        scoped.perturb(Direction(step, sigma))
        scoped.restore()
        scoped.update(an_update(step, alpha=0.01))


@pytest.mark.parametrize("rank", [None, 1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_modes_that_lose_nothing_hold_the_same_weights(family: str, rank: int | None) -> None:
    """A history made in one mode has to replay in another, on a machine with other memory."""
    scope, made = get_scope("full", rank), []
    for restore in EXACT:
        model = tiny_checkpoint(family, torch.bfloat16)
        scoped = ScopedWeights(model, scope, restore)
        base = scoped.checksum()
        steps(scoped)
        taken = scoped.snapshot()
        scoped.perturb(Direction(9, 1e-3))
        made.append((base, scoped, copies(model), taken))
    first, *others = made
    for base, _, live, taken in others:
        assert base == first[0]
        assert all(torch.equal(values, first[2][name]) for name, values in live.items())
        assert all(torch.equal(values, first[3][name]) for name, values in taken.items())
    for _, scoped, _, _ in made:
        scoped.restore()
    assert len({scoped.checksum() for _, scoped, _, _ in made}) == 1
    assert first[1].checksum() != first[0]


def test_masters_on_the_host_are_moved_though_the_device_moves_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU host and device share their memory; on a GPU updates that do not come back would be forgotten."""
    monkeypatch.setattr(host, "uploaded", lambda chunks, device: (chunk.clone() for chunk in chunks))
    scoped = [ScopedWeights(tiny_module(), FULL, restore) for restore in ("exact", "host")]
    for one in scoped:
        steps(one)
    assert scoped[0].checksum() == scoped[1].checksum()


@pytest.mark.parametrize("family", FAMILIES)
def test_gains_on_the_host_are_the_exact_ones(family: str) -> None:
    """Noise that scales has its own arithmetic, zero-centred gains too."""
    scoped = [ScopedWeights(tiny_checkpoint(family, torch.bfloat16), NORMS, restore) for restore in ("exact", "host")]
    for one in scoped:
        steps(one)
    assert len({one.checksum() for one in scoped}) == 1
    directions = [Direction(4, 0.05), None]
    for tensor, other in zip(scoped[0].tensors, scoped[1].tensors, strict=True):
        assert torch.equal(tensor.row_factors(directions), other.row_factors(directions))
        assert torch.equal(tensor.live, other.live)


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
    with pytest.raises(RuntimeError, match="restore first"):
        scoped.snapshot()
    scoped.restore()
    scoped.restore()
    scoped.update(an_update(0))


@pytest.mark.parametrize(("restore", "step"), [("exact", "perturb"), ("host", "perturb"), ("residual", "noise")])
def test_a_direction_that_breaks_off_can_be_restored(restore: str, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the middle would leave half of the model perturbed for the rest of the run."""
    model = tiny_module()
    before, scoped = copies(model), ScopedWeights(model, FULL, restore)
    usual = getattr(arithmetic, step)

    def breaks_off(piece: Piece, *arguments: Any) -> Any:
        if piece.name == "up.bias":
            raise KeyboardInterrupt
        return usual(piece, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(arithmetic, step, breaks_off)
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


@pytest.mark.parametrize("restore", [*EXACT, "subtract"])
def test_snapshots_are_true_weights_and_copies(restore: str) -> None:
    """A snapshot that follows later updates would save another step than was asked for."""
    model = tiny_module()
    scoped = ScopedWeights(model, FULL, restore)
    scoped.update(an_update(0))
    taken = scoped.snapshot()
    before = copies(tiny_module())
    for tensor in scoped.tensors:
        moved = before[tensor.name].float().reshape(-1).numpy()
        moved = moved + total(an_update(0), tensor.name, moved.size)
        true = tensor.live.float() if restore == "subtract" else torch.from_numpy(moved).reshape(tensor.live.shape)
        assert taken[tensor.name].dtype == torch.float32
        assert torch.equal(taken[tensor.name], true)
    kept = {name: values.clone() for name, values in taken.items()}
    scoped.update(an_update(1, alpha=0.1))
    assert all(torch.equal(values, kept[name]) for name, values in taken.items())


def test_wrong_restore_modes_are_refused() -> None:
    """A typing error must not choose the drifting mode, nor a mode that the scope does not have."""
    with pytest.raises(UserError, match="exact, residual, host, subtract"):
        ScopedWeights(tiny_module(), FULL, "exakt")
    with pytest.raises(UserError, match="use 'exact'"):
        ScopedWeights(tiny_module(), NORMS, "subtract")


@pytest.mark.parametrize("restore", [*EXACT, "subtract"])
def test_updates_of_size_zero_change_nothing(restore: str) -> None:
    """A learning rate of 0 is the control without learning: it must not round the weights."""
    model: Any = tiny_module()
    before, scoped = copies(model), ScopedWeights(model, FULL, restore)
    scoped.update(an_update(0, alpha=0.0))
    assert unchanged(model, before)


def test_fused_kernels_of_a_device_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU everything would work as before, several times as slowly, and nothing would say so."""
    asked: list[str] = []

    def fill_noise(out: torch.Tensor, seed: int, name: str, span: Span) -> None:
        asked.append("fill_noise")
        out.copy_(torch.from_numpy(noise(seed, name, span.first, out.numel())))

    def perturb(live: torch.Tensor, master: torch.Tensor, seed: int, sigma: float, name: str, span: Span) -> None:
        asked.append("perturb")
        live.copy_(perturbed(master, name, Direction(seed, sigma)))

    def update(
        master: torch.Tensor, seeds: Any, coefficients: Any, multiplicative: bool, name: str, span: Span
    ) -> None:
        asked.append("update")
        for seed, coefficient in zip(seeds, coefficients, strict=True):
            eps = noise(seed, name, span.first, master.numel())
            master += torch.from_numpy(np.float32(coefficient) * eps)

    for stand_in in (fill_noise, perturb, update):
        monkeypatch.setattr(triton_kernels, stand_in.__name__, stand_in)
    monkeypatch.setattr(triton_kernels, "available", lambda device: True)
    one_direction = Update(0, (5,), (0.0,), (1.0,), 1e-3, 1e-3)
    made = []
    for restore, used in (("exact", {"perturb", "update"}), ("residual", {"fill_noise", "update"})):
        model = tiny_module()
        scoped = ScopedWeights(model, FULL, restore)
        scoped.update(one_direction)
        scoped.perturb(Direction(3, 1e-3))
        made.append(copies(model))
        scoped.restore()
        assert set(asked) == used
        asked.clear()
    assert all(torch.equal(values, made[1][name]) for name, values in made[0].items())
    monkeypatch.undo()
    model = tiny_module()
    scoped = ScopedWeights(model, FULL)
    scoped.update(one_direction)
    scoped.perturb(Direction(3, 1e-3))
    assert unchanged(model, made[0])
