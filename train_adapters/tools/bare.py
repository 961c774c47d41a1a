"""The tool without walls: a plain folder, and whatever the trainer's user may do. Only where the user insists."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from train_adapters.tools.box import Opening
from train_adapters.tools.limits import Mount
from train_adapters.tools.walls import WARDEN_SOURCE

_PREFIX = "eoh-esopt-tool-"


def make_folder(mounts: Sequence[Mount]) -> Path:
    """A new working folder that links to the mounted files. Its name says whose it is, for `remove_stale`."""
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    for mount in mounts:
        (folder / mount.name).symlink_to(mount.source.resolve())
    return folder


def opening(folder: Path, rules: str) -> Opening:
    """A warden that works in the folder and removes it with itself."""
    command = (sys.executable, "-I", "-S", str(WARDEN_SOURCE), rules)
    return Opening(command, {"LANG": "C.UTF-8"}, cleanup=lambda: shutil.rmtree(folder, ignore_errors=True))


def remove_stale() -> None:
    """Remove the working folders of trainers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdigit() and not _lives(int(owner)) and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        with contextlib.suppress(PermissionError):
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
