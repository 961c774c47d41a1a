"""Low-rank noise on weights: what fast kernels and devices add is the definition's, to the last bit."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tiny_models import FAMILIES, an_update, tiny_checkpoint, tiny_module
from torch import nn

from eoh_esopt.models import lowrank
from eoh_esopt.models.lowrank import LowRankPiece
from eoh_esopt.models.scopes import SCOPES, get_scope
from eoh_esopt.models.spans import Span
from eoh_esopt.models.weights import ScopedWeights, check_restore
from operators.errors import UserError
from operators.lowrank import lowrank_noise
from operators.records import Direction, Update

NAME = "layers.7.q_proj.weight"
SHAPES = [(1, 1), (1, 7), (9, 1), (3, 1025), (65, 33), (5, 2049)]


def plain_update(
    values: NDArray[np.float32], name: str, seeds: tuple[int, ...], coefficients: tuple[float, ...], rank: int
) -> NDArray[np.float32]:
    """The definition, spelled out."""
    total = np.zeros_like(values)
    for seed, coefficient in zip(seeds, coefficients, strict=True):
        total = total + np.float32(coefficient) * lowrank_noise(seed, name, values.shape, rank)
    moved: NDArray[np.float32] = values + total
    return moved


def start(shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.random.default_rng(3).standard_normal(shape, np.float32)


def added(values: NDArray[np.float32], piece: LowRankPiece, update: Update) -> NDArray[np.float32]:
    flat = torch.from_numpy(values.copy().reshape(-1))
    piece.add(flat, update.noise_seeds, np.array(update.coefficients, np.float32))
    return flat.numpy().reshape(values.shape)


def whole(shape: tuple[int, int], rank: int) -> LowRankPiece:
    size = shape[0] * shape[1]
    return LowRankPiece.of(NAME, Span.whole(size), size, shape[1], rank)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernel_adds_the_definitions_bits(shape: tuple[int, int], rank: int, threads: int) -> None:
    """A history would replay to other weights than the run's, on more threads or in a wider layer."""
    update = an_update(1, alpha=0.3)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    found = added(start(shape), whole(shape, rank), update)
    numba.set_num_threads(1)
    assert np.array_equal(found, plain_update(start(shape), NAME, update.seeds, update.coefficients, rank))


@pytest.mark.parametrize("chunk", [1, 100, 1 << 22])
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_other_devices_add_the_same_bits(
    shape: tuple[int, int], rank: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A history made on a GPU could not be replayed on a laptop."""
    monkeypatch.setattr(lowrank, "_CHUNK", chunk)
    update = an_update(2, alpha=0.3)
    left, right = whole(shape, rank).factors(update.seeds)
    values = torch.from_numpy(start(shape))
    lowrank.add_in_torch(values, left, right.transpose(0, 2, 1).copy(), np.array(update.coefficients, np.float32))
    expected = plain_update(start(shape), NAME, update.seeds, update.coefficients, rank)
    assert np.array_equal(values.numpy(), expected)


@settings(deadline=None)
@given(data=st.data(), rows=st.integers(1, 12), columns=st.integers(1, 12), rank=st.integers(1, 3))
def test_a_piece_gets_its_part_of_the_matrix_noise(data: st.DataObject, rows: int, columns: int, rank: int) -> None:
    """Layers that are split over devices would each explore with noise of their own."""
    first, last = sorted(data.draw(st.tuples(st.integers(0, rows - 1), st.integers(0, rows - 1))))
    left, right = sorted(data.draw(st.tuples(st.integers(0, columns - 1), st.integers(0, columns - 1))))
    by_rows = data.draw(st.booleans())
    matrix, update = start((rows, columns)), an_update(0, alpha=1.0)
    if by_rows:
        part = matrix[first : last + 1]
        span = Span(first * columns, part.size, part.size)
    else:
        part = matrix[:, left : right + 1]
        span = Span(left, part.shape[1], columns)
    piece = LowRankPiece.of(NAME, span, part.size, columns, rank)
    moved = plain_update(matrix, NAME, update.seeds, update.coefficients, rank)
    expected = moved[first : last + 1] if by_rows else moved[:, left : right + 1]
    assert np.array_equal(added(np.ascontiguousarray(part), piece, update), expected)


@pytest.mark.parametrize("span", [Span(3, 5, 10), Span(0, 7, 7), Span(2, 3, 12), Span(8, 4, 10)])
def test_a_piece_that_is_no_rectangle_is_refused(span: Span) -> None:
    """Factors of the wrong rows would be added without a word."""
    with pytest.raises(ValueError, match="no rectangle"):
        LowRankPiece.of(NAME, span, 12, 10, 1)


def matrices(model: nn.Module) -> dict[str, nn.Parameter]:
    """The weights of the linear layers by name, the output layer left out."""
    return {
        f"{name}.weight": module.weight
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name != "lm_head"
    }


@pytest.mark.parametrize("restore", ["exact", "residual", "host"])
@pytest.mark.parametrize("family", FAMILIES)
def test_an_update_moves_the_linear_layers_and_nothing_else(family: str, restore: str) -> None:
    """Weights that no row ran under noise of would be moved all the same, or those that did would stay."""
    model = tiny_checkpoint(family, torch.bfloat16)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    scoped, update = ScopedWeights(model, get_scope("full", 2), restore), an_update(0, alpha=0.05)
    expected = matrices(model)
    assert {tensor.name for tensor in scoped.tensors} == expected.keys()
    assert scoped.elements == sum(one.numel() for one in expected.values())
    scoped.update(update)
    true = scoped.snapshot()
    for name, parameter in model.named_parameters():
        if name not in expected:
            assert torch.equal(parameter, before[name]), name
            continue
        moved = plain_update(before[name].float().numpy(), name, update.seeds, update.coefficients, 2)
        assert np.array_equal(true[name].numpy(), moved), name
        assert torch.equal(parameter, torch.from_numpy(moved).to(torch.bfloat16)), name
        assert not torch.equal(parameter, before[name]), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_direction_can_also_be_applied_in_place(dtype: torch.dtype) -> None:
    """What rows run under could not be checked against weights that are really moved."""
    model, direction = tiny_module(dtype), Direction(9, -0.03)
    scoped = ScopedWeights(model, get_scope("full", 3))
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    scoped.perturb(direction)
    moved = plain_update(before["up.weight"].float().numpy(), "up.weight", (9,), (-0.03,), 3)
    assert torch.equal(model.up.weight, torch.from_numpy(moved).to(dtype))
    assert all(torch.equal(one, before[name]) for name, one in model.named_parameters() if name != "up.weight")
    scoped.restore()
    assert all(torch.equal(one, before[name]) for name, one in model.named_parameters())


def test_what_low_rank_noise_is_not_for_is_refused() -> None:
    """A run would go on with another noise than it was asked for."""
    with pytest.raises(UserError, match=r"no low-rank noise for scope 'norms'.*Use --scope full"):
        get_scope("norms", 1)
    with pytest.raises(UserError, match="'subtract' does not exist for low-rank noise: use 'exact'"):
        check_restore("subtract", get_scope("full", 1))
    check_restore("subtract", SCOPES["full"])
    model: Any = nn.Sequential(nn.Embedding(5, 4), nn.RMSNorm(4))
    with pytest.raises(UserError, match=r"no linear layers.*Use --noise full"):
        ScopedWeights(model, get_scope("full", 1))
