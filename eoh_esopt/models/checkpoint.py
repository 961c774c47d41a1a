"""The files of a checkpoint: what tensors they hold, and an adapted copy of them.

A copy has its base's files and tensor names; only the values of the tensors given are replaced. So it loads wherever
the base does, and what was not trained (vision weights, prediction heads) stays as it is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from eoh_esopt.models.cache import RECORD
from operators.errors import UserError

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_COPIED = ("*.json", "*.jinja", "*.txt", "*.model", "LICENSE*", "NOTICE*", "USE_POLICY*")
SHARD_BYTES = 5_000_000_000


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a checkpoint's files.

    Attributes:
        file: the file that holds it.
        shape: its dimensions.
        dtype: as safetensors names it, such as BF16.
    """

    file: Path
    shape: tuple[int, ...]
    dtype: str


def stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """The tensors of a checkpoint by name, from the headers of its files.

    Raises:
        UserError: there are no safetensors weights, or a file is missing, cut off or damaged.
    """
    found = {}
    for file in _weight_files(folder):
        try:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - it is no mapping
                    one = opened.get_slice(name)
                    found[name] = StoredTensor(file, tuple(one.get_shape()), str(one.get_dtype()))
        except (OSError, SafetensorError) as error:
            raise UserError(
                f"The model in {folder} cannot be loaded: {file.name} is missing, cut off or damaged ({error}). "
                "Copy or download it again."
            ) from error
    return found


def write_adapted(
    base: Path,
    out: Path,
    tensors: Mapping[str, torch.Tensor],
    *,
    tied: frozenset[str] = frozenset(),
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write a copy of the checkpoint in `base` into the folder `out`, with other values for some of its tensors.

    Args:
        tensors: the new values by checkpoint name, all of one dtype, which the copy's configuration then names.
        tied: names that stand for one of `tensors` too; the copy stores them once.
        shard_bytes: size from which on the weights are split into several files.

    Raises:
        UserError: the base's files cannot be read.
        OSError: the copy cannot be written.
    """
    others = {name: one for name, one in stored_tensors(base).items() if name not in tensors and name not in tied}
    out.mkdir(parents=True, exist_ok=True)
    for path in {path for pattern in _COPIED for path in base.glob(pattern)}:
        if path.is_file() and path.name != RECORD and not path.name.endswith(".index.json"):
            shutil.copyfile(path, out / path.name)
    _name_dtype(out / "config.json", next(iter(tensors.values())).dtype)
    _write_weights(out, _values(tensors, others), shard_bytes)


def _weight_files(folder: Path) -> list[Path]:
    """The files that transformers would read: the single one, or else those of the index."""
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    try:
        index: dict[str, Any] = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        return [folder / name for name in sorted(set(index["weight_map"].values()))]
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise UserError(
            f"The model in {folder} cannot be loaded: it has neither {_WEIGHTS} nor a readable {_INDEX}. Save the "
            "model there with save_pretrained, or give another folder."
        ) from error


def _values(
    tensors: Mapping[str, torch.Tensor], others: Mapping[str, StoredTensor]
) -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors of the copy, one after the other, in memory."""
    for name, tensor in sorted(tensors.items()):
        yield name, tensor.detach().cpu().contiguous()
    for name, stored in sorted(others.items()):
        with safe_open(stored.file, framework="pt") as opened:
            yield name, opened.get_tensor(name)


def _write_weights(out: Path, values: Iterator[tuple[str, torch.Tensor]], shard_bytes: int) -> None:
    """One file, or several of at most `shard_bytes` (unless one tensor is larger) and an index."""
    shards: list[list[str]] = []
    total, size = 0, 0
    held: dict[str, torch.Tensor] = {}
    for name, value in values:
        if held and size + value.nbytes > shard_bytes:
            shards.append(_write_shard(out, len(shards), held))
            held, size = {}, 0
        held[name] = value
        size += value.nbytes
        total += value.nbytes
    shards.append(_write_shard(out, len(shards), held))
    if len(shards) == 1:
        _part(out, 0).rename(out / _WEIGHTS)
        return
    weight_map: dict[str, str] = {}
    for number, names in enumerate(shards):
        file = f"model-{number + 1:05d}-of-{len(shards):05d}.safetensors"
        _part(out, number).rename(out / file)
        weight_map |= dict.fromkeys(names, file)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    (out / _INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _write_shard(out: Path, number: int, held: dict[str, torch.Tensor]) -> list[str]:
    try:
        save_file(held, _part(out, number), metadata={"format": "pt"})
    except SafetensorError as error:  # how a full disk shows
        raise OSError(str(error)) from error
    _part(out, number).chmod((out / "config.json").stat().st_mode)  # not for the writer's eyes only
    return list(held)


def _part(out: Path, number: int) -> Path:
    """A shard's name until it is known how many there are."""
    return out / f"part-{number}"


def _name_dtype(config: Path, dtype: torch.dtype) -> None:
    """State the dtype in a configuration, in that of the text model too: loaders cast to what they read there."""
    data: dict[str, Any] = json.loads(config.read_text(encoding="utf-8"))
    for part in (data, data.get("text_config")):
        if isinstance(part, dict):
            part["dtype"] = str(dtype).removeprefix("torch.")
            part.pop("torch_dtype", None)
    config.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
