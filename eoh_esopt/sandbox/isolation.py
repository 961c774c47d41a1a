"""Which walls the host offers around a candidate, and how they are put up.

The walls: an empty environment and no descriptors but the answer's, resource limits, no new privileges, no
capabilities, namespaces (users, processes, network, IPC), Landlock, seccomp. Each is tried once when a worker starts;
what the host refuses is left out and named. Nothing here judges a candidate.
"""

from __future__ import annotations

import fcntl
import math
import os
import resource
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eoh_esopt.sandbox import landlock, seccomp, syscalls
from eoh_esopt.sandbox.limits import Limits

MODES = ("best", "required", "none")
ANSWER_FD = 3
_OPEN_FILES = 64
_TASKS = 128
_REQUIRED = ("landlock", "seccomp", "capabilities")


@dataclass(frozen=True)
class Layer:
    """One wall.

    Attributes:
        name: what it is called.
        on: whether it stands.
        why: what it covers, or why it is off.
    """

    name: str
    on: bool
    why: str


@dataclass(frozen=True)
class Plan:
    """What every child of one worker puts up around itself.

    Attributes:
        limits: caps on one candidate.
        address_space: bytes of the worker's own address space, on which the memory limit is added.
        locked: no new privileges, and no capabilities where that is possible.
        ruleset: descriptor of the Landlock rules, or None.
        filtered: whether to install the seccomp filter.
        scratch: an empty folder to stand in.
        counted: whether to cap the number of threads: possible where the candidate's user is counted by itself, in a
            namespace. The kernel exempts root.
    """

    limits: Limits
    address_space: int
    locked: bool
    ruleset: int | None
    filtered: bool
    scratch: str
    counted: bool


def summary(layers: Iterable[Layer]) -> str:
    """One line for people."""
    layers = list(layers)
    there = ", ".join(layer.name for layer in layers if layer.on)
    absent = ", ".join(f"{layer.name} ({layer.why})" for layer in layers if not layer.on)
    return f"{there}; without {absent}" if absent else there


def missing(layers: Iterable[Layer]) -> list[Layer]:
    """The layers that "required" asks for and that are not there: nothing else stops writing files or networking."""
    return [layer for layer in layers if layer.name in _REQUIRED and not layer.on]


def enter_namespaces(mode: str) -> Layer:
    """Give the caller new user, network and IPC namespaces and its next child a new process namespace.

    The caller must have a single thread. Tried in a child first, since a refusal half-way cannot be undone.
    """
    name = "namespaces"
    refused = _not_wanted(mode) or _attempt(_unshare)
    if refused:
        return Layer(name, False, refused)
    _unshare()
    return Layer(name, True, "users, processes, network, IPC")


def prepare(mode: str, limits: Limits, namespaces: Layer, scratch: str) -> tuple[Plan, list[Layer]]:
    """Find out what the host offers, by putting each wall up around a throw-away child."""
    off = _not_wanted(mode)
    capabilities = off or ("" if syscalls.capset_known() else f"unknown on {syscalls.MACHINE}") or _attempt(_lock)
    ruleset, files = (None, off) if off else _ruleset()
    filtering = off or ("" if seccomp.known() else f"unknown on {syscalls.MACHINE}") or _attempt(_filter)
    plan = Plan(limits, _address_space(), not capabilities, ruleset, not filtering, scratch, namespaces.on)
    layers = [
        Layer("process limits", True, "memory, CPU time, open files, file size 0, empty environment"),
        Layer("capabilities", not capabilities, capabilities or "none held, none to be gained"),
        namespaces,
        Layer("landlock", not files, files or landlock.covers()),
        Layer("seccomp", not filtering, filtering or "no sockets, processes, signals, mounts"),
    ]
    return plan, layers


def enclose(plan: Plan, parent: int) -> None:
    """Put all walls up around the calling process, a fresh single-threaded child that has left its descriptors.

    Args:
        plan: from `prepare`.
        parent: process id of the worker.

    Raises:
        OSError: a wall that stood in the trial did not stand now.
    """
    os.setsid()
    os.environ.clear()
    os.chdir(plan.scratch)
    _limit(plan)
    if plan.locked:
        _lock()
    if plan.ruleset is not None:
        landlock.restrict(ANSWER_FD + 1)
        os.close(ANSWER_FD + 1)
    if syscalls.LINUX:
        syscalls.prctl("PR_SET_PDEATHSIG", syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    if plan.filtered:
        seccomp.install(os.getpid())


def protect_worker() -> None:
    """Keep others of the same user out of the caller's memory and let it inherit orphans; Linux only."""
    if syscalls.LINUX:
        syscalls.prctl("PR_SET_DUMPABLE", syscalls.PR_SET_DUMPABLE, 0)
        syscalls.prctl("PR_SET_CHILD_SUBREAPER", syscalls.PR_SET_CHILD_SUBREAPER, 1)


def _not_wanted(mode: str) -> str:
    if mode == "none":
        return "switched off"
    return "" if syscalls.LINUX else "only on Linux"


def _unshare() -> None:
    user, group = os.geteuid(), os.getegid()
    syscalls.unshare(
        syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNET | syscalls.CLONE_NEWIPC,
    )
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _lock() -> None:
    syscalls.prctl("PR_SET_NO_NEW_PRIVS", syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.drop_capabilities()


def _filter() -> None:
    syscalls.prctl("PR_SET_NO_NEW_PRIVS", syscalls.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(os.getpid())


def _ruleset() -> tuple[int | None, str]:
    try:
        fd = landlock.ruleset()
    except OSError as error:
        return None, str(error)

    def apply() -> None:
        syscalls.prctl("PR_SET_NO_NEW_PRIVS", syscalls.PR_SET_NO_NEW_PRIVS, 1)
        landlock.restrict(fd)

    refused = _attempt(apply)
    if refused:
        os.close(fd)
        return None, refused
    return fd, ""


def _attempt(action: Callable[[], None]) -> str:
    """Why the action fails in a throw-away child; empty when it works."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except OSError as error:
            os.write(send, str(error).encode()[:400])
        finally:
            os._exit(1)
    os.close(send)
    with open(receive, "rb") as pipe:
        why = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return why or ("" if status == 0 else f"a trial ended with status {status}")


def leave_descriptors(answer: int, ruleset: int | None) -> int:
    """Point 0, 1, 2 at nothing, move the answer to `ANSWER_FD` and the rules to the next, close the rest.

    Returns:
        Where the answer goes from now on.
    """
    null = os.open(os.devnull, os.O_RDWR)
    kept = [null, null, null, answer, *([] if ruleset is None else [ruleset])]
    # First out of the way of the places they go to.
    parked = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(kept)) for fd in kept]
    for place, fd in enumerate(parked):
        os.dup2(fd, place, inheritable=False)
    os.closerange(len(kept), os.sysconf("SC_OPEN_MAX"))
    return ANSWER_FD


def _limit(plan: Plan) -> None:
    cores = os.cpu_count() or 1
    caps = {
        resource.RLIMIT_CPU: math.ceil(plan.limits.wall_s * cores) + 5,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    if plan.address_space:
        caps[resource.RLIMIT_AS] = plan.address_space + plan.limits.memory_bytes
    if plan.counted:
        caps[resource.RLIMIT_NPROC] = _TASKS
    for kind, cap in caps.items():
        _, hard = resource.getrlimit(kind)
        cap = cap if hard == resource.RLIM_INFINITY else min(cap, hard)
        resource.setrlimit(kind, (cap, cap))


def _address_space() -> int:
    """Bytes mapped by the calling process; 0 where the system does not say."""
    if not syscalls.LINUX:
        return 0
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
