"""The checksum of true weights: the same for every backend that holds the same numbers under the same names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import chain

import torch

_CHUNK = 1 << 22


def digest(tensors: Iterable[tuple[str, tuple[int, ...], torch.Tensor | Iterable[torch.Tensor]]]) -> str:
    """sha256 over names, shapes, types and bytes.

    Args:
        tensors: (checkpoint name, shape, values) sorted by name; values of any layout that reshapes to flat, or flat
            chunks of them in order, at least one, each of which is read before the next is asked for.
    """
    found = hashlib.sha256()
    for name, shape, values in tensors:
        chunks = iter([values] if isinstance(values, torch.Tensor) else values)
        first = next(chunks)
        found.update(f"{name} {tuple(shape)} {first.dtype}\n".encode())
        for piece in chain.from_iterable(chunk.reshape(-1).split(_CHUNK) for chunk in chain([first], chunks)):
            found.update(piece.cpu().contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()
