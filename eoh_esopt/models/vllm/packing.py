"""vLLM on a CPU packs linear weights when it loads, computes with the packed copy and drops the weight.

Without more the visible weights are empty, and directions would move only embeddings and norms. So weights are kept
until they are known; then layers are packed anew from values that are in a buffer for a moment, one layer after the
other, and no weight lies beside its packed copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Pack = Callable[[nn.Module, bool], None]

_original: Pack | None = None


def keep_weights() -> None:
    """Make vLLM keep the weights beside their packed copies. Called before a model is loaded; may be called again."""
    global _original
    try:
        import vllm.model_executor.layers.utils as layers
    except ImportError:
        return  # not in one of vLLM's workers
    if _original is not None or not hasattr(layers, "dispatch_cpu_unquantized_gemm"):
        return
    pack: Pack = layers.dispatch_cpu_unquantized_gemm
    _original = pack

    def packing_a_copy(layer: Any, remove_weight: bool) -> None:
        weight = layer.weight
        pack(layer, remove_weight)
        layer.es_spare = layer.weight is not weight
        layer.weight = weight

    layers.dispatch_cpu_unquantized_gemm = packing_a_copy


def packed_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Layers that compute with a packed copy, by name."""
    return {name: layer for name, layer in model.named_modules() if hasattr(layer, "cpu_linear")}


def spare_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Packed layers that need their weight for nothing else."""
    return {name: one for name, one in packed_layers(model).items() if one.es_spare and not _computes_with_weight(one)}


@torch.no_grad()
def pack(layer: Any, values: torch.Tensor | None = None) -> None:
    """Make the packed copy anew.

    Args:
        layer: one of `packed_layers`.
        values: shape of the weight; where given, the layer keeps none of them, else it is packed from its own weight.
    """
    assert _original is not None
    if values is not None:
        layer.weight.data = values
    layer.cpu_linear = None  # frees the old copy before there is a new one
    _original(layer, False)
    if values is not None:
        release(layer)


def release(layer: Any) -> None:
    """Let go of a spare layer's weight."""
    layer.weight.data = layer.weight.data.new_empty(0)


def return_memory() -> None:
    """Give the system back what was freed: the C library keeps it where it can (glibc alone has the call)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@torch.no_grad()
def _computes_with_weight(layer: Any) -> bool:
    """Whether the layer's result changes with the weight that it was packed from: then that is no copy."""
    row = layer.weight.new_ones(1, layer.weight.shape[1])
    before = layer.cpu_linear(row, layer.weight, None)
    kept = layer.weight.data.clone()
    layer.weight.data.zero_()
    after = layer.cpu_linear(row, layer.weight, None)
    layer.weight.data.copy_(kept)
    return not torch.equal(before, after)
