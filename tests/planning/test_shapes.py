"""The sizes of models: counted the way transformers counts them, from the table and from a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny_models import FAMILIES, tiny_checkpoint
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig, Qwen2Config, Qwen3_5TextConfig

from eoh_esopt.models.catalogue import CATALOGUE
from eoh_esopt.planning.shapes import KNOWN, ModelShape, find_shape, from_folder, scaled
from operators.errors import UserError


def config_of(shape: ModelShape) -> PreTrainedConfig:
    """A configuration of transformers with the shape's sizes."""
    kinds = {"Qwen3.5": Qwen3_5TextConfig, "Qwen2.5": Qwen2Config}
    kind = next((kind for start, kind in kinds.items() if shape.name.startswith(start)), LlamaConfig)
    more = {"linear_num_value_heads": 48} if shape.name == "Qwen3.5-27B" else {}
    return kind(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied,
        **more,
    )


@pytest.mark.parametrize("shape", KNOWN, ids=lambda shape: shape.name)
def test_the_table_counts_as_transformers_does(shape: ModelShape) -> None:
    """Else memory and time of a well-known model are planned with a number that is not its own."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_of(shape))
    parameters = dict(model.named_parameters())
    assert sum(one.numel() for one in parameters.values()) == shape.parameters
    assert len(parameters) == shape.tensors
    assert sum(one.numel() for name, one in parameters.items() if "norm" in name) == shape.gains
    attending = sum("self_attn.k_proj.weight" in name for name in parameters)
    assert attending == shape.attending
    looked_up = [one.numel() for name, one in parameters.items() if "embed_tokens" in name]
    assert shape.read == shape.parameters - (0 if shape.tied else sum(looked_up))


def test_the_catalogue_and_the_table_agree() -> None:
    """Else `model list` and `plan` tell different sizes of one model."""
    for entry in CATALOGUE:
        shape = find_shape(entry.hub_id, None)
        assert shape.name == entry.name
        if entry.exact:
            assert shape.parameters == entry.parameters


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_counts_as_its_model_does(tmp_path: Path, family: str) -> None:
    """Else a user's own model is planned with wrong sizes."""
    model = tiny_checkpoint(family)
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    shape = from_folder(tmp_path)
    assert shape.parameters == sum(one.numel() for one in model.parameters())
    assert shape.tensors == len(list(model.parameters()))
    assert shape.gains == sum(one.numel() for name, one in model.named_parameters() if "norm" in name)
    assert (shape.layers, shape.hidden, shape.vocabulary) == (2, 32, 64)
    assert shape.attending == (1 if family == "qwen3_5" else 2)
    assert shape.tied == model.config.tie_word_embeddings
    assert find_shape(str(tmp_path), None) == shape


def test_names_are_found_as_they_are_written_elsewhere() -> None:
    """Else the name that `run` takes is unknown to `plan`."""
    llama = find_shape("Llama-3.1-8B-Instruct", None)
    for name in ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b", "meta-llama/Llama-3.1-8B"):
        assert find_shape(name, None) == llama


def test_an_unknown_model_needs_a_folder_or_a_number() -> None:
    """Else the user does not learn what would make a plan possible."""
    with pytest.raises(UserError, match=r"'me/mine'.*folder of a downloaded copy, or --parameters.*Qwen3.5-9B"):
        find_shape("me/mine", None)
    guessed = find_shape("me/mine", 16_000_000_000)
    assert guessed.approximate
    assert guessed.parameters == 16_000_000_000
    assert guessed.hidden == find_shape("Qwen2.5-Coder-14B-Instruct", None).hidden


def test_a_number_beside_known_sizes_is_refused(tmp_path: Path) -> None:
    """Else the plan is for another model than the one that is named."""
    with pytest.raises(UserError, match="8,030,261,248"):
        find_shape("Llama-3.1-8B-Instruct", 7_000_000_000)
    with pytest.raises(UserError, match="the folder says"):
        find_shape(str(tmp_path), 7)


@pytest.mark.parametrize("parameters", [0, -5, 999_999, 10**13])
def test_impossible_numbers_are_refused(parameters: int) -> None:
    """Else a plan is made for a model that nobody has."""
    with pytest.raises(UserError, match="--parameters must lie"):
        scaled("x", parameters)


def test_mixtures_of_experts_are_refused(tmp_path: Path) -> None:
    """Else a model of which each token uses a part is planned as if it used all."""
    tiny_checkpoint("llama").save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_experts": 8}))
    with pytest.raises(UserError, match="mixture of experts"):
        from_folder(tmp_path)


def test_a_configuration_without_the_usual_sizes_is_refused(tmp_path: Path) -> None:
    """Else the user sees a KeyError."""
    tiny_checkpoint("llama").save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    config = json.loads((tmp_path / "config.json").read_text())
    del config["intermediate_size"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"lacks a usual size.*intermediate_size"):
        from_folder(tmp_path)
