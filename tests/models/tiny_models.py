"""Models small enough to build in a test: a plain torch module and random checkpoints of several families."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from operators.records import Update

_SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
FAMILIES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {"tie_word_embeddings": True}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 8}),
}
try:
    from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM
except ImportError:  # older transformers
    pass
else:
    _LINEAR = {
        "head_dim": 8,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "layer_types": ["linear_attention", "full_attention"],
    }
    FAMILIES["qwen3_5"] = (Qwen3_5TextConfig, Qwen3_5ForCausalLM, _LINEAR)


class Tiny(nn.Module):
    """An embedding, a projection with bias and an RMSNorm; sizes that are no multiple of a block or a tile."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(67, 65)
        self.up = nn.Linear(65, 33)
        self.norm = nn.RMSNorm(33)


def tiny_module(dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> Tiny:
    """The same weights for the same seed; gains are 1 as in a fresh norm."""
    model = Tiny()
    _fill(model, dtype, seed, gain_spread=0.0)
    return model


def tiny_checkpoint(family: str, dtype: torch.dtype = torch.float32, seed: int = 0) -> Any:
    """A random causal language model; its gains are spread around their resting value."""
    config, architecture, settings = FAMILIES[family]
    model = architecture(config(**_SHAPE, **settings))
    _fill(model, dtype, seed, gain_spread=0.1)
    return model


@torch.no_grad()
def _fill(model: nn.Module, dtype: torch.dtype, seed: int, gain_spread: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        drawn = torch.randn(parameter.shape, generator=generator)
        if "norm" in name:
            parameter.add_(drawn * gain_spread)
        else:
            parameter.copy_(drawn * 0.1)
    model.to(dtype).train(False).requires_grad_(False)


def an_update(step: int, *, alpha: float = 5e-4, directions: int = 5, sigma: float = 1e-3) -> Update:
    """An update of `directions` directions with weights of mean zero and variance one."""
    weights = torch.linspace(-1.4, 1.4, directions, dtype=torch.float64)
    seeds = tuple(2**40 + 1000 * step + i for i in range(directions))
    return Update(step, seeds, tuple(weights.tolist()), tuple(weights.tolist()), alpha, sigma)
