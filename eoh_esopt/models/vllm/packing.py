"""vLLM on a CPU packs linear weights when it loads and computes with the packed copy: keep both, and pack again.

Without this the visible weights become empty, and directions would move only embeddings and norms.
"""

from __future__ import annotations

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

    def packing_a_copy(layer: nn.Module, remove_weight: bool) -> None:
        pack(layer, False)

    layers.dispatch_cpu_unquantized_gemm = packing_a_copy


def pack_again(model: nn.Module) -> None:
    """Make the packed copies anew from the weights. Nothing happens where nothing is packed."""
    if _original is None:
        return
    for module in model.modules():
        if hasattr(module, "cpu_linear") and isinstance(getattr(module, "weight", None), torch.Tensor):
            _original(module, False)


def packed_modules(model: nn.Module) -> list[Any]:
    """Modules that compute with a packed copy."""
    return [module for module in model.modules() if hasattr(module, "cpu_linear")]
