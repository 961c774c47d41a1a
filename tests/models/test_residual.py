"""Restore mode `residual`: whatever happens to the weights, they are the float32 numbers that `exact` keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiny_models import an_update, tiny_module

from eoh_esopt.models.precision.exact import ExactWeights
from eoh_esopt.models.precision.piece import Piece
from eoh_esopt.models.precision.residual import Exceptions, Journal, Record, ResidualWeights
from eoh_esopt.models.precision.residual_bits import Bits, TorchBits
from eoh_esopt.models.precision.residual_kernels import KernelBits
from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.spans import Span
from eoh_esopt.models.weights import ScopedWeights
from operators.errors import UserError
from operators.records import Direction, Update

BACKENDS: dict[str, Callable[[], Any]] = {"kernels": lambda: KernelBits(KernelBits.limit), "torch": TorchBits}
Step = Direction | Update


def small(bits: Any) -> Any:
    """With chunks so small that a few weights are several."""
    bits.limit = 16
    return bits


def from_bits(patterns: Any) -> torch.Tensor:
    return torch.from_numpy(np.asarray(patterns, np.uint32).view(np.float32).copy())


def in_bits(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view(torch.int16 if values.dtype == torch.bfloat16 else torch.int32)


def piece(live: torch.Tensor) -> Piece:
    return Piece("w", live, Span.whole(live.numel()))


def exact_with(true: torch.Tensor) -> tuple[torch.Tensor, ExactWeights]:
    live = true.to(torch.bfloat16)
    return live, ExactWeights(piece(live), true.clone())


def residual_with(true: torch.Tensor, bits: Bits) -> tuple[torch.Tensor, ResidualWeights]:
    """Any float32 numbers as true weights: a history can lead to all of them."""
    live = torch.zeros(true.numel(), dtype=torch.bfloat16)
    weights = ResidualWeights(piece(live), bits, Journal())
    for number, (where, _) in enumerate(weights._parts):
        pattern = true[where].view(torch.int32).clone()
        rounded, low, wrong = bits.split(pattern)
        weights._write(number, rounded, Record(Exceptions.found(wrong, pattern)), low)
    return live, weights


def gathered(weights: ExactWeights | ResidualWeights) -> torch.Tensor:
    return torch.cat([chunk.clone() for chunk in weights.values()])


FINITE = st.integers(0, 2**32 - 1).filter(lambda pattern: pattern & 0x7F800000 != 0x7F800000)
TIES = st.integers(0, 2**16 - 1).filter(lambda high: high & 0x7F80 != 0x7F80).map(lambda high: high << 16 | 0x8000)
USUAL = st.floats(-0.5, 0.5, width=32).map(lambda value: int(np.float32(value).view(np.uint32)))
SPECIAL = st.sampled_from([0, 0x80000000, 1, 0x80000001, 0x7F7FFFFF, 0xFF7FFFFF, 0x00800000, 0x007FFFFF, 0x3F7FFFFF])
SIGMAS = st.sampled_from([0.0, 1e-30, 1e-8, 1e-3, -1e-3, 0.3, 100.0, 3e37])
SEEDS = st.integers(0, 2**64 - 1)
UPDATES = st.builds(
    lambda seeds, alpha: Update(0, tuple(seeds), (0.0,) * len(seeds), (1.0,) * len(seeds), alpha, 1e-3),
    st.lists(SEEDS, min_size=1, max_size=3),
    st.sampled_from([0.0, 1e-12, 5e-4, 0.7]),
)


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=300, deadline=None)
@given(
    patterns=st.lists(st.one_of(FINITE, TIES, USUAL, SPECIAL), min_size=1, max_size=40),
    steps=st.lists(st.one_of(st.builds(Direction, SEEDS, SIGMAS), UPDATES), max_size=5),
)
@example(patterns=[0x7F7FFFFF] * 3, steps=[Direction(1, 3e38), Direction(2, -3e38)])
def test_any_weights_are_the_exact_ones_after_any_steps(backend: str, patterns: list[int], steps: list[Step]) -> None:
    """One weight in a million that comes back wrong would make every later replay of the history fail."""
    true = from_bits(patterns)
    wanted, exact = exact_with(true)
    live, residual = residual_with(true, small(BACKENDS[backend]()))
    for step in steps:
        for one in (exact, residual):
            if isinstance(step, Direction):
                one.perturb(step)
            else:
                one.update(step)
        assert torch.equal(in_bits(live), in_bits(wanted))
        if isinstance(step, Direction):
            exact.restore(step)
            residual.restore(step)
        assert torch.equal(in_bits(gathered(residual)), in_bits(gathered(exact)))
        assert torch.equal(in_bits(live), in_bits(wanted))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("low", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
def test_every_high_half_comes_back_and_only_ties_cost_memory(backend: str, low: int) -> None:
    """The mode's point is to take 2 bytes a weight; exceptions at rest would take up to 6 each."""
    highs = np.arange(2**16, dtype=np.uint32)
    true = from_bits(highs[highs & 0x7F80 != 0x7F80] << 16 | np.uint32(low))
    live, weights = residual_with(true, BACKENDS[backend]())
    assert torch.equal(in_bits(gathered(weights)), in_bits(true))
    assert torch.equal(in_bits(live), in_bits(true.to(torch.bfloat16)))
    wrong = true.numel() // 2 if low == 0x8000 else 0
    assert weights.device_bytes == 2 * true.numel() + min(6 * wrong, 2 * true.numel())


