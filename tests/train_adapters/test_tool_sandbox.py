"""Where tools run: refusals, the walls of a user that is not root, and the way without any."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_cases import SMALL, run, sandbox

from operators.errors import UserError
from train_adapters.tools import Mount, Sandbox, ToolEnd, ToolFailed, make_sandbox, walls
from train_adapters.tools import sandbox as sandbox_module
from train_adapters.tools.bare import make_folder
from train_adapters.tools.report import shown
from train_adapters.tools.warden import Kept

ROOT = Path(__file__).parents[2]


@pytest.fixture
def fresh_check() -> Iterator[None]:
    """Bubblewrap is looked for anew."""
    sandbox_module.working_bwrap.cache_clear()
    yield
    sandbox_module.working_bwrap.cache_clear()


@pytest.mark.usefixtures("fresh_check")
def test_without_bubblewrap_tools_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what the model writes runs bare on the user's machine, and nobody is told."""
    monkeypatch.setattr(walls, "find_bwrap", lambda: None)
    with pytest.raises(UserError, match=r"no bubblewrap.*apt install bubblewrap.*--unsafe-tools"):
        make_sandbox()


@pytest.mark.usefixtures("fresh_check")
@pytest.mark.parametrize(
    "program", ["#!/bin/sh\necho 'No permission to make namespaces' >&2; exit 1\n", "#!/bin/sh\nexec sleep 0\n", "?"]
)
def test_a_bubblewrap_that_does_not_work_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Else a container that forbids namespaces shows itself only when the first episode fails, or runs tools bare."""
    (tmp_path / "bwrap").write_text(program)
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setattr(walls, "find_bwrap", lambda: str(tmp_path / "bwrap"))
    with pytest.raises(UserError, match=r"does not work here: .+apt install bubblewrap"):
        make_sandbox()


@pytest.mark.parametrize(
    ("name", "value"), [("wall_s", 0), ("wall_s", float("nan")), ("memory_bytes", 1), ("processes", 1), ("files", 0)]
)
def test_limits_that_nothing_fits_in_are_refused(name: str, value: float) -> None:
    """Else every command fails, and the agent is punished for a slip of the user's."""
    with pytest.raises(UserError, match=name):
        replace(SMALL, **{name: value})


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc/passwd", "a\0b"])
def test_files_are_mounted_in_the_working_folder_only(name: str) -> None:
    """Else a row of a data set puts a file over a program of the system's."""
    with pytest.raises(UserError, match="no file name"):
        Mount(Path("/etc/hostname"), name)


def test_a_file_that_is_missing_is_no_fault_of_the_agents(tmp_path: Path) -> None:
    """Else an episode without its document is scored as the agent's failure."""
    with pytest.raises(ToolFailed, match="No such file"):
        run("ls", mounts=[Mount(tmp_path / "gone.png", "page.png")])


