"""Decisions as bytes: one array an instance, int64 or float64, read back from hands that are not trusted.

An array is a byte for its type, a byte for the number of its dimensions, these as 64-bit numbers, then its elements.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

from problems.base import Decisions, WrongShape

Buffer = bytes | memoryview

_TYPES = (np.dtype("<i8"), np.dtype("<f8"))
_MAX_DIMENSIONS = 4
_HEAD = struct.Struct("<BB")


def pack(arrays: Sequence[Decisions]) -> list[Buffer]:
    """The bytes of arrays of int64 or float64, of at most 4 dimensions, in parts: large arrays are not copied.

    Raises:
        WrongShape: an array has more dimensions.
    """
    parts: list[Buffer] = []
    for array in arrays:
        if array.ndim > _MAX_DIMENSIONS:
            raise WrongShape(f"decisions have {array.ndim} dimensions, at most {_MAX_DIMENSIONS} are possible")
        kind = int(array.dtype.kind == "f")
        parts += [_HEAD.pack(kind, array.ndim), struct.pack(f"<{array.ndim}Q", *array.shape)]
        parts.append(np.ascontiguousarray(array, dtype=_TYPES[kind]).reshape(-1).view(np.uint8).data)
    return parts


def unpack(data: Buffer, count: int) -> list[Decisions]:
    """The arrays in bytes of any origin, copies that may be written to.

    Args:
        data: what `pack` made, or anything else.
        count: how many arrays there have to be.

    Raises:
        WrongShape: the bytes are not exactly `count` arrays.
    """
    arrays: list[Decisions] = []
    place = 0
    try:
        for _ in range(count):
            kind, dimensions = _HEAD.unpack_from(data, place)
            place += _HEAD.size
            if kind >= len(_TYPES) or dimensions > _MAX_DIMENSIONS:
                raise WrongShape(f"decisions of unknown type {kind} or with {dimensions} dimensions")
            shape = struct.unpack_from(f"<{dimensions}Q", data, place)
            place += 8 * dimensions
            size = math.prod(shape)
            if size * 8 > len(data) - place:
                raise WrongShape(f"decisions of shape {shape} in {len(data) - place} bytes")
            arrays.append(np.frombuffer(data, _TYPES[kind], size, place).reshape(shape).copy())
            place += size * 8
    except (struct.error, ValueError) as error:
        raise WrongShape(f"decisions for {len(arrays)} of {count} instances") from error
    if place != len(data):
        raise WrongShape(f"{len(data) - place} bytes follow the decisions for {count} instances")
    return arrays
