"""Commands that attack: each is held, and the same episode, and others beside it, still have their tool afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tool_cases import MEBI, SMALL, run, sandbox

from train_adapters.tools import Box, Mount, ToolEnd, ToolLimits, ToolResult

ROOT = Path(__file__).parents[2]


def python(program: str) -> str:
    """A command that runs the program."""
    return f"python3 - <<'END'\n{textwrap.dedent(program)}\nEND"


NOTHING_LEFT = "ls /proc | grep -cE '^[0-9]+$'"
"""Shows 5 where the command is alone: the warden, the shell, ls, grep, and the subshell that a pipe may need."""


def attacked(command: str, *, still_there: bool = True, limits: ToolLimits = SMALL) -> ToolResult:
    """Run the attack while another episode works, and check that both have their tool afterwards.

    Args:
        command: the attack.
        still_there: whether the attacked episode's files must survive.
        limits: of its tools.
    """

    async def play() -> ToolResult:
        tools = sandbox(limits)
        attacker, neighbour = tools.open(), tools.open()
        try:
            for box in (attacker, neighbour):
                assert (await box.run("echo mine > kept")).exit_code == 0
            result, beside = await asyncio.gather(attacker.run(command), neighbour.run("sleep 0.3; cat kept"))
            assert beside.text == "mine"
            await _check_usable(attacker, "mine" if still_there else "")
            await _check_usable(neighbour, "mine")
            return result
        finally:
            await asyncio.gather(attacker.close(), neighbour.close())

    return asyncio.run(play())


async def _check_usable(box: Box, kept: str) -> None:
    after = await box.run(f"cat kept 2>/dev/null; echo; echo $((6 * 7)); {NOTHING_LEFT}")
    lines = after.text.split()
    assert lines[:-2] == kept.split()
    assert lines[-2] == "42"
    assert int(lines[-1]) <= 5, "nothing of earlier calls is left"


def test_a_fork_bomb_ends_quickly() -> None:
    """Else one reply of the model stops the machine, and the training with it."""
    assert attacked(":(){ :|:& };:; sleep 100").end is ToolEnd.PROCESSES


def test_processes_are_limited_by_the_kernel() -> None:
    """Else a fork bomb has the time between two looks of the watchman to fill the machine."""
    [result] = run(
        python("""
            import os, time
            for _ in range(3000):
                if os.fork() == 0:
                    time.sleep(60)
                os.write(1, b"#")
        """)
    )
    assert SMALL.processes // 2 < result.text.count("#") < 2 * SMALL.processes


def test_endless_output_ends_and_is_cut() -> None:
    """Else the trainer's memory fills, or the model's context."""
    result = attacked("yes")
    assert result.end is ToolEnd.OUTPUT
    assert len(result.text) < SMALL.output_chars + 200
    assert result.text.startswith("y\ny\n")
    assert "left out" in result.text


def test_one_huge_line_is_cut_at_both_ends() -> None:
    """Else a reader that waits for a line's end never gets on, or the end that matters is lost."""
    result = attacked("printf first; head -c 3000000 /dev/zero | tr '\\0' x; printf last; echo oops >&2")
    assert result.end is ToolEnd.EXITED
    assert result.text.startswith("firstxxx")
    assert "xxxlast\n[stderr]\noops" in result.text
    assert len(result.text) < SMALL.output_chars + 200


def test_binary_output_is_text_in_the_end() -> None:
    """Else one byte that is no UTF-8, or a control character, breaks the log or the terminal."""
    result = attacked("head -c 5000 /dev/urandom; printf '\\033[2J\\000\\377 end'")
    assert result.text.endswith("end")
    assert not set(map(ord, result.text)) & ({*range(32)} - {9, 10})


@pytest.mark.parametrize(
    "command", ["sleep 300 & echo on", "(setsid nohup sleep 300 >/dev/null 2>&1 &) ; echo on", "sleep 300 & disown"]
)
def test_what_runs_in_the_background_ends_with_the_call(command: str) -> None:
    """Else an agent piles up processes, or computes between its turns."""
    assert attacked(command).end is ToolEnd.EXITED


def test_a_command_that_takes_too_long_ends() -> None:
    """Else one endless loop holds its episode up for ever."""
    result = attacked("trap '' TERM INT HUP; echo begun; while :; do sleep 1; done", limits=replace(SMALL, wall_s=2.0))
    assert result.end is ToolEnd.TIMEOUT
    assert "begun" in result.text
    assert "[ended after 2 s]" in result.text


def test_killing_everything_kills_nothing_else() -> None:
    """Else a command ends the trainer, or what runs the next command."""
    attacked("kill -9 -1; kill -STOP -1; kill -9 1; kill -STOP 1; kill -INT 1; echo on")
    attacked("pkill -9 python3; pkill -STOP -x python3; killall -9 bwrap; echo on")


def test_a_memory_bomb_ends() -> None:
    """Else the machine swaps, or its killer takes the trainer."""
    result = attacked(python("x = []\nwhile True:\n    x.append(bytearray(10_000_000))"))
    assert "MemoryError" in result.text or result.end is ToolEnd.MEMORY


