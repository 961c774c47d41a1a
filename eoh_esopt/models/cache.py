"""The model cache of this machine: where it is, what lies there complete, and the record kept beside each model.

Covers: paths, the lock, the record `eoh_esopt_model.json` and its checks. A model folder appears by one rename, so a
folder under `models/` is whole; what a killed process left lies under `work/` and is swept by the next. Not here:
downloading and converting.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

from eoh_esopt.models.progress import Progress
from operators.errors import UserError

RECORD = "eoh_esopt_model.json"
_FORMAT = 1


@dataclass(frozen=True)
class SourceFile:
    """One fetched file and its sha256."""

    name: str
    sha256: str


@dataclass(frozen=True)
class ModelFile:
    """One file of a model folder: name, size in bytes, sha256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Record:
    """What `eoh_esopt_model.json` says about the folder it lies in."""

    name: str
    licence: str
    parameters: int
    sources: tuple[SourceFile, ...]
    files: tuple[ModelFile, ...]


def cache_root() -> Path:
    """The cache folder: EOH_ESOPT_CACHE where set, else the user's cache folder for eoh-esopt."""
    chosen = os.environ.get("EOH_ESOPT_CACHE", "").strip()
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("eoh-esopt"))


def model_folder(name: str) -> Path:
    """Where the model of this name lies once it is complete."""
    return cache_root() / "models" / name


def download_folder(name: str) -> Path:
    """Where verified downloads of this model wait for their conversion."""
    return cache_root() / "downloads" / name


def sha256_of(path: Path) -> str:
    """The hexadecimal sha256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_record(folder: Path, name: str, licence: str, parameters: int, sources: tuple[SourceFile, ...]) -> None:
    """Hash every file of `folder` and write its record."""
    files = tuple(
        ModelFile(path.name, path.stat().st_size, sha256_of(path))
        for path in sorted(folder.iterdir())
        if path.is_file()
    )
    record = Record(name, licence, parameters, sources, files)
    text = json.dumps({"format": _FORMAT, **asdict(record)}, indent=2)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def read_record(folder: Path) -> Record | None:
    """The record of a model folder; None where there is none that this version understands."""
    try:
        data = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if data["format"] != _FORMAT:
            return None
        return Record(
            name=data["name"],
            licence=data["licence"],
            parameters=data["parameters"],
            sources=tuple(SourceFile(**source) for source in data["sources"]),
            files=tuple(ModelFile(**file) for file in data["files"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def damage(folder: Path, record: Record, *, rehash: bool = False) -> list[str]:
    """What differs between a folder and its record, one sentence a file; hashes only where `rehash` is true."""
    faults = []
    for file in record.files:
        path = folder / file.name
        if not path.is_file():
            faults.append(f"{file.name} is missing")
        elif path.stat().st_size != file.size:
            faults.append(f"{file.name} has {path.stat().st_size} bytes, recorded {file.size}")
        elif rehash and (found := sha256_of(path)) != file.sha256:
            faults.append(f"{file.name} has sha256 {found}, recorded {file.sha256}")
    return faults


def complete_model(name: str) -> Path | None:
    """The folder of a cached model whose files are all there with their recorded sizes; else None."""
    folder = model_folder(name)
    record = read_record(folder)
    return folder if record is not None and not damage(folder, record) else None


@contextmanager
def locked(name: str, progress: Progress) -> Iterator[int]:
    """Hold the lock of one model; yields its file descriptor. Waits, with a note, while another process holds it."""
    folder = _make(cache_root() / "locks")
    with (folder / f"{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.step(f"another process is preparing {name}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


@contextmanager
def work_folder(name: str) -> Iterator[Path]:
    """An empty folder for unfinished work on one model, removed afterwards; call it with the lock held.

    It lies in the cache, so that a rename out of it stays on one file system.
    """
    parent = _make(cache_root() / "work")
    for stale in parent.glob(f"{name}.*"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(finished: Path, name: str) -> Path:
    """Move a finished model folder to its place, replacing a damaged one."""
    target = model_folder(name)
    _make(target.parent)
    shutil.rmtree(target, ignore_errors=True)
    return finished.rename(target)


def need_space(amount: int) -> None:
    """Refuse to begin where the cache's disk has less than `amount` bytes free.

    Raises:
        UserError: not enough space.
    """
    root = _make(cache_root())
    free = shutil.disk_usage(root).free
    if free < amount:
        raise UserError(
            f"{root} has {free / 1e9:.1f} GB free and {amount / 1e9:.1f} GB are needed: free some, or set "
            "EOH_ESOPT_CACHE to a folder on another disk"
        )


def _make(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the cache folder {folder} cannot be made ({error.strerror}): set EOH_ESOPT_CACHE to a writable folder"
        ) from error
    return folder