def usual(size: int, scale: float) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(0)) * scale


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_direction_takes_a_tenth_of_a_byte_or_at_most_two_bytes_more(backend: str) -> None:
    """A peak that grows with sigma without bound would end in a run that dies for memory in the middle."""
    true = usual(300_000, 0.1)
    _, weights = residual_with(true, BACKENDS[backend]())
    for sigma, least, most in ((1e-3, 0.05, 0.15), (0.03, 0.5, 2.0), (1.0, 2.0, 2.001)):
        weights.perturb(Direction(3, sigma))
        more = weights.device_bytes / true.numel() - 2
        assert least < more < most
        weights.restore(Direction(3, sigma))
        assert torch.equal(in_bits(gathered(weights)), in_bits(true))
        assert weights.device_bytes / true.numel() < 2.001


def test_kernels_and_torch_keep_the_same_exceptions() -> None:
    """Else a device without the kernels would be tested by nothing but its own rounding."""
    true = torch.cat([usual(70_000, 0.02), usual(70_000, 1e-6)])
    found = []
    for backend in BACKENDS.values():
        bits = backend()
        bits.limit = 1 << 16
        _, weights = residual_with(true, bits)
        weights.perturb(Direction(5, 1e-3))
        found.append(weights._records)
    for one, other in zip(*found, strict=True):
        for a, b in ((one.at_rest, other.at_rest), (one.moved, other.moved)):
            assert torch.equal(a.high, b.high)
            assert (a.places is None) == (b.places is None)
            assert a.places is None or torch.equal(a.places, b.places)
    assert {record.moved.places is None for record in found[0]} == {True, False}


class Interrupted(KernelBits):
    """Breaks off just before or just after the `at`-th write."""

    limit = 16

    def __init__(self, at: int, after: bool) -> None:
        super().__init__(self.limit)
        self.left, self.after = at, after

    def store(self, target: torch.Tensor, source: torch.Tensor) -> None:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise KeyboardInterrupt
        super().store(target, source)
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.parametrize("breaks_in", ["perturb", "restore"])
def test_an_interrupt_loses_no_weight(breaks_in: str, at: int, after: bool) -> None:
    """Ctrl-C between a write and its note would leave a chunk that nobody can join again."""
    true, direction = usual(50, 0.1), Direction(7, 0.05)
    bits = Interrupted(0, after)
    live, weights = residual_with(true, bits)
    if breaks_in == "restore":
        weights.perturb(direction)
    bits.left = at
    with pytest.raises(KeyboardInterrupt):
        getattr(weights, breaks_in)(direction)
    weights.restore(direction)
    assert torch.equal(live, true.to(torch.bfloat16))
    assert torch.equal(in_bits(gathered(weights)), in_bits(true))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 9))
def test_an_interrupted_update_leaves_old_or_new_weights(at: int, after: bool) -> None:
    """High halves of before beside low halves of after would be weights of no history at all."""
    true, update = usual(50, 0.1), an_update(0, alpha=0.1)
    _, exact = exact_with(true)
    exact.update(update)
    bits = Interrupted(0, after)
    live, weights = residual_with(true, bits)
    bits.left = at
    with pytest.raises(KeyboardInterrupt):
        weights.update(update)
    found = list(zip((chunk.clone() for chunk in weights.values()), chunks(true), chunks(gathered(exact)), strict=True))
    assert all(torch.equal(now, old) or torch.equal(now, new) for now, old, new in found)
    done = sum(torch.equal(now, new) for now, _, new in found)
    assert done == (at + 1) // 2
    assert torch.equal(live, gathered(weights).to(torch.bfloat16))


def chunks(values: torch.Tensor) -> Iterator[torch.Tensor]:
    return iter(values.split(Interrupted.limit))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_other_dtypes_are_refused_with_the_remedy(dtype: torch.dtype) -> None:
    """16 bits beside a float16 weight do not make a float32 one: what was learnt would be lost."""
    name = str(dtype).removeprefix("torch.")
    with pytest.raises(UserError, match=rf"embed\.weight is {name}\. Use --dtype bfloat16, or --restore exact"):
        ScopedWeights(tiny_module(dtype), SCOPES["full"], "residual")


def test_gains_that_are_scaled_are_refused() -> None:
    """Multiplicative noise has another inverse: the nearest number would be taken from the wrong place."""
    with pytest.raises(UserError, match="'residual' does not exist for scope 'norms': use 'exact'"):
        ScopedWeights(tiny_module(), SCOPES["norms"], "residual")