def test_memory_of_many_processes_counts_together() -> None:
    """Else twenty processes take twenty times the limit."""
    result = attacked(
        python("""
            import os, time
            for _ in range(6):
                if os.fork() == 0:
                    x = bytearray(os.urandom(1)) * 200_000_000
                    time.sleep(60)
            time.sleep(60)
        """)
    )
    assert result.end is ToolEnd.MEMORY


@pytest.mark.parametrize(
    "memory",
    [
        "os.memfd_create('x')",
        "__import__('ctypes').CDLL(None, use_errno=True).shmget(0, 1 << 30, 0o1600) >= 0 or 1 / 0",
    ],
)
def test_memory_that_nobody_counts_cannot_be_had(memory: str) -> None:
    """Else the limit of memory is a word: what such calls give outlives processes and is no process's."""
    [result] = run(python(f"import os\n{memory}\nprint('had it')"))
    assert "had it" not in result.text
    assert result.exit_code == 1


@pytest.mark.parametrize("folder", ["/workspace", "/tmp", "/dev/shm"])
def test_a_full_folder_is_the_agents_own(folder: str) -> None:
    """Else the machine's disk, or its memory, is filled."""
    fill = f"for i in $(seq 20); do head -c 2000000 /dev/zero > {folder}/big$i; done; du -xsm {folder} | cut -f1"
    [full, freed] = run(fill, f"rm {folder}/big*; echo fine > {folder}/new && cat {folder}/new")
    assert "No space left on device" in full.text
    size = next(line for line in full.text.splitlines() if line.isdigit())
    assert int(size) <= SMALL.folder_bytes // MEBI + 1
    assert freed.text == "fine"


def test_too_many_files_end_with_an_empty_folder() -> None:
    """Else millions of empty files fill the kernel's memory, or each later call ends at once."""
    result = attacked(python("n = 0\nwhile True:\n    open(f'f{n}', 'w')\n    n += 1"), still_there=False)
    assert result.end is ToolEnd.FILES


@pytest.mark.parametrize(
    "place", ["/", "/usr/bin", "/etc", "/bin", "/lib", "/proc/sys/kernel", "/dev", "/run", sys.prefix, sys.base_prefix]
)
def test_the_system_cannot_be_written_to(place: str) -> None:
    """Else an agent changes the machine, or the Python that trains it."""
    [result] = run(f"touch {place}/new && echo written; echo x > {place}/new2 && echo written; ls {place} | wc -l")
    assert "written" not in result.text


def test_parameters_of_the_machine_cannot_be_set() -> None:
    """Else a command that looks like nobody sets what the host runs as root when a program crashes."""
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    [result] = run("echo '|/bin/false' > /proc/sys/kernel/core_pattern && echo set; echo b > /proc/sysrq-trigger")
    assert "set" not in result.text.splitlines()
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


def test_commands_hold_no_privileges() -> None:
    """Else whatever root may do to a machine is one system call away, as where the trainer runs in a container."""
    [result] = run("grep -E '^(Uid|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status; su -c id; ls /bin/su")
    held = dict(line.split(":", 1) for line in result.text.splitlines() if ":\t" in line)
    assert "0" not in held["Uid"].split()
    assert [int(held[name], 16) for name in ("CapPrm", "CapEff", "CapAmb")] == [0, 0, 0]
    assert (held["NoNewPrivs"].strip(), held["Seccomp"].strip()) == ("1", "2")
    assert "uid=0" not in result.text


@pytest.mark.parametrize(
    "command", ["unshare -rm true", "unshare -m true", "unshare -n true", "bwrap --dev-bind / / true"]
)
def test_no_more_namespaces(command: str) -> None:
    """Else a command is root in one of its own, and mounts a folder there that nothing limits."""
    [result] = run(f"{command} && echo entered")
    assert "entered" not in result.text


@pytest.mark.parametrize("how", ["abs", "link", "up", "proc"])
def test_the_hosts_files_cannot_be_read(tmp_path: Path, how: str) -> None:
    """Else the agent reads the answers, by their path, through a link, or through another process's eyes."""
    secret = tmp_path / "answers.jsonl"
    secret.write_text("the answer is swordfish")
    tmp_path.chmod(0o755)
    command = {
        "abs": f"cat {secret}",
        "link": f"ln -s {secret} here; ln -s / root; cat here root{secret}",
        "up": f"cat ../..{secret} ../../../../../..{secret}",
        "proc": f"cat /proc/*/root{secret} /proc/1/cwd/../..{secret}; ls -l /proc/1/fd /proc/1/root/",
    }[how]
    [result] = run(command)
    assert "swordfish" not in result.text
    assert result.exit_code != 0


def test_the_projects_own_data_cannot_be_read() -> None:
    """Else the agent finds the shipped data sets in the installed package, with their answers."""
    [result] = run(f"cat {ROOT}/pyproject.toml; ls {ROOT}/train_adapters {ROOT}/problems; python3 -c 'import problems'")
    assert "[project]" not in result.text
    assert "ModuleNotFoundError" in result.text


