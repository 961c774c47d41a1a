"""What `residual_bits.TorchBits` does, on the CPU: compiled by numba, all cores, one pass each, no temporaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit, prange

from eoh_esopt.models.precision import arithmetic
from eoh_esopt.models.precision.arithmetic import array
from eoh_esopt.models.precision.piece import Piece
from operators.records import Direction

_TILE = 4096  # elements a task works on at a time, in the first-level cache
_16, _1, _BELOW_HALF = np.uint32(16), np.uint32(1), np.uint32(0x7FFF)


class KernelBits:
    """See `residual_bits.Bits`. Chunks stay in the second-level cache, and results lie in memory that is used again.

    Args:
        largest: elements that a chunk has at most, `limit` or the widest row with low-rank noise.
    """

    limit = 1 << 19

    def __init__(self, largest: int) -> None:
        self._noise = torch.empty(largest, dtype=torch.float32)
        self._bits = torch.empty(largest, dtype=torch.int32)
        self._live = torch.empty(largest, dtype=torch.bfloat16)
        self._low = torch.empty(largest, dtype=torch.int16)
        self._wrong = torch.empty(largest, dtype=torch.bool)

    def nearest(self, part: Piece, low: torch.Tensor, direction: Direction | None) -> torch.Tensor:
        """See `Bits`."""
        bits = self._bits[: low.numel()]
        if direction is None:
            _join(array(part.live), array(low), array(bits))
        else:
            noise = arithmetic.noise(part, direction.seed, self._noise[: low.numel()])
            _return(array(part.live), array(low), array(noise), np.float32(direction.sigma), array(bits))
        return bits

    def moved(
        self, bits: torch.Tensor, part: Piece, low: torch.Tensor, direction: Direction
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Bits`."""
        live, wrong = self._live[: low.numel()], self._wrong[: low.numel()]
        noise = arithmetic.noise(part, direction.seed, self._noise[: low.numel()])
        _move(array(bits), array(low), array(noise), np.float32(direction.sigma), array(live), array(wrong))
        return live, wrong

    def split(self, bits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """See `Bits`."""
        live, low, wrong = (one[: bits.numel()] for one in (self._live, self._low, self._wrong))
        _split(array(bits), array(live), array(low), array(wrong))
        return live, low, wrong

    def store(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """See `Bits`."""
        np.copyto(array(target), array(source))


@njit(inline="always")
def _nearest(bits: Any, low: Any) -> Any:
    """The bits nearest to the given ones with the low half: 16-bit differences wrap round to within half a step."""
    return np.int32(bits + np.int32(np.int16(np.int32(low) - bits)))


@njit(inline="always")
def _rounded(bits: Any) -> Any:
    """A float32's bits rounded to bfloat16, ties to even."""
    return (bits + _BELOW_HALF + ((bits >> _16) & _1)) >> _16


@njit(parallel=True, cache=True)
def _join(live: Any, low: Any, out: Any) -> None:
    for tile in prange((live.size + _TILE - 1) // _TILE):
        where = slice(tile * _TILE, min((tile + 1) * _TILE, live.size))
        live_, low_, out_ = live[where], low[where], out[where]
        for j in range(live_.size):
            out_[j] = _nearest(np.int32(np.uint32(live_[j]) << _16), low_[j])


@njit(parallel=True, cache=True)
def _return(live: Any, low: Any, noise: Any, sigma: Any, out: Any) -> None:
    for tile in prange((live.size + _TILE - 1) // _TILE):
        where = slice(tile * _TILE, min((tile + 1) * _TILE, live.size))
        live_, low_, noise_, out_ = live[where], low[where], noise[where], out[where]
        values = np.empty(_TILE, np.float32)
        unsigned, signed = values.view(np.uint32), values.view(np.int32)
        for j in range(live_.size):
            unsigned[j] = np.uint32(live_[j]) << _16
        for j in range(live_.size):
            values[j] = values[j] - sigma * noise_[j]
        for j in range(live_.size):
            out_[j] = _nearest(signed[j], low_[j])


@njit(parallel=True, cache=True)
def _move(bits: Any, low: Any, noise: Any, sigma: Any, live: Any, wrong: Any) -> None:
    true = bits.view(np.float32)
    for tile in prange((bits.size + _TILE - 1) // _TILE):
        where = slice(tile * _TILE, min((tile + 1) * _TILE, bits.size))
        bits_, true_, low_, noise_ = bits[where], true[where], low[where], noise[where]
        live_, wrong_ = live[where], wrong[where]
        values = np.empty(_TILE, np.float32)
        unsigned, signed = values.view(np.uint32), values.view(np.int32)
        for j in range(bits_.size):
            values[j] = true_[j] + sigma * noise_[j]
        for j in range(bits_.size):
            half = _rounded(unsigned[j])
            live_[j] = half
            unsigned[j] = half << _16
        for j in range(bits_.size):
            values[j] = values[j] - sigma * noise_[j]
        for j in range(bits_.size):
            wrong_[j] = _nearest(signed[j], low_[j]) != bits_[j]


@njit(parallel=True, cache=True)
def _split(bits: Any, live: Any, low: Any, wrong: Any) -> None:
    for tile in prange((bits.size + _TILE - 1) // _TILE):
        where = slice(tile * _TILE, min((tile + 1) * _TILE, bits.size))
        bits_, live_, low_, wrong_ = bits[where], live[where], low[where], wrong[where]
        for j in range(bits_.size):
            half = _rounded(np.uint32(bits_[j]))
            live_[j] = half
            low_[j] = np.int16(bits_[j])
            wrong_[j] = _nearest(np.int32(half << _16), low_[j]) != bits_[j]
