"""Runs the commands of one episode, each with its limits, and ends all that a command leaves running.

A program of its own, of the standard library only: it is the first process inside the walls, where nothing else of the
package can be seen. Requests and reports are lines of JSON. Arguments: the rules, see `tools.box`.

As the first process of its namespace it cannot be killed from inside, inherits every orphan, and can end all others at
once. Without walls (its process id is another then) it does the same for its descendants.
"""

import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from typing import Any

Rules = dict[str, Any]

_TICK_S = 0.05
_CHUNK = 1 << 16
_END_S = 5.0
_MORE_PROCESSES = 8  # so that who runs into the kernel's limit is seen to be over ours
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36


class Kept:
    """The beginning and the end of a stream, whatever its length.

    Args:
        most: bytes kept of each.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        space = self._most - len(self._head)
        self._head += chunk[:space]
        self._tail += chunk[space:]
        del self._tail[: -self._most]

    def as_dict(self) -> dict[str, object]:
        head, tail = bytes(self._head), bytes(self._tail)
        if self.total <= len(head) + len(tail):
            head, tail = head + tail, b""
        return {"total": self.total, "head": head.decode(errors="replace"), "tail": tail.decode(errors="replace")}


class Call:
    """One command on its way.

    Args:
        command: for bash.
        rules: what `tools.box` says.
    """

    def __init__(self, command: str, rules: Rules) -> None:
        self._rules = rules
        self._status: int | None = None
        self._process = subprocess.Popen(
            [rules["shell"], "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=rules["folder"],
            env=rules["environment"],
            start_new_session=True,
            preexec_fn=lambda: _confine(rules),
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._pipes = {"stdout": self._process.stdout, "stderr": self._process.stderr}

    def see_to_its_end(self) -> dict[str, object]:
        """Wait until the command is over or breaks a limit, and end all that it left running."""
        kept = {"stdout": Kept(self._rules["kept_bytes"]), "stderr": Kept(self._rules["kept_bytes"])}
        with selectors.DefaultSelector() as selector:
            for name, stream in self._pipes.items():
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, kept[name])
            end = self._watch(selector, kept)
            gone = self._sweep()
            while selector.get_map() and self._read(selector, 0, most=1):
                pass
        for stream in self._pipes.values():
            stream.close()
        self._process.returncode = self._status  # collected here, not by subprocess
        return {"end": end, "status": self._status, "gone": gone, **{name: one.as_dict() for name, one in kept.items()}}

    def _watch(self, selector: selectors.BaseSelector, kept: dict[str, Kept]) -> str:
        deadline = time.monotonic() + self._rules["wall_s"]
        looked = 0.0
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "timeout"
            self._reap()
            if self._status is not None:
                return "exited"
            if sum(one.total for one in kept.values()) > self._rules["flood_bytes"]:
                return "output"
            if now - looked >= _TICK_S:
                looked = now
                if broken := self._broken():
                    return broken
            if selector.get_map():
                self._read(selector, min(_TICK_S, deadline - now))
            else:
                time.sleep(0.002)

    def _read(self, selector: selectors.BaseSelector, timeout: float, most: int = 64) -> bool:
        """Read what is there.

        Returns:
            Whether there was anything.
        """
        found = False
        for key, _ in selector.select(timeout):
            for _ in range(most):
                try:
                    chunk = os.read(key.fd, _CHUNK)
                except BlockingIOError:
                    break
                if not chunk:
                    selector.unregister(key.fileobj)
                    break
                found = True
                key.data.add(chunk)
        return found

    def _broken(self) -> str:
        """The limit that is broken now; empty when none is."""
        family = relatives()
        if len(family) > self._rules["processes"]:
            return "processes"
        if sum(map(_memory, family)) > self._rules["memory_bytes"]:
            return "memory"
        if any(_files(folder) > self._rules["files"] for folder in self._rules["watched"]):
            return "files"
        return ""

    def _reap(self) -> bool:
        """Collect those that have ended.

        Returns:
            Whether any are left.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._process.pid:
                self._status = os.waitstatus_to_exitcode(status)

    def _sweep(self) -> bool:
        """End the command and all that it started.

        Returns:
            Whether they are gone.
        """
        give_up = time.monotonic() + _END_S
        while time.monotonic() < give_up:
            _kill_all()
            if not self._reap():
                return True
            time.sleep(0.001)
        return False


def relatives() -> list[int]:
    """Processes of the command: all others here, or the descendants where others than ours are here too."""
    parents = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    parents[int(entry)] = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
    me = os.getpid()
    if me == 1:
        return [pid for pid in parents if pid != 1]
    found: set[int] = set()
    new = {me}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return sorted(found)


def _kill_all() -> None:
    if os.getpid() == 1:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
    else:
        for pid in relatives():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _memory(pid: int) -> int:
    """Bytes in memory that are not files; pages shared by a fork count for each."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except OSError:
        return 0
    return (resident - shared) * _PAGE


def _files(folder: str) -> int:
    state = os.statvfs(folder)
    return state.f_files - state.f_ffree


def _confine(rules: Rules) -> None:
    """Put the limits on the process that becomes the shell."""
    caps = {
        resource.RLIMIT_AS: rules["memory_bytes"],
        resource.RLIMIT_FSIZE: rules["folder_bytes"],
        resource.RLIMIT_CPU: int(rules["wall_s"]) + 1,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if rules["counted"]:  # elsewhere the user's other processes would count too
        caps[resource.RLIMIT_NPROC] = rules["processes"] + _MORE_PROCESSES
    for kind, cap in caps.items():
        _, hard = resource.getrlimit(kind)
        cap = cap if hard == resource.RLIM_INFINITY else min(cap, hard)
        resource.setrlimit(kind, (cap, cap))
    user = rules["user"]
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def _protect() -> None:
    """Keep commands out of this process's memory and descriptors, and let it inherit their orphans."""
    if sys.platform == "linux":
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # where the machine's memory runs out, this goes before the trainer
        prctl = ctypes.CDLL(None).prctl
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main(rules: Rules) -> None:
    _protect()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        try:
            report = Call(json.loads(line)["command"], rules).see_to_its_end()
        except (OSError, subprocess.SubprocessError) as error:
            report = {"end": "broken", "why": str(error)}
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