def test_hidden_folders_are_not_seen_even_where_their_surroundings_are(tmp_path: Path) -> None:
    """Else data that a user keeps beside Python's packages is open to the agent."""
    folder = Path(sys.prefix) / f"answers-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / "secret").write_text("swordfish")
        [seen] = run(f"cat {folder}/secret")
        [hidden] = run(f"ls {folder}; cat {folder}/secret; cat {folder}.txt", tools=sandbox(hidden=[folder]))
        [file] = run(f"cat {folder}/secret; echo end", tools=sandbox(hidden=[folder / "secret"]))
    finally:
        (folder / "secret").unlink()
        folder.rmdir()
    assert seen.text == "swordfish", "else this test shows nothing"
    assert "swordfish" not in hidden.text
    assert file.text.startswith("end")
    assert "swordfish" not in file.text


def test_the_environment_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else keys of services reach the model, and from there its replies in the log."""
    monkeypatch.setenv("OPENAI_API_KEY", "swordfish")
    [result] = run("env; set; cat /proc/*/environ | tr '\\0' '\\n'")
    assert "swordfish" not in result.text
    assert "OPENAI" not in result.text


def test_there_is_no_network() -> None:
    """Else an agent looks answers up, or reaches services of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
        [result] = run(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached", tools=sandbox())
    assert "reached" not in result.text
    assert result.exit_code != 0


def test_processes_of_the_host_are_neither_seen_nor_touched() -> None:
    """Else an agent reads the trainer's memory, or ends it."""
    mine = os.getpid()
    [seen, traced] = run(
        f"ls /proc | grep -E '^[0-9]+$' | wc -l; kill -0 {mine + 100000} {mine} 2>&1; ps -e | grep -c pytest",
        python("""
            import ctypes
            print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))
            for name in ("mem", "environ", "maps", "fd/1"):
                try:
                    open(f"/proc/1/{name}", "r+b" if name == "mem" else "rb").read(1)
                    print("opened", name)
                except OSError:
                    print("refused", name)
        """),
    )
    assert int(seen.text.split()[0]) <= 6
    assert traced.text.split("\n") == ["-1", "refused mem", "refused environ", "refused maps", "refused fd/1"]


def test_a_mounted_file_can_be_read_and_not_changed(tmp_path: Path) -> None:
    """Else one episode spoils the document of the next, or cannot read it at all."""
    page = tmp_path / "page.png"
    page.write_text("a page")
    page.chmod(0o600)
    tmp_path.chmod(0o700)
    commands = ["cat document.png", "echo x > document.png; rm -f document.png; mv document.png y; cat document.png"]
    read, changed = run(*commands, mounts=[Mount(page, "document.png")])
    assert (read.text, read.exit_code) == ("a page", 0)
    assert changed.text.startswith("a page")
    assert page.read_text() == "a page"


def test_files_survive_within_an_episode_and_not_beyond_it() -> None:
    """Else an agent cannot build on its work, or finds that of another episode."""
    tools = sandbox()
    first = run("echo 1 > a; echo 2 > /tmp/b; chmod 0 a", "chmod 600 a; cat a /tmp/b", tools=tools)
    [second] = run("find /workspace /tmp /dev/shm -xdev -type f", tools=tools)
    assert first[1].text == "1\n2"
    assert second.text == "[no output]"


def test_nothing_of_a_closed_tool_is_left() -> None:
    """Else a long training leaves a process, a folder or a pipe behind for each of its episodes."""

    async def play() -> int:
        tools = sandbox()
        box = tools.open()
        await box.run("true")
        assert box._warden is not None
        pid = box._warden.pid
        descriptors = len(os.listdir("/proc/self/fd"))
        await box.close()
        await box.close()
        assert len(os.listdir("/proc/self/fd")) < descriptors
        return pid

    pid = asyncio.run(play())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_killing_the_trainer_ends_its_tools() -> None:
    """Else each kill leaves commands that run on, beside those of the resumed training."""
    sandbox()
    program = (
        "import asyncio\nfrom tool_cases import SMALL\nfrom dataclasses import replace\n"
        "from train_adapters.tools import make_sandbox\n"
        "async def main():\n"
        "    box = make_sandbox(replace(SMALL, wall_s=300)).open()\n"
        "    await box.run('true')\n"
        "    print(box._warden.pid, flush=True)\n"
        "    await box.run('sleep 987')\n"
        "asyncio.run(main())"
    )
    paths = os.pathsep.join(map(str, (ROOT, Path(__file__).parent)))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}, text=True
    ) as trainer:
        assert trainer.stdout is not None
        warden = int(trainer.stdout.readline())
        time.sleep(0.2)
        assert any(_is_descendant(pid, warden) for pid in _processes("sleep\0987"))
        trainer.send_signal(signal.SIGKILL)
    give_up = time.monotonic() + 10
    while _processes("sleep\0987") and time.monotonic() < give_up:
        time.sleep(0.02)
    assert not _processes("sleep\0987")


def _processes(command: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if command in (folder / "cmdline").read_text(errors="replace"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def _is_descendant(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid == ancestor
