"""Directions and updates the plain way: torch's generator seeded for each tensor, noise chunk by chunk, added in place.

The noise differs from ours by definition, so only times can be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import torch

CHUNK = 8_388_608  # elements


def perturb(weights: Mapping[str, torch.Tensor], seed: int, sigma: float) -> None:
    """Add sigma * noise in the weights' dtype. With -sigma it is taken away again, but for rounding.

    Args:
        weights: flat tensors by name.
        seed: of the direction.
        sigma: size of the noise.
    """
    for name, tensor in weights.items():
        for piece, noise in _pieces(tensor, name, seed):
            piece.add_(noise.to(tensor.dtype), alpha=sigma)


def update(weights: Mapping[str, torch.Tensor], seeds: Sequence[int], coefficients: Sequence[float]) -> None:
    """Add the sum of coefficient * noise: summed in float32, cast to the weights' dtype, added once.

    Args:
        weights: flat tensors by name.
        seeds: of the directions.
        coefficients: one a seed.
    """
    for name, tensor in weights.items():
        total = torch.zeros_like(tensor, dtype=torch.float32)
        for seed, coefficient in zip(seeds, coefficients, strict=True):
            for piece, noise in _pieces(total, name, seed):
                piece.add_(noise, alpha=coefficient)
        tensor.add_(total.to(tensor.dtype))


def _pieces(tensor: torch.Tensor, name: str, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Pieces of a tensor with their noise in float32."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    generator = torch.Generator().manual_seed(seed ^ int.from_bytes(digest, "little"))
    for piece in torch.split(tensor, CHUNK):
        yield piece, torch.randn(piece.numel(), generator=generator)