def test_a_call_does_not_wait_for_those_of_others() -> None:
    """Else the tools of an episode wait for those of all others."""

    async def play() -> str:
        slow, quick = sandbox().open(), sandbox().open()
        try:
            long = asyncio.create_task(slow.run("sleep 2; echo slow"))
            short = asyncio.create_task(quick.run("echo quick"))
            [first], _ = await asyncio.wait([long, short], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.gather(long, short)
            return first.result().text
        finally:
            await asyncio.gather(slow.close(), quick.close())

    assert asyncio.run(play()) == "quick"


def test_a_tool_that_was_killed_from_outside_begins_anew() -> None:
    """Else an episode ends because the machine ran out of memory for a moment."""

    async def play() -> tuple[ToolEnd, str, str]:
        box = sandbox().open()
        try:
            await box.run("echo 1 > a")
            assert box._warden is not None
            asyncio.get_running_loop().call_later(0.3, box._warden.kill)
            killed = await box.run("sleep 60")
            return killed.end, killed.text, (await box.run("ls; echo on")).text
        finally:
            await box.close()

    end, text, after = asyncio.run(play())
    assert end is ToolEnd.BROKEN
    assert "folder is empty again" in text
    assert after == "on"


def test_a_command_of_any_length_and_kind_is_taken() -> None:
    """Else a reply of 100 kB, or with a character that no file may hold, ends the training."""
    long, null, odd, empty = run("echo " + "x" * 200_000, "echo a\0b", "echo \ud800 é", " ")
    assert "longer than" in long.text
    assert null.text == "ab"
    assert odd.end is ToolEnd.EXITED
    assert empty.text == "[no output]"


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as a plain user already")
def test_the_walls_of_a_plain_user_hold_too(tmp_path: Path) -> None:
    """Else the sandbox works for root, as in containers, and not on a user's own machine."""
    sandbox()
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        pytest.skip("there is no Python that every user may run")
    for name in ("train_adapters", "eoh_esopt", "operators"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    secret = tmp_path / "answers"
    secret.write_text("swordfish")
    done = subprocess.run(
        [python, "-s", "-c", PLAIN, str(secret)],
        env={"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"], "SECRET": "swordfish"},
        cwd=tmp_path,
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "swordfish" not in said
    assert "entered" not in said
    assert "Resource temporarily unavailable" in said or "[ended: more than 24 processes]" in said
    assert said.rstrip().endswith("kept\n42")


PLAIN = r"""
import asyncio, sys
from train_adapters.tools import ToolLimits, make_sandbox
SMALL = ToolLimits(wall_s=10.0, memory_bytes=512 * 2**20, folder_bytes=8 * 2**20, files=500, processes=24)
async def main():
    box = make_sandbox(SMALL).open()
    for command in (
        "echo kept > a; id -u; env",
        f"cat {sys.argv[1]}; ls -l /proc/1/fd; cat /proc/1/environ",
        ":(){ :|:& };:; sleep 100",
        "for i in $(seq 100); do sleep 9 & done; wait",
        "kill -9 -1; kill -9 1",
        "unshare -rm true && echo entered; touch /new && echo entered; touch /dev/new && echo entered",
        "cat a; echo $((6 * 7))",
    ):
        print((await box.run(command)).text)
    await box.close()
asyncio.run(main())
"""


def bare() -> Sandbox:
    return make_sandbox(replace(SMALL, wall_s=2.0), unsafe=True)


def test_without_walls_it_is_said_loudly() -> None:
    """Else a user does not know what runs with the keys and files of that user."""
    [note] = bare().notes
    assert note.startswith("UNSAFE TOOLS")
    assert not sandbox().notes


def test_without_walls_tools_work_and_clean_up(tmp_path: Path) -> None:
    """Else users without namespaces cannot try an adapter at all, or are left with processes and folders."""
    (tmp_path / "page").write_text("a page")
    before = set(Path(tempfile.gettempdir()).glob("eoh-esopt-tool-*"))
    commands = ["cat page; echo 1 > a", "cat a; sleep 300 & echo $!", "sleep 301"]
    read, kept, late = run(*commands, tools=bare(), mounts=[Mount(tmp_path / "page", "page")])
    assert read.text == "a page"
    one, pid = kept.text.split()
    assert one == "1"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    assert late.end is ToolEnd.TIMEOUT
    assert set(Path(tempfile.gettempdir()).glob("eoh-esopt-tool-*")) == before
    assert (tmp_path / "page").read_text() == "a page"


def test_without_walls_the_environment_is_empty_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else keys reach the model although nothing needs them."""
    monkeypatch.setenv("OPENAI_API_KEY", "swordfish")
    [result] = run("env", tools=bare())
    assert "swordfish" not in result.text


def test_folders_of_killed_trainers_are_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each kill leaves its folders for good, or a start removes those of another training that still runs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    stale = tmp_path / f"eoh-esopt-tool-{int(ended.stdout)}-abc"
    stale.mkdir()
    (stale / "file").touch()
    mine, other = make_folder([]), tmp_path / "eoh-esopt-tool-notes"
    other.mkdir()
    bare()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, other.name])


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(2, 40))
def test_a_stream_is_cut_to_its_size(chunks: list[bytes], most: int) -> None:
    """Else output is shown twice or lost, or is longer than the context has room for."""
    kept = Kept(4 * most)
    for chunk in chunks:
        kept.add(chunk)
    whole = b"".join(chunks)
    assert kept.total == len(whole)
    text = shown(kept.as_dict(), most)
    if "bytes left out" in text:
        assert len(text) <= most + 50
        assert len(whole.decode(errors="replace")) > most
    else:
        assert len(text) == len(whole.decode(errors="replace")) <= most
