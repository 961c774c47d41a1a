"""Plain vLLM, as users start it: it serves a checkpoint that was exported, and a search asks it as any endpoint."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eoh_esopt.models.openai_model import OpenAIModel
from eoh_esopt.models.protocol import Request, Sampling
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.transformers_model import TransformersModel
from operators.records import Update

GREEDY = Sampling(temperature=0.0, max_new_tokens=16)
ASKED = [Request(f"Write a Python function that adds {n} numbers.", "", 1) for n in (2, 3, 4)]


@dataclass(frozen=True)
class Plain:
    url: str
    checkpoint: Path


@pytest.fixture(scope="module")
def plain(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    """`vllm serve` on a checkpoint of weights that moved."""
    folder = tmp_path_factory.mktemp("plain")
    model = TransformersModel(small_model, scope=get_scope("full"), sampling=GREEDY, dtype="float32")
    model.apply(Update(0, (1, 2**63), (1.0, 0.0), (1.0, -1.0), 2e-3, 1e-3))
    model.save(folder / "adapted", float32=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # what `vllm serve` starts; that command itself asks for the version of a package that the CPU build has not
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", folder / "adapted"]
    command += ["--port", str(port), "--dtype", "float32", "--max-model-len", "1024", "--max-num-seqs", "8"]
    command += ["--served-model-name", "adapted"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ.copy(), start_new_session=True)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, folder / "log")
        yield Plain(f"http://127.0.0.1:{port}", folder / "adapted")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 300
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(0.3)


def test_vllm_serves_an_exported_checkpoint(plain: Plain, small_model: Path) -> None:
    """What was learnt could not be used where models are served."""
    asked = OpenAIModel("adapted", plain.url, sampling=GREEDY)
    replies = [reply.text for reply in asked.generate(ASKED)]
    exported = TransformersModel(plain.checkpoint, scope=get_scope("full"), sampling=GREEDY, dtype="float32")
    assert replies == [reply.text for reply in exported.generate(ASKED)]
    base = TransformersModel(small_model, scope=get_scope("full"), sampling=GREEDY, dtype="float32")
    assert replies != [reply.text for reply in base.generate(ASKED)]


def test_a_search_asks_a_vllm_server_as_any_endpoint(plain: Plain, tmp_path: Path) -> None:
    """Frozen baselines would need a model of their own in the process."""
    options = ["--method", "eoh", "--backend", "openai", "--base-url", plain.url, "--model", "adapted", "--seed", "1"]
    options += ["--budget", "10", "--population", "2", "--directions", "3", "--max-new-tokens", "40"]
    command = [sys.executable, "-m", "eoh_esopt", "run", "tsp_construct", *options, "--out", tmp_path / "run"]
    done = subprocess.run(command, env={**os.environ, "CI": "true"}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    replies = [one for event in events if event["event"] == "replies" for one in event["candidates"]]
    assert len(replies) > 10
    assert all(reply["new_tokens"] > 0 and reply["prompt_tokens"] > 0 for reply in replies)
