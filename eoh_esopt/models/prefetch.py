"""Asking for memory before it is needed, in functions that numba compiles."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

_POINTER, _FLAG = ir.IntType(8).as_pointer(), ir.IntType(32)
_TYPE = ir.FunctionType(ir.VoidType(), [_POINTER, _FLAG, _FLAG, _FLAG])
_READ, _NEAREST_CACHE, _DATA = _FLAG(0), _FLAG(3), _FLAG(1)


def _prefetch(_: Any, array: Any, index: Any) -> Any:
    """numba's rule for `prefetch`: types of the call, and the instructions for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = builder.module.declare_intrinsic("llvm.prefetch", [_POINTER], _TYPE)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        line = builder.bitcast(builder.gep(data, [arguments[1]]), _POINTER)
        builder.call(function, [line, _READ, _NEAREST_CACHE, _DATA])
        return context.get_dummy_value()

    return types.void(array, index), generate


prefetch: Any = intrinsic(_prefetch)
"""prefetch(array, index): start to load the cache line of array[index], array of one dimension and contiguous.

It changes nothing but time, and the index may lie beyond the end. A loop that alternates between much arithmetic and
much memory would otherwise do one while the other waits.
"""
