"""Whole searches at an endpoint: recorded, played back without it, killed and stalled."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from fake_server import Behaviour, FakeServer, is_silent, says, writes
from test_bad_input import refused

from eoh_esopt.cli.main import main
from eoh_esopt.engine.events import BEST, CONFIG, EVENTS, SUMMARY, read_events
from eoh_esopt.models import endpoint_retries
from eoh_esopt.models.endpoint import API_KEY

Call = Callable[..., tuple[int, str, str]]
KEY = "sk-verysecret123"
PROGRAM = "from eoh_esopt.cli.main import main; main()"
ENDPOINT = ("run", "tsp_construct", "--backend", "openai", "--model", "org/small")
SEARCH = ("--method", "eoh", "--budget", "12", "--population", "3", "--directions", "2", "--workers", "2")
CALLS = 15


def clear(patch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are short, and nothing of the user's environment is used."""
    patch.setattr(endpoint_retries, "FIRST_WAIT_S", 0.005)
    for name in (API_KEY, "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        patch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    clear(monkeypatch)


class Recorded(NamedTuple):
    """A run at an endpoint that is gone now."""

    folder: Path
    cassette: Path
    asked: int


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A run that was not disturbed, with a key, and its recording."""
    root = tmp_path_factory.mktemp("endpoint")
    with FakeServer(says(writes)) as server, pytest.MonkeyPatch.context() as patch:
        options = (*SEARCH, "--base-url", f"127.0.0.1:{server.server_port}", "--cassette", root / "cassette.jsonl")
        patch.setattr(sys, "argv", ["eoh-esopt", *map(str, (*ENDPOINT, *options, "--out", root / "run"))])
        clear(patch)
        patch.setenv(API_KEY, KEY)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code is None
        assert {one.authorization for one in server.asked} == {f"Bearer {KEY}"}
        return Recorded(root / "run", root / "cassette.jsonl", len(server.asked))


def story(folder: Path) -> list[str]:
    """All that happened in a run after its start, as far as the clock and the workers do not decide it."""
    lines = []
    for event in read_events(folder):
        if event["event"] in ("batch", "end"):
            event["seconds"] = 0
            event.pop("timings", None)
        if event["event"] == "replies":  # how many come at once is no part of the story
            lines += [json.dumps(one) for one in event["candidates"]]
        elif event["event"] not in ("start", "resume"):
            lines.append(json.dumps(event))
    return sorted(lines)


def test_a_search_at_an_endpoint(recorded: Recorded) -> None:
    """Else the frozen baselines cannot be run, or their tokens are not counted."""
    summary = json.loads((recorded.folder / SUMMARY).read_text())
    ledger = summary["ledger"]
    assert (ledger["candidates"], ledger["model_calls"], ledger["updates"]) == (12, CALLS, 0)
    assert (ledger["prompt_tokens"], ledger["new_tokens"]) == (11 * CALLS, 7 * CALLS)
    assert recorded.asked == CALLS + 1
    assert 0 < ledger["valid"] < 12
    assert summary["weights_before"] == summary["weights_after"] == "endpoint:org/small"
    assert "select_next_node" in (recorded.folder / BEST).read_text()
    config = json.loads((recorded.folder / CONFIG).read_text())
    assert (config["prefill"], config["backend"]) == ("none", "openai")


def test_the_key_is_written_nowhere(recorded: Recorded) -> None:
    """Else a secret is shared with the run's folder or its recording."""
    files = [path for path in recorded.folder.parent.rglob("*") if path.is_file()]
    assert len(files) >= 6
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_the_recording_alone_gives_the_same_run(call: Call, recorded: Recorded, tmp_path: Path) -> None:
    """Else a demonstration or a test needs the endpoint, or shows another run than the one recorded."""
    code, out, err = call(*ENDPOINT, *SEARCH, "--cassette", recorded.cassette, "--out", tmp_path / "run")
    assert code == 0, err
    assert "size unknown" in out
    assert story(tmp_path / "run") == story(recorded.folder)
    assert (tmp_path / "run" / BEST).read_text() == (recorded.folder / BEST).read_text()


def test_another_run_than_the_recorded_one(call: Call, recorded: Recorded, tmp_path: Path) -> None:
    """Else replies of one seed are passed off as those of another."""
    options = ("--cassette", recorded.cassette, "--seed", "7", "--out", tmp_path / "run")
    code, _, err = call(*ENDPOINT, *SEARCH, *options)
    assert code == 2
    assert "holds no reply to request 1 of 3" in err
    assert "--base-url" in err


def after(count: int, behaviour: Behaviour) -> list[Behaviour]:
    """Answer some requests well, and then behave like this."""
    return [says(writes)] * count + [behaviour]


def test_an_endpoint_that_stalls_stops_the_run(call: Call, recorded: Recorded, tmp_path: Path) -> None:
    """Else one stalled endpoint holds a run for hours, or what was written before is lost."""
    with FakeServer(*after(8, is_silent)) as server:
        options = ("--base-url", server.url, "--request-timeout", "1", "--out", tmp_path / "run")
        began = time.monotonic()
        code, _, err = call(*ENDPOINT, *SEARCH, *options)
        assert time.monotonic() - began < 30
        assert (code, err.count("\n")) == (2, 1)
        assert f"{server.url}/v1 does not answer (asked 2 times): no reply within 1 seconds" in err
        server.script = (says(writes),)
        before = len(server.asked)
        code, out, err = call("run", "--resume", tmp_path / "run")
        assert code == 0, err
    assert "resumed" in out
    assert story(tmp_path / "run") == story(recorded.folder)
    assert len(server.asked) - before == CALLS - 6 + 1  # the start population and e1 had been written


def begin_and_kill(server: FakeServer, folder: Path, cassette: Path) -> None:
    """Begin a run, and kill it without mercy when it waits for a reply that does not come."""
    options = (*SEARCH, "--max-batch", "1", "--base-url", server.url, "--cassette", cassette, "--out", folder)
    arguments = [sys.executable, "-c", PROGRAM, *map(str, (*ENDPOINT, *options))]
    expected = len(server.script)
    with subprocess.Popen(arguments, env={**os.environ, "CI": "true"}, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while len(server.asked) < expected and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
    assert process.returncode == -9, "the run ended before it could be killed"


def test_a_killed_run_goes_on(call: Call, recorded: Recorded, tmp_path: Path) -> None:
    """Else a power cut costs replies that were paid for, or the resumed run is another one."""
    with FakeServer(*after(8, is_silent)) as server:
        begin_and_kill(server, tmp_path / "run", tmp_path / "cassette")
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        server.script = (says(writes),)
        code, _, err = call("run", "--resume", tmp_path / "run")
        assert code == 0, err
        assert len(server.asked) == 1 + CALLS + 1  # the first word, every reply, and the one that did not come
    assert story(tmp_path / "run") == story(recorded.folder)
    log = tmp_path / "copy" / EVENTS
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:3]))  # the log lost what the cassette has
    code, _, err = call("run", "--resume", tmp_path / "copy")
    assert code == 0, err
    assert story(tmp_path / "copy") == story(recorded.folder)


