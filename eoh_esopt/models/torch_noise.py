"""The noise of `operators.noise` in torch integer arithmetic, for weights that the CPU kernels do not take.

Same bits on any device. It moves about 40 bytes a weight through memory, chunk by chunk, where a fused kernel would
move a few; it is here so that every device and dtype works.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from eoh_esopt.models.spans import Span
from operators.noise import (
    NORMALS_PER_BLOCK,
    PHILOX_MULTIPLIERS,
    PHILOX_ROUNDS,
    PHILOX_WEYL,
    normal_table,
    stream_key,
)

_CHUNK = 1 << 22  # elements, a multiple of the block size
_LOW = 0xFFFFFFFF


def torch_noise(seed: int, name: str, start: int, count: int, device: torch.device) -> torch.Tensor:
    """Elements start..start+count-1 of a tensor's noise; `start` must be a multiple of 8.

    Returns:
        Shape (count,), float32, on the device.
    """
    if start % NORMALS_PER_BLOCK:
        raise ValueError(f"start must be a multiple of {NORMALS_PER_BLOCK}, not {start}.")
    first = start // NORMALS_PER_BLOCK
    blocks = torch.arange(first, first - (-count // NORMALS_PER_BLOCK), dtype=torch.int64, device=device)
    words = _philox(stream_key(seed, name), blocks)
    numbers = torch.stack([part for word in words for part in (word & 0xFFFF, word >> 16)], dim=1)
    table = torch.from_numpy(normal_table().copy()).to(device)
    return table[numbers.reshape(-1)[:count]]


def piece_noise(seed: int, name: str, span: Span, start: int, count: int, device: torch.device) -> torch.Tensor:
    """Noise of a piece's elements start .. start + count - 1.

    Returns:
        Shape (count,), float32, on the device.
    """
    rows = range(start // span.run, (start + count - 1) // span.run + 1) if count else range(0)
    parts = []
    for row in rows:
        begin = max(start, row * span.run)
        length = min(start + count, (row + 1) * span.run) - begin
        origin = span.first + row * span.stride + begin - row * span.run
        skipped = origin % NORMALS_PER_BLOCK
        parts.append(torch_noise(seed, name, origin - skipped, length + skipped, device)[skipped:])
    return torch.cat(parts) if parts else torch.empty(0, device=device)


def chunks(size: int) -> Iterator[tuple[int, int]]:
    """(start, count) of the pieces that a tensor of `size` elements is worked through in."""
    for start in range(0, size, _CHUNK):
        yield start, min(_CHUNK, size - start)


def _philox(key: int, blocks: torch.Tensor) -> list[torch.Tensor]:
    """Words of Philox4x32-10, each in the low half of an int64. Products wrap modulo 2**64, which keeps all 64 bits."""
    x0, x1 = blocks & _LOW, (blocks >> 32) & _LOW
    x2 = x3 = torch.zeros_like(blocks)
    k0, k1 = key & _LOW, key >> 32
    for _ in range(PHILOX_ROUNDS):
        p0, p1 = x0 * PHILOX_MULTIPLIERS[0], x2 * PHILOX_MULTIPLIERS[1]
        x0, x1, x2, x3 = ((p1 >> 32) & _LOW) ^ x1 ^ k0, p1 & _LOW, ((p0 >> 32) & _LOW) ^ x3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + PHILOX_WEYL[0]) & _LOW, (k1 + PHILOX_WEYL[1]) & _LOW
    return [x0, x1, x2, x3]
