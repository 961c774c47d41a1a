"""`eoh-esopt serve` and `--backend served`, as far as they go without vLLM: messages, keys, and what a kill leaves."""

from __future__ import annotations

import importlib.util
import os
import signal
import stat
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eoh_esopt.engine.config import MOVABLE, RunConfig
from eoh_esopt.models.vllm import server
from eoh_esopt.models.vllm.server import ServeOptions
from eoh_esopt.models.vllm.wire import API_KEY, client_key, key_file
from operators.errors import UserError

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EOH_ESOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(API_KEY, raising=False)


def test_the_help_shows_how_to_begin(call: Call) -> None:
    """Else nobody finds out that vLLM's own options go behind the dashes."""
    code, out, err = call("serve", "--help")
    assert (code, err) == (0, "")
    assert "-- --gpu-memory-utilization 0.8" in out


@pytest.mark.parametrize("found", [None, SimpleNamespace(origin=None)])
def test_without_vllm_the_remedy_is_named(call: Call, monkeypatch: pytest.MonkeyPatch, found: object) -> None:
    """The user would get a traceback, after the download of a model."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    code, _, err = call("serve", "--model", "no-such-model")
    assert code == 2
    assert err == "Error: vLLM is not installed. Install it: pip install 'eoh-esopt[vllm]'.\n"


@pytest.mark.parametrize("wrong", ["--port 0", "--port 70000", "--tensor-parallel 0", "--prt 1", ""])
def test_options_that_make_no_sense_are_refused(call: Call, wrong: str) -> None:
    """The server would fail after a minute, or listen elsewhere."""
    code, _, err = call("serve", *(["--model", "m"] if wrong else []), *wrong.split())
    assert code == 2
    assert "Error" in err


def test_a_key_is_made_for_this_user_alone_and_goes_with_the_server() -> None:
    """Other users of the machine could read it, or a client would use the key of a server that is gone."""
    said: list[str] = []
    options = ServeOptions("m", port=8123)
    file = key_file(8123)
    file.parent.mkdir(parents=True)
    file.write_text("of a killed server")
    file.chmod(0o644)
    with server._key(options, said.append) as key:
        assert len(key) >= 40
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert client_key("http://localhost:8123") == key == client_key("http://127.0.0.1:8123")
        assert client_key("http://10.0.0.1:8123") == client_key("http://127.0.0.1:8124") == ""
    assert not file.exists()
    assert str(file) in said[0]
    assert key not in " ".join(said)
    with server._key(options, said.append) as other:
        assert other != key


def test_a_key_of_the_environment_is_not_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to the user, who keeps it where it should be."""
    monkeypatch.setenv(API_KEY, " mine ")
    with server._key(ServeOptions("m"), lambda text: None) as key:
        assert key == "mine"
        assert not key_file(8000).exists()
    monkeypatch.setenv(API_KEY, "mine\nyours")
    with pytest.raises(UserError, match=API_KEY), server._key(ServeOptions("m"), lambda text: None):
        pass


@pytest.mark.parametrize(
    ("host", "warned"),
    [("127.0.0.1", False), ("localhost", False), ("::1", False), ("0.0.0.0", True), ("10.1.2.3", True), ("gpu7", True)],
)
def test_leaving_this_machine_is_warned_of(host: str, warned: bool) -> None:
    """The key would cross a network for everybody to read."""
    said: list[str] = []
    with server._key(ServeOptions("m", host=host), said.append):
        assert ("Warning" in said[0]) == warned


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("port", "option of `eoh-esopt serve` itself"),
        ("api_key", API_KEY),
        ("data_parallel_size", r"scripts/serve\.sh"),
        ("worker_extension_cls", "--worker-extension-cls cannot be given"),
    ],
)
def test_arguments_of_vllm_that_go_around_the_control_are_refused(name: str, message: str) -> None:
    """Weights would move in one of several engines, or the key would be another than the clients'."""
    default = Namespace(port=8000, api_key=None, data_parallel_size=1, worker_extension_cls="", seed=0)
    server._check_further(Namespace(**{**vars(default), "seed": 1}), default, ["--seed", "1"])
    with pytest.raises(UserError, match=message):
        server._check_further(Namespace(**{**vars(default), name: "x"}), default, ["--x"])


KILLED = """
import subprocess, sys, time
from eoh_esopt.models.vllm.reaper import leave_nothing_behind
before = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
leave_nothing_behind()
after = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
print(before.pid, after.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc here")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_server_leaves_no_engine_behind(how: signal.Signals) -> None:
    """Engines would keep the memory of the GPU, and the next server would not start."""
    process = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    before, after = map(int, process.stdout.readline().split())
    try:
        process.send_signal(how)
        process.wait()
        until = time.monotonic() + 10
        while _lives(after):
            assert time.monotonic() < until
            time.sleep(0.05)
        assert _lives(before), "it was there before the server and is none of its engines"
    finally:
        os.kill(before, signal.SIGKILL)


def _lives(process: int) -> bool:
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_servers_belong_to_their_backend() -> None:
    """A run would begin on this machine although the user has named servers."""
    settings: dict[str, Any] = {"problem": "tsp_construct", "model": "m"}
    config = RunConfig(**settings, backend="served", servers="localhost:8000,localhost:8001")
    assert config.servers is not None
    with pytest.raises(UserError, match=r"--backend served needs the addresses .* eoh-esopt serve --model MODEL"):
        RunConfig(**settings, backend="served")
    with pytest.raises(UserError, match="they belong to --backend served"):
        RunConfig(**settings, servers="localhost:8000")
    with pytest.raises(UserError, match="twice"):
        RunConfig(**settings, backend="served", servers="localhost:8000,localhost:8000")
    with pytest.raises(UserError, match="Restore mode 'subtract' does not exist for --backend served"):
        RunConfig(**settings, backend="served", servers="localhost:8000", restore="subtract")
    assert "servers" in MOVABLE, "servers may stand elsewhere when a run is resumed"