LOCAL = ("--base-url", "127.0.0.1:9")
REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "learning": ((*LOCAL,), "cannot be moved: use --method eoh or sample"),
    "learning by sampling": ((*LOCAL, "--method", "esopt-sample"), "cannot be moved"),
    "prefill": ((*LOCAL, "--method", "eoh", "--prefill", "signature"), "--prefill signature"),
    "no address": (("--method", "eoh"), "--base-url.*--cassette"),
    "bad address": (("--method", "eoh", "--base-url", "ftp://host"), "'ftp://host'"),
    "password": (("--method", "eoh", "--base-url", "http://a:b@host"), API_KEY),
    "another backend": ((*LOCAL, "--backend", "transformers"), "--base-url belongs to --backend openai"),
    "unknown backend": (("--backend", "tensorflow"), "'tensorflow'.*transformers, vllm, served, openai"),
    "no time": ((*LOCAL, "--method", "eoh", "--request-timeout", "0"), "request_timeout .*0"),
    "endless time": ((*LOCAL, "--method", "eoh", "--request-timeout", "inf"), "request_timeout .*inf"),
    "no cassette": (("--method", "eoh", "--cassette", "/no/cassette"), "no cassette at /no/cassette"),
    "no folder for it": ((*LOCAL, "--method", "eoh", "--cassette", "/no/cassette"), "Cannot record"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_settings_that_an_endpoint_cannot_take(
    call: Call, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    """Else a typing error begins a run that cannot work, or one that claims to learn."""
    said = refused(call, tmp_path, *ENDPOINT, *options, "--out", tmp_path / "run")
    assert re.search(message, said), said


def test_an_endpoint_that_is_not_there_leaves_nothing(call: Call, tmp_path: Path) -> None:
    """Else a server that was not started leaves a folder that is in the way of the next attempt."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    code, _, err = call(*ENDPOINT, "--method", "eoh", "--base-url", address, "--out", tmp_path / "run")
    assert code == 2
    assert err.startswith(f"Error: The endpoint http://{address}/v1 does not answer (asked 5 times)")
    assert not (tmp_path / "run").exists()


def test_a_replay_has_nothing_to_replay(call: Call, recorded: Recorded, tmp_path: Path) -> None:
    """Else the command looks for the weights of a model that was never here."""
    said = refused(call, tmp_path, "replay", recorded.folder)
    assert "org/small at an endpoint" in said
