"""The checksum of true weights: the same for every backend that holds the same numbers under the same names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch

_CHUNK = 1 << 22


def digest(tensors: Iterable[tuple[str, tuple[int, ...], torch.Tensor]]) -> str:
    """sha256 over names, shapes, types and bytes.

    Args:
        tensors: (checkpoint name, shape, values) sorted by name; values of any layout that reshapes to flat.
    """
    found = hashlib.sha256()
    for name, shape, values in tensors:
        found.update(f"{name} {tuple(shape)} {values.dtype}\n".encode())
        flat = values.reshape(-1)
        for start in range(0, flat.numel(), _CHUNK):
            piece = flat[start : start + _CHUNK].cpu().contiguous()
            found.update(piece.view(torch.uint8).numpy().data)
    return found.hexdigest()
