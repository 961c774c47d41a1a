"""Asking for memory before it is needed, in functions that numba compiles."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

_POINTER, _FLAG = ir.IntType(8).as_pointer(), ir.IntType(32)
_TYPE = ir.FunctionType(ir.VoidType(), [_POINTER, _FLAG, _FLAG, _FLAG])
_READ, _NEAREST_CACHE, _DATA = _FLAG(0), _FLAG(3), _FLAG(1)


def _prefetch(_: Any, arrays: Any, index: Any) -> Any:
    """numba's rule for `prefetch`: types of the call, and the instructions for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        together, place = arguments
        function = builder.module.declare_intrinsic("llvm.prefetch", [_POINTER], _TYPE)
        for i, array_type in enumerate(signature.args[0].types):
            array = context.make_array(array_type)(context, builder, builder.extract_value(together, i))
            line = builder.bitcast(builder.gep(array.data, [place]), _POINTER)
            builder.call(function, [line, _READ, _NEAREST_CACHE, _DATA])
        return context.get_dummy_value()

    return types.void(arrays, index), generate


prefetch: Any = intrinsic(_prefetch)
"""prefetch(arrays, index): start to load the cache line of array[index], for each array of a tuple of contiguous ones.

It changes nothing but time, and the index may lie beyond the end. A loop that alternates between much arithmetic and
much memory would otherwise do one while the other waits.
"""
