"""A seccomp filter in raw BPF: the process keeps computing, but makes no socket, process, signal or mount.

A list of what is refused (EPERM), not of what is allowed: numpy, numba and threads run as ever. Opening files is
Landlock's business. Known for x86_64 and aarch64.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterable

from eoh_esopt.sandbox import syscalls

_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
_CLONE_THREAD = 0x00010000

_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_LOAD, _RETURN, _IF_EQUAL, _IF_AT_LEAST, _IF_BITS = 0x20, 0x06, 0x15, 0x35, 0x45
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24

# (x86_64, aarch64); None: the machine has no such call.
_REFUSED: dict[str, tuple[int, int | None]] = {
    "socket": (41, 198), "socketpair": (53, 199), "io_uring_setup": (425, 425),
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "setsid": (112, 157), "setpgid": (109, 154), "unshare": (272, 97), "setns": (308, 268),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "kcmp": (312, 272), "process_madvise": (440, 440),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "setrlimit": (160, 164),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
    "open_by_handle_at": (304, 265), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
    "file_setattr": (469, 469), "truncate": (76, 45), "inotify_init": (253, None), "inotify_init1": (294, 26),
}  # fmt: skip
_REFUSED_TO_TOOLS = (
    "io_uring_setup", "unshare", "setns", "pidfd_getfd", "ptrace", "process_vm_readv", "process_vm_writev",
    "shmget", "semget", "msgget", "mq_open", "add_key", "request_key", "keyctl", "mount", "umount2", "pivot_root",
    "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    "bpf", "perf_event_open", "userfaultfd", "fanotify_init", "open_by_handle_at", "kexec_load", "kexec_file_load",
    "reboot", "init_module", "finit_module", "delete_module", "swapon", "swapoff", "acct", "quotactl", "syslog",
    "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname", "iopl", "ioperm",
)  # fmt: skip
_UNCOUNTED: dict[str, tuple[int, int | None]] = {"memfd_create": (319, 279), "memfd_secret": (447, 447)}
_CLONE_NEWUSER = 0x10000000
_CLONE, _CLONE3 = (56, 220), (435, 435)
_KILL_CALL, _TGKILL = (62, 129), (234, 131)
_PRLIMIT64, _SCHED_SETAFFINITY = (302, 261), (203, 122)
_PRCTL = (157, 167)
_FCNTL, _IOCTL = (72, 25), (16, 29)

# A descriptor that becomes ready would signal any process of the user: F_SETSIG, F_SETOWN, F_SETOWN_EX.
_SIGNALLING = (10, 8, 15)

# The requests of Python's own files: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX. Others change a file
# that is open for reading: its flags, or (fs-verity) whether it may ever be written again.
_HARMLESS_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)


def known() -> bool:
    """Whether the numbers for this kind of machine are here."""
    return syscalls.MACHINE in _ARCHITECTURE


def install(own_pid: int) -> None:
    """Filter the calling thread and all it starts, for good. Needs no_new_privs.

    Args:
        own_pid: the only process that may still be signalled.

    Raises:
        OSError: the kernel refused.
    """
    code = program(syscalls.MACHINE, own_pid)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("@HxxxxxxP", len(code) // 8, ctypes.addressof(buffer)))
    syscalls.prctl("seccomp", syscalls.PR_SET_SECCOMP, 2, ctypes.byref(header))


def program(machine: str, own_pid: int) -> bytes:
    """The filter for a kind of machine, as an array of struct sock_filter."""
    column = 0 if machine == "x86_64" else 1
    steps = _refusing(machine, _REFUSED.values())
    steps += _unless(_CLONE[column], [_step(_IF_BITS, _CLONE_THREAD, 1, 0)])
    for numbers in (_KILL_CALL, _TGKILL):
        steps += _unless(numbers[column], [_step(_IF_EQUAL, own_pid, 1, 0)])
    for numbers in (_PRLIMIT64, _SCHED_SETAFFINITY):
        steps += _unless(numbers[column], [_step(_IF_EQUAL, 0, 2, 0), _step(_IF_EQUAL, own_pid, 1, 0)])
    steps += _if(_PRCTL[column], _FIRST_ARGUMENT_AT, (syscalls.PR_SET_PDEATHSIG, syscalls.PR_SET_DUMPABLE), refuse=True)
    steps += _if(_FCNTL[column], _SECOND_ARGUMENT_AT, _SIGNALLING, refuse=True)
    steps += _if(_IOCTL[column], _SECOND_ARGUMENT_AT, _HARMLESS_REQUESTS, refuse=False)
    steps.append(_step(_RETURN, _ALLOW))
    return b"".join(steps)


def program_for_tools(machine: str) -> bytes:
    """A filter for commands in namespaces: they make processes, but no namespaces, and no memory that nobody counts."""
    column = 0 if machine == "x86_64" else 1
    steps = _refusing(machine, [*map(_REFUSED.__getitem__, _REFUSED_TO_TOOLS), *_UNCOUNTED.values()])
    body = [_step(_LOAD, _FIRST_ARGUMENT_AT), _step(_IF_BITS, _CLONE_NEWUSER, 0, 1), _step(_RETURN, _EPERM)]
    steps += [_step(_IF_EQUAL, _CLONE[column], 0, len(body)), *body, _step(_RETURN, _ALLOW)]
    return b"".join(steps)


def _refusing(machine: str, calls: Iterable[tuple[int, int | None]]) -> list[bytes]:
    """The beginning of a filter: of other machines' calls, of some calls, and of clone3."""
    column = 0 if machine == "x86_64" else 1
    steps = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_IF_EQUAL, _ARCHITECTURE[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":
        steps += [_step(_IF_AT_LEAST, _X32_BIT, 0, 1), _step(_RETURN, _EPERM)]
    for numbers in calls:
        number = numbers[column]
        if number is not None:
            steps += [_step(_IF_EQUAL, number, 0, 1), _step(_RETURN, _EPERM)]
    # glibc falls back to clone, whose flags the filter can see.
    return [*steps, _step(_IF_EQUAL, _CLONE3[column], 0, 1), _step(_RETURN, _ENOSYS)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


def _unless(number: int, tests: list[bytes]) -> list[bytes]:
    """Refuse call `number` unless the tests on its first argument jump over the refusal that follows them."""
    body = [_step(_LOAD, _FIRST_ARGUMENT_AT), *tests, _step(_RETURN, _EPERM), _step(_RETURN, _ALLOW)]
    return [_step(_IF_EQUAL, number, 0, len(body)), *body]


def _if(number: int, place: int, values: tuple[int, ...], *, refuse: bool) -> list[bytes]:
    """Refuse call `number` if its argument is one of the values, or only then allow it."""
    matched, other = (_EPERM, _ALLOW) if refuse else (_ALLOW, _EPERM)
    tests = [_step(_IF_EQUAL, value, len(values) - index, 0) for index, value in enumerate(values)]
    body = [_step(_LOAD, place), *tests, _step(_RETURN, other), _step(_RETURN, matched)]
    return [_step(_IF_EQUAL, number, 0, len(body)), *body]
