"""Tiny random checkpoints of the families that searches use: their architectures, tokenizers and chat templates.

The templates are short, and write what the families' own write for conversations without tools and pictures.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5Config, Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration

CONTEXT = 512
_VOCABULARY = 384
_SHAPE: dict[str, Any] = {
    "vocab_size": _VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
}
_LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_LINEAR = {
    "head_dim": 16,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "layer_types": ["linear_attention", "full_attention"],
}
_VISION = {
    "depth": 1,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_heads": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 16,
}
_CORPUS = ["def f(x):\n    return x\n", "Write a Python function that adds two numbers.", "import numpy as np\n"]

LLAMA_31 = """{{- bos_token }}
{%- set system = '' %}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n' }}
{{- 'Today Date: 26 Jul 2024\n\n' + system + '<|eot_id|>' }}
{%- for turn in messages %}
    {{- '<|start_header_id|>' + turn.role + '<|end_header_id|>\n\n' + turn.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}"""
QWEN_25 = """{%- if messages[0].role != 'system' %}
    {{- '<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n' }}
{%- endif %}
{%- for turn in messages %}
    {{- '<|im_start|>' + turn.role + '\n' + turn.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}"""
QWEN_3 = """{%- for turn in messages %}
    {%- set words = turn.content %}
    {%- if turn.role == 'assistant' %}
        {%- set words = words.split('</think>')[-1].lstrip('\n') %}
        {%- if loop.last %}
            {%- set words = '<think>\n\n</think>\n\n' + words %}
        {%- endif %}
    {%- endif %}
    {{- '<|im_start|>' + turn.role + '\n' + words + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""
QWEN_35 = """{%- for turn in messages %}
    {%- set words = turn.content | trim %}
    {%- if turn.role == 'system' and not loop.first %}
        {{- raise_exception('System message must be at the beginning.') }}
    {%- elif turn.role == 'assistant' and loop.last %}
        {%- set words = '<think>\n\n</think>\n\n' + words.split('</think>')[-1].lstrip('\n') %}
    {%- endif %}
    {{- '<|im_start|>' + turn.role + '\n' + words + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n<think>\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""

_LLAMA_TOKENS = ("<|begin_of_text|>", "<|end_of_text|>", "<|eom_id|>", "<|eot_id|>")
_LLAMA_HEADERS = ("<|start_header_id|>", "<|end_header_id|>")
_QWEN_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@dataclass(frozen=True)
class Family:
    """How one family's checkpoints look.

    Attributes:
        model: makes a random model.
        template: its chat template.
        specials: its special tokens.
        ends: those that its generation config lets end a reply.
        named: the roles of special tokens in its tokenizer.
        bos: whether its tokenizer puts a beginning-of-text token first by itself.
    """

    model: Callable[[], Any]
    template: str
    specials: tuple[str, ...] = _QWEN_TOKENS
    ends: tuple[str, ...] = ("<|im_end|>", "<|endoftext|>")
    named: dict[str, str] = field(default_factory=lambda: {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"})
    bos: bool = False


FAMILIES = {
    "llama-3.1": Family(
        lambda: LlamaForCausalLM(LlamaConfig(**_SHAPE, rope_parameters=_LLAMA3_ROPE)),
        LLAMA_31,
        _LLAMA_TOKENS + _LLAMA_HEADERS,
        _LLAMA_TOKENS[1:],
        {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
        bos=True,
    ),
    "qwen2.5": Family(lambda: Qwen2ForCausalLM(Qwen2Config(**_SHAPE, tie_word_embeddings=True)), QWEN_25),
    "qwen3": Family(lambda: Qwen3ForCausalLM(Qwen3Config(**_SHAPE, head_dim=32)), QWEN_3),
    "qwen3.5-text": Family(lambda: Qwen3_5ForCausalLM(Qwen3_5TextConfig(**_SHAPE, **_LINEAR)), QWEN_35),
    "qwen3.5": Family(lambda: Qwen3_5ForConditionalGeneration(_multimodal()), QWEN_35),
}
UNTRAINED = ("model.visual.", "mtp.")
"""How tensors begin that are no part of a text model."""


def build(name: str, folder: Path, dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> Path:
    """Write a random checkpoint of the family; the same for the same seed."""
    family = FAMILIES[name]
    tokenizer = tiny_tokenizer(name)
    model = family.model()
    _fill(model, seed)
    ends = tokenizer.convert_tokens_to_ids(list(family.ends))
    model.generation_config = GenerationConfig(eos_token_id=ends, bos_token_id=tokenizer.bos_token_id)
    model.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if name == "qwen3.5":
        _add_untrained(folder, dtype)
    return folder


def tiny_tokenizer(name: str) -> Any:
    """A byte-level tokenizer with the family's special tokens and chat template."""
    family = FAMILIES[name]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=list(family.specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    if family.bos:
        bos = family.named["bos_token"]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, chat_template=family.template, model_max_length=CONTEXT, **family.named
    )


def _multimodal() -> Any:
    text = {**_SHAPE, **_LINEAR, "tie_word_embeddings": True}
    return Qwen3_5Config(text_config=text, vision_config=_VISION, tie_word_embeddings=True)


def _add_untrained(folder: Path, dtype: torch.dtype) -> None:
    """What published checkpoints hold besides: a prediction head, and how pictures are prepared."""
    weights = folder / "model.safetensors"
    save_file(load_file(weights) | {"mtp.norm.weight": torch.ones(64, dtype=dtype)}, weights, metadata={"format": "pt"})
    (folder / "preprocessor_config.json").write_text(json.dumps({"patch_size": 16}))


@torch.no_grad()
def _fill(model: Any, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        drawn = torch.randn(parameter.shape, generator=generator)
        if "norm" in name:
            parameter.add_(drawn * 0.1)
        else:
            parameter.copy_(drawn * 0.15)
