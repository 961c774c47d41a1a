"""Model folders on disk: what a folder must hold to be opened as a model.

Not here: whether the weights are any good.
"""

from __future__ import annotations

import json
from pathlib import Path

from operators.errors import UserError

_INDEX = "model.safetensors.index.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")


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
        raise UserError(f"{path!r} is a file: give the folder that holds config.json, *.safetensors and the tokenizer")
    if missing := missing_pieces(folder):
        raise UserError(
            f"model folder {path!r} lacks {', '.join(missing)}: save the model there with save_pretrained, or "
            "give another folder"
        )
    return folder.resolve()


def _missing_weights(folder: Path) -> list[str]:
    index = folder / _INDEX
    if not index.is_file():
        return [] if any(folder.glob("*.safetensors")) else ["the weights (*.safetensors)"]
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError):
        return [f"a readable {_INDEX}"]
    return sorted(shard for shard in shards if not (folder / shard).is_file())
