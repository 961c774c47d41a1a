"""Hot loops as machine code, by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """The function compiled at its first call, holding no global lock while it runs.

    The machine code is kept on disk, so that only the first process waits for the compiler. Where numba finds no
    folder it may write to (a read-only installation without a home folder) each process compiles for itself.
    """
    try:
        return cast(F, njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(F, njit(nogil=True)(function))
