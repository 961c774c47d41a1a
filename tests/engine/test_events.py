"""The run's folder: what is kept when a process or a disk fails, and who may write to it."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eoh_esopt.engine.events import EVENTS, check_new, claim, open_log, read_events, write_atomically
from operators.errors import UserError

HOLD = """
import sys, time
from pathlib import Path
from eoh_esopt.engine.events import claim, open_log
with claim(Path(sys.argv[1]), new=True), open_log(Path(sys.argv[1])) as log:
    log.append("start")
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder whose log has three events."""
    with claim(tmp_path / "run", new=True), open_log(tmp_path / "run") as log:
        for number in range(3):
            log.append("step", number=number, text="naïve\n\u2028 \ud800", value=0.1 + 0.2)
    return tmp_path / "run"


def numbers(folder: Path) -> list[int]:
    return [event["number"] for event in read_events(folder)]


def failing(code: int) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise OSError(code, os.strerror(code))

    return fail


def test_events_come_back_as_they_were(run: Path) -> None:
    """Else a resumed run reads other numbers or texts than it wrote."""
    assert numbers(run) == [0, 1, 2]
    assert read_events(run)[0] == {
        "event": "step",
        "number": 0,
        "text": "naïve\n\u2028 \ud800",
        "value": 0.1 + 0.2,
    }


@pytest.mark.parametrize("torn", ['{"event": "st', "{", '{"event": "step", "number": 9}'])
def test_a_torn_last_line_is_dropped_and_written_over(run: Path, torn: str) -> None:
    """Else a kill in the middle of a line makes the run useless, or the next event is glued to the torn one."""
    with (run / EVENTS).open("a") as stream:
        stream.write(torn)
    assert numbers(run) == [0, 1, 2]
    with claim(run, new=False), open_log(run) as log:
        log.append("step", number=3)
    assert numbers(run) == [0, 1, 2, 3]


@pytest.mark.parametrize("damage", ["{torn\n", "\n", "[]\n", "3\n", '{"number": 1}\n'])
def test_a_damaged_line_in_the_middle_is_refused_with_its_place(run: Path, damage: str) -> None:
    """Else the search goes on as if an event had not been, and ends in other weights."""
    lines = (run / EVENTS).read_text().splitlines(keepends=True)
    (run / EVENTS).write_text("".join([lines[0], damage, lines[2]]))
    with pytest.raises(UserError, match=r"events\.jsonl, line 2, is damaged.*Restore"):
        read_events(run)
    with pytest.raises(UserError, match="line 2"), claim(run, new=False):
        pass


def test_a_log_that_is_no_text_is_refused(run: Path) -> None:
    """Else a file damaged on disk ends in a traceback."""
    (run / EVENTS).write_bytes(b"\xff\xfe\n{}\n")
    with pytest.raises(UserError, match="line 1"):
        read_events(run)


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    """Else two runs mix their events in one log; or a kill leaves a folder locked for ever."""
    folder = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(UserError, match="is in use by another run"), claim(folder, new=False):
                pass
            with pytest.raises(UserError, match="holds a run already"), claim(folder, new=True):
                pass
        finally:
            holder.kill()
    with claim(folder, new=False):
        assert read_events(folder) == [{"event": "start"}]


def test_a_folder_that_was_taken_in_between_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a run that ended just now is written over by one that had looked a moment earlier."""
    flock = fcntl.flock

    def slow(*arguments: int) -> None:
        flock(*arguments)
        (tmp_path / EVENTS).write_text('{"event": "start"}\n')

    monkeypatch.setattr(fcntl, "flock", slow)
    with pytest.raises(UserError, match="holds a run already"), claim(tmp_path, new=True):
        pass


def test_a_folder_with_a_run_is_not_begun_again(run: Path) -> None:
    """Else a typing error in --out destroys a finished run."""
    with pytest.raises(UserError, match=f"--resume {run}"), claim(run, new=True):
        pass


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    """Else a typing error in --resume begins an empty run there."""
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(UserError, match="holds no run"), claim(folder, new=False):
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file/run", "x" * 300, "file"])
def test_a_folder_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    """Else --out under a file, or with too long a name, ends in a traceback."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match=r"Cannot use .* for a run: .*[Cc]hoose another"),
        claim(tmp_path / name, new=True),
    ):
        pass


def test_a_read_only_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a run on a read-only disk ends in a traceback."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match=r"written to\. Choose another --out"):
        check_new(tmp_path / "a" / "b")
    monkeypatch.undo()
    monkeypatch.setattr(Path, "open", failing(errno.EROFS))
    with pytest.raises(UserError, match=r"Read-only.*another --out"), claim(tmp_path, new=True):
        pass
    with pytest.raises(UserError, match=r"Cannot open .*Read-only"), open_log(tmp_path):
        pass


def test_a_full_disk_ends_the_run_with_what_to_do(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the message is lost in a second failure when the log is closed, and the user sees a traceback."""
    (run / EVENTS).unlink()
    (run / EVENTS).symlink_to("/dev/full")
    monkeypatch.setattr(Path, "read_bytes", lambda _: b"")  # endless on this device
    monkeypatch.setattr(os, "truncate", lambda *_: None)  # a device has no length
    with pytest.raises(UserError, match=f"No space left.*Make room.*--resume {run}"), open_log(run) as log:
        log.append("step", number=3)


def test_a_disk_that_fails_to_keep_an_event_ends_the_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the search goes on although its log is not on disk."""
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(UserError, match="Input/output error"), open_log(run) as log:
        log.append("step", number=3)
    monkeypatch.undo()
    assert numbers(run)[:3] == [0, 1, 2]


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """Else a full disk turns a good history into half a one, or leaves rubbish beside it."""
    path = tmp_path / "history.json"
    write_atomically(path, "old")
    monkeypatch.setattr(os if broken == "fsync" else Path, broken, failing(errno.ENOSPC))
    with pytest.raises(UserError, match=f"Cannot write {path}: No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_are_written_as_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    """Else an idea with an accent ends a run on a machine with another locale."""
    code = "import sys; from pathlib import Path; from eoh_esopt.engine.events import write_atomically as w; "
    code += "w(Path(sys.argv[1]), '\\u00e9\\u4e2d')"
    locale = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "file")], env=locale, check=True)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "é中"
