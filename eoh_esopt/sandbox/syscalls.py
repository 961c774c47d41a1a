"""Thin calls into the Linux kernel through ctypes. No policy here; elsewhere than Linux nothing may be called."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from typing import Any

LINUX = sys.platform == "linux"
MACHINE = platform.machine()

CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x08000000, 0x10000000, 0x20000000, 0x40000000

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38

_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def syscall(what: str, number: int, *arguments: Any) -> int:
    """Make a raw system call.

    Raises:
        OSError: the kernel refused it; the message begins with `what`.
    """
    longs = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _check(_libc.syscall(ctypes.c_long(number), *longs), what)


def prctl(what: str, option: int, argument: int | Any = 0, third: Any = 0) -> int:
    """Make a prctl call of up to three arguments.

    Raises:
        OSError: the kernel refused it; the message begins with `what`.
    """
    longs = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in (argument, third, 0, 0)]
    return _check(_libc.prctl(ctypes.c_int(option), *longs), what)


def unshare(flags: int) -> None:
    """Move the calling process (its future children, for a pid namespace) into new namespaces.

    Raises:
        OSError: the kernel or a security module refused.
    """
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def drop_capabilities() -> None:
    """Give up every capability, for good. Call only where `capset_known`.

    Raises:
        OSError: the kernel refused.
    """
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl("PR_CAPBSET_DROP", PR_CAPBSET_DROP, capability)
        except OSError:
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    empty = (ctypes.c_uint32 * 6)()
    syscall("capset", _CAPSET[MACHINE], ctypes.byref(header), ctypes.byref(empty))


def capset_known() -> bool:
    """Whether `drop_capabilities` knows this kind of machine."""
    return MACHINE in _CAPSET
