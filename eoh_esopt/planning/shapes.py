"""What of a model decides its cost: sizes, from a folder's files or from a table of well-known models."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from operators.errors import UserError

_OTHERS = ("visual", "vision", "mtp.")
"""Parts of the names of tensors that are not the text model's."""


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a dense causal language model.

    Attributes:
        name: for people.
        parameters: weights, tied ones once.
        layers: decoder layers.
        attending: those of them that keep keys and values of all tokens.
        hidden: size of the residual stream.
        intermediate: size of a feed-forward layer.
        heads: of queries.
        kv_heads: of keys and values.
        head_size: of each head.
        vocabulary: tokens.
        tied: whether the embedding is the output matrix too.
        gains: weights of the norm layers.
        tensors: in the checkpoint.
        approximate: whether the sizes are guessed from the number of parameters.
    """

    name: str
    parameters: int
    layers: int
    attending: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    tied: bool
    gains: int
    tensors: int
    approximate: bool = False

    @property
    def read(self) -> int:
        """Weights that every token is multiplied with: all but an embedding that is only looked up."""
        return self.parameters - (0 if self.tied else self.vocabulary * self.hidden)

    @property
    def cached(self) -> int:
        """Numbers that are kept of each token: keys and values."""
        return 2 * self.attending * self.kv_heads * self.head_size


KNOWN = (
    # Sizes from the models' config.json; parameters, gains and tensors counted on transformers' models of these sizes.
    ModelShape("SmolLM2-135M-Instruct", 134_515_008, 30, 30, 576, 1_536, 9, 3, 64, 49_152, True, 35_136, 272),
    ModelShape("SmolLM2-360M-Instruct", 361_821_120, 32, 32, 960, 2_560, 15, 5, 64, 49_152, True, 62_400, 290),
    ModelShape("SmolLM2-1.7B-Instruct", 1_711_376_384, 24, 24, 2_048, 8_192, 32, 32, 64, 49_152, True, 100_352, 218),
    ModelShape("Qwen2.5-Coder-0.5B-Instruct", 494_032_768, 24, 24, 896, 4_864, 14, 2, 64, 151_936, True, 43_904, 290),
    ModelShape(
        "Qwen2.5-Coder-1.5B-Instruct", 1_543_714_304, 28, 28, 1_536, 8_960, 12, 2, 128, 151_936, True, 87_552, 338
    ),
    ModelShape(
        "Qwen2.5-Coder-7B-Instruct", 7_615_616_512, 28, 28, 3_584, 18_944, 28, 4, 128, 152_064, False, 204_288, 339
    ),
    ModelShape(
        "Qwen2.5-Coder-14B-Instruct", 14_770_033_664, 48, 48, 5_120, 13_824, 40, 8, 128, 152_064, False, 496_640, 579
    ),
    ModelShape(
        "Qwen2.5-Coder-32B-Instruct", 32_763_876_352, 64, 64, 5_120, 27_648, 40, 8, 128, 152_064, False, 660_480, 771
    ),
    ModelShape("Qwen3.5-4B", 4_205_751_296, 32, 8, 2_560, 9_216, 16, 4, 256, 248_320, True, 173_568, 426),
    ModelShape("Qwen3.5-9B", 8_953_803_264, 32, 8, 4_096, 12_288, 16, 4, 256, 248_320, False, 273_408, 427),
    ModelShape("Qwen3.5-27B", 26_895_998_464, 64, 16, 5_120, 17_408, 24, 4, 256, 248_320, False, 674_816, 851),
    ModelShape("Llama-3.1-8B-Instruct", 8_030_261_248, 32, 32, 4_096, 14_336, 32, 8, 128, 128_256, False, 266_240, 291),
    ModelShape(
        "Llama-3.1-70B-Instruct", 70_553_706_496, 80, 80, 8_192, 28_672, 64, 8, 128, 128_256, False, 1_318_912, 723
    ),
)


def find_shape(model: str, parameters: int | None) -> ModelShape:
    """The sizes of a model.

    Args:
        model: a folder with config.json and *.safetensors, or a name or hub id of `KNOWN` (case and `-Instruct` do not
            matter).
        parameters: of a model that is neither: its other sizes are then those of the known model nearest in size, with
            as many more or fewer layers.

    Raises:
        UserError: the model is unknown and no number was given, or the folder cannot be read.
    """
    if Path(model).expanduser().is_dir():
        if parameters is not None:
            raise UserError("--parameters is for models that are not here: the folder says how many there are.")
        return from_folder(Path(model).expanduser())
    wanted = _plain(model.rpartition("/")[2])
    for shape in KNOWN:
        if _plain(shape.name) == wanted:
            if parameters is not None:
                raise UserError(f"--parameters is for unknown models: {shape.name} has {shape.parameters:,}.")
            return shape
    if parameters is None:
        raise UserError(
            f"The sizes of model {model!r} are not known. Give the folder of a downloaded copy, or --parameters; "
            f"known: {', '.join(shape.name for shape in KNOWN)}."
        )
    return scaled(model, parameters)


def scaled(name: str, parameters: int) -> ModelShape:
    """A model of that many parameters, guessed after the known one that is nearest in size.

    Raises:
        UserError: there is no model of that size.
    """
    if not 1_000_000 <= parameters <= 2_000_000_000_000:
        raise UserError(f"--parameters must lie between a million and two million million, not {parameters:,}.")
    near = min(KNOWN, key=lambda shape: max(shape.parameters, parameters) / min(shape.parameters, parameters))
    ratio = parameters / near.parameters

    def much(number: int) -> int:
        return max(1, round(number * ratio))

    layers, attending, gains, tensors = map(much, (near.layers, near.attending, near.gains, near.tensors))
    return replace(
        near,
        name=name,
        parameters=parameters,
        layers=layers,
        attending=attending,
        gains=gains,
        tensors=tensors,
        approximate=True,
    )


def from_folder(folder: Path) -> ModelShape:
    """The sizes of the text model in a checkpoint.

    Raises:
        UserError: the folder holds no whole checkpoint, one without the usual sizes, or a mixture of experts.
    """
    from eoh_esopt.models.checkpoint import stored_tensors
    from eoh_esopt.models.local import check_movable

    check_movable(folder)
    top = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config: dict[str, Any] = top.get("text_config") or top
    if any(config.get(key) for key in ("num_experts", "num_local_experts", "n_routed_experts")):
        raise UserError(f"The model in {folder} is a mixture of experts: its cost is not planned here.")
    tied = bool(config.get("tie_word_embeddings", top.get("tie_word_embeddings", False)))
    sizes = {
        name: _elements(one.shape)
        for name, one in stored_tensors(folder).items()
        if not any(part in name for part in _OTHERS) and not (tied and name.endswith("lm_head.weight"))
    }
    try:
        heads = int(config["num_attention_heads"])
        return ModelShape(
            name=folder.name,
            parameters=sum(sizes.values()),
            layers=int(config["num_hidden_layers"]),
            attending=_attending(config),
            hidden=int(config["hidden_size"]),
            intermediate=int(config["intermediate_size"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_size=int(config.get("head_dim") or int(config["hidden_size"]) // heads),
            vocabulary=int(config["vocab_size"]),
            tied=tied,
            gains=sum(size for name, size in sizes.items() if "norm" in name),
            tensors=len(sizes),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"The config.json in {folder} lacks a usual size ({error}): its cost cannot be planned."
        ) from error


def _attending(config: dict[str, Any]) -> int:
    """Layers whose keys and values grow with the context: not those of linear attention."""
    kinds = config.get("layer_types")
    if kinds:
        return sum(kind != "linear_attention" for kind in kinds)
    return int(config["num_hidden_layers"]) // int(config.get("full_attention_interval") or 1)


def _elements(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


def _plain(name: str) -> str:
    return name.strip().lower().removesuffix("-instruct")
