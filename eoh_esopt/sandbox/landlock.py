"""Landlock: after `restrict`, the process reads what Python needs, writes nothing, and opens no TCP connection.

Covers opening files (and mounts, ptrace of others), from kernel 5.13; TCP from 6.7; signals to processes outside and
abstract sockets from 6.12. Does not cover descriptors that are already open, chmod, or UDP.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from eoh_esopt.sandbox import syscalls

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_NET_BOTH, _SCOPE_BOTH = 3, 3
_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15}
_RIGHTS_FROM_ABI_5 = 16


def abi() -> int:
    """The kernel's Landlock version.

    Raises:
        OSError: the kernel has none, or it is switched off.
    """
    return syscalls.syscall("landlock", _CREATE_RULESET, 0, 0, _VERSION_FLAG)


def ruleset() -> int:
    """Build the rules and return their file descriptor; any number of children can apply it.

    Raises:
        OSError: the kernel refused.
    """
    version = abi()
    rights = (1 << _RIGHTS_BY_ABI.get(version, _RIGHTS_FROM_ABI_5)) - 1
    fields = [rights]
    if version >= 4:
        fields.append(_NET_BOTH)
    if version >= 6:
        fields.append(_SCOPE_BOTH)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    fd = syscalls.syscall("landlock", _CREATE_RULESET, ctypes.c_char_p(attributes), len(attributes), 0)
    for path in readable_paths():
        _allow(fd, path, _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0))
    _allow(fd, os.devnull, _READ_FILE | _WRITE_FILE)
    return fd


def restrict(fd: int) -> None:
    """Put the calling thread and all it starts under the rules, for good. Needs no_new_privs.

    Raises:
        OSError: the kernel refused.
    """
    syscalls.syscall("landlock_restrict_self", _RESTRICT_SELF, fd, 0)


def covers() -> str:
    """One line: which version this is and what it guards."""
    version = abi()
    guarded = ["files", *(["TCP"] if version >= 4 else []), *(["signals"] if version >= 6 else [])]
    return f"version {version}: {', '.join(guarded)}"


def readable_paths() -> list[str]:
    """Folders and files that Python and its packages are loaded from. The working folder is not among them."""
    packages = [path for path in sys.path if os.path.basename(path) in {"site-packages", "dist-packages"}]
    system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/zero"]
    wanted = dict.fromkeys([sys.prefix, sys.base_prefix, *packages, *system])
    return [path for path in wanted if os.path.exists(path) and path != "/"]


def _allow(ruleset_fd: int, path: str, rights: int) -> None:
    target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = ctypes.c_char_p(struct.pack("=Qi", rights, target))
        syscalls.syscall("landlock_add_rule", _ADD_RULE, ruleset_fd, _PATH_BENEATH, rule, 0)
    finally:
        os.close(target)
