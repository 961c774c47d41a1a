"""Model folders on disk: what a folder must hold to be opened as a model whose weights can be moved.

Not here: whether the weights are any good.
"""

from __future__ import annotations

import json
from pathlib import Path

from operators.errors import UserError

_INDEX = "model.safetensors.index.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
_QUANTISED = ("quantization_config", "compression_config")
_OLD_FILES = ("quantize_config.json", "quant_config.json")
_WORKS = "What works is the unquantised checkpoint: config.json, *.safetensors in bfloat16, float16 or float32."
_GGUF = f"GGUF weights are packed, and directions cannot move them. {_WORKS} `eoh-esopt model get NAME` has some."


def missing_pieces(folder: Path) -> list[str]:
    """The names of what a model folder lacks; empty where it is complete."""
    missing = [] if (folder / "config.json").is_file() else ["config.json"]
    missing += _missing_weights(folder)
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        missing.append("a tokenizer (tokenizer.json)")
    return missing


def local_model(path: str) -> Path:
    """The absolute path of a model folder.

    Raises:
        UserError: no such folder, or pieces are missing.
    """
    folder = Path(path).expanduser()
    if not folder.exists():
        raise UserError(f"model folder {path!r} does not exist: check the path, or give a name of the catalogue")
    if not folder.is_dir():
        if folder.suffix == ".gguf":
            raise UserError(f"{path!r}: {_GGUF}")
        raise UserError(f"{path!r} is a file: give the folder that holds config.json, *.safetensors and the tokenizer")
    if missing := missing_pieces(folder):
        if any(folder.glob("*.gguf")):
            raise UserError(f"model folder {path!r} lacks {', '.join(missing)}. {_GGUF}")
        raise UserError(
            f"model folder {path!r} lacks {', '.join(missing)}: save the model there with save_pretrained, or "
            "give another folder"
        )
    return folder.resolve()


def check_movable(folder: Path) -> None:
    """Refuse model folders whose weights cannot be loaded, or not be moved, before anything is loaded.

    Raises:
        UserError: pieces are missing, or the weights are quantised.
    """
    if missing := missing_pieces(folder):
        raise UserError(
            f"The model in {folder} cannot be loaded: the folder lacks {', '.join(missing)}. Copy or download it again."
        )
    if method := _quantisation(folder):
        raise UserError(
            f"The model in {folder} cannot be loaded: it is quantised ({method}), and directions cannot move packed "
            f"weights. {_WORKS}"
        )


def _quantisation(folder: Path) -> str:
    """How a checkpoint is quantised, as far as its configuration says so; empty where it is not."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        parts = [config, config.get("text_config") or {}]
        found = [part[key] for part in parts for key in _QUANTISED if part.get(key)]
        if not found and any((folder / name).is_file() for name in _OLD_FILES):
            return "GPTQ or AWQ"
        return str(found[0].get("quant_method") or "method unknown") if found else ""
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UserError(
            f"The model in {folder} cannot be loaded: its config.json is damaged ({error}). Copy or download it again."
        ) from error


def _missing_weights(folder: Path) -> list[str]:
    index = folder / _INDEX
    if not index.is_file():
        return [] if any(folder.glob("*.safetensors")) else ["the weights (*.safetensors)"]
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError):
        return [f"a readable {_INDEX}"]
    return sorted(shard for shard in shards if not (folder / shard).is_file())
