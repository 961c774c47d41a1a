"""Real vLLM servers in processes of their own: replies, directions, histories, and servers that are killed."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving import ENVIRONMENT, KEY, Server, command, helpers_of, soon

from eoh_esopt.models.protocol import Reply, Request, Sampling, Turn
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.served_model import ServedModel
from eoh_esopt.models.transformers_model import TransformersModel
from eoh_esopt.models.vllm.wire import API_KEY, SEED_MASK
from operators.errors import UserError
from operators.records import Direction, Update

PROMPT = "Write a Python function that adds two numbers. " * 8
PREFILL = "```python\ndef add(a, b):\n    return a + b"
SAMPLING = Sampling(temperature=0.8, max_new_tokens=16, presence_penalty=0.5)
TALK = (Turn("system", "You count."), Turn("user", "Count."), Turn("assistant", "1, 2, 3"), Turn("user", "Go on."))
DIRECTIONS = [Direction(2**64 - 1 - i, 1e-2) for i in range(3)]


def requests(*seeds: int, direction: Direction | None = None, prefill: str = "") -> list[Request]:
    return [Request(PROMPT, prefill, seed, direction) for seed in seeds]


ASKED = [
    *requests(1, 2**64 - 1),
    *(request for direction in DIRECTIONS for request in requests(1, 2, direction=direction)),
    *requests(3, prefill=PREFILL),
    Request(TALK, "", 1, stop=("6", "\n")),
    Request("word " * 2000, "", 1),
]


def an_update(step: int) -> Update:
    return Update(step, (step, 2**63 + step, 5), (1.0, 0.0, 0.5), (1.0, -1.0, 0.2), 5e-2, 1e-3)


@pytest.fixture(scope="module")
def one(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(small_model, tmp_path_factory.mktemp("one") / "log")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def in_process(one: Server, small_model: Path) -> tuple[list[Reply], Any]:
    """What this process' own vLLM writes, and the probabilities of a prompt; made while the server starts."""
    from eoh_esopt.models.vllm import model as vllm_model

    model = vllm_model.VllmModel(
        small_model, scope="full", sampling=SAMPLING, dtype="bfloat16", max_model_len=512, max_batch=16
    )
    try:
        replies: list[Reply] = []
        for batch in model.batches(ASKED):
            replies += model.generate([ASKED[i] for i in batch])
        return replies, model.probe(PROMPT, DIRECTIONS[0])
    finally:
        model.close()


@pytest.fixture(scope="module")
def two(in_process: object, small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A second server; it may still be starting."""
    server = Server(small_model, tmp_path_factory.mktemp("two") / "log")
    yield server
    server.stop()


@contextmanager
def opened(model: Path, *servers: Server, **settings: Any) -> Iterator[ServedModel]:
    for server in servers:
        server.wait()
    urls = ",".join(server.url for server in servers)
    values: dict[str, Any] = {"scope": "full", "sampling": SAMPLING, "max_batch": 16, **settings}
    served = ServedModel(urls, model=str(model), **values)
    try:
        yield served
    finally:
        served.close()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY, KEY)


def test_replies_are_those_of_the_model_in_process(
    one: Server, in_process: tuple[list[Reply], Any], two: Server, small_model: Path
) -> None:
    """A run would go another way when its model moves to a server, or to several."""
    replies, logprobs = in_process
    with opened(small_model, one) as model:
        assert model.generate(ASKED) == replies
        assert np.array_equal(model.probe(PROMPT, DIRECTIONS[0]), logprobs)
        before = model.probe(PROMPT, None)
        assert not np.array_equal(before, logprobs)
        assert model.generate(ASKED) == replies
        assert np.array_equal(before, model.probe(PROMPT, None))
    assert replies[-1] == Reply("", replies[-1].prompt_tokens, 0, truncated=True)
    assert len({reply.text for reply in replies[:8]}) > 4


def test_a_history_made_here_replays_on_transformers(
    one: Server, two: Server, small_model: Path, tmp_path: Path
) -> None:
    """What was learnt on servers could be used nowhere else."""
    other = TransformersModel(small_model, scope=get_scope("full"), sampling=SAMPLING, dtype="bfloat16")
    with opened(small_model, one) as model:
        assert model.parameters == other.parameters
        base = model.checksum()
        assert base == other.checksum()
        for step in range(2):
            model.apply(an_update(step))
            other.apply(an_update(step))
        assert model.checksum() == other.checksum()
        model.save(tmp_path / "adapted", float32=True)
    again = TransformersModel(tmp_path / "adapted", scope=get_scope("full"), sampling=SAMPLING, dtype="float32")
    assert again.checksum() == other.checksum()
    with opened(small_model, one) as model:
        assert model.checksum() == base, "the next run begins with the base weights"
    with opened(small_model, one, scope="norms") as model:
        assert (
            model.checksum()
            == TransformersModel(small_model, scope=get_scope("norms"), sampling=SAMPLING, dtype="bfloat16").checksum()
        )


def test_every_route_wants_the_key(one: Server) -> None:
    """Whoever reaches the port could use and change the model."""
    one.wait()
    listed = json.loads(json.dumps(one.ask("/openapi.json")[1]))
    assert "/v1/completions" in listed["paths"]
    for path in (*listed["paths"], "/eoh/status", "/docs", "/openapi.json"):
        if path not in ("/health", "/ping"):
            for wrong in ("Bearer wrong", "", f"Basic {KEY}"):
                assert one.ask(path, {}, Authorization=wrong)[0] == 401, path
                assert one.ask(path, Authorization=wrong)[0] == 401, path
    assert one.ask("/v1/models")[1]["data"][0]["id"] == one.ask("/eoh/status")[1]["served"]


def test_weights_stay_while_replies_are_written_and_others_stay_out(one: Server, small_model: Path) -> None:
    """A reply would be written half by one model and half by another."""
    with opened(small_model, one) as model:
        session = {"X-Eoh-Session": model._fleet.replicas[0].link._session}
        long = {"prompt": PROMPT, "max_tokens": 300, "ignore_eos": True, "seed": 2**64 - 1 & SEED_MASK}
        answers: list[Any] = []
        writing = threading.Thread(target=lambda: answers.append(one.ask("/v1/completions", long)))
        writing.start()
        until = time.monotonic() + 20
        while not one.ask("/eoh/status")[1]["writing"]:
            assert time.monotonic() < until
        perturb = {"seed": 1, "sigma": 0.1}
        status, answer = one.ask("/eoh/perturb", perturb, **session, **{"X-Eoh-Token": "t1"})
        assert (status, answer["error"]["code"]) == (409, "writing")
        other = {"X-Eoh-Session": "x", "X-Eoh-Token": "t2"}
        status, answer = one.ask("/eoh/init", {"scope": "full", "restore": "exact"}, **other)
        assert (status, answer["error"]["code"]) == (409, "lease")
        writing.join()
        assert answers[0][1]["usage"]["completion_tokens"] == 300
        assert one.ask("/eoh/perturb", perturb, **session, **{"X-Eoh-Token": "t1"})[0] == 200


def test_killed_servers_lose_their_work_to_others_and_come_back(one: Server, two: Server, small_model: Path) -> None:
    """Candidates would be blamed for it, or a server would go on without the updates."""
    said: list[str] = []
    asked = [request for direction in DIRECTIONS for request in requests(*range(6), direction=direction)]
    with opened(small_model, one, two, notify=said.append) as model:
        model.checksum()
        model.apply(an_update(0))
        expected = model.generate(asked)
        orphans: list[int] = []

        def kill() -> None:
            soon(lambda: two.ask("/eoh/status")[1]["state"] == "perturbed")
            orphans.extend(helpers_of(two))
            two.kill()

        killing = threading.Thread(target=kill)
        killing.start()
        while two.process.poll() is None:
            assert model.generate(asked) == expected
        killing.join()
        assert f"Server {two.url} gets no work" in said[0]
        assert orphans
        soon(lambda: not helpers_of(two))
        two.start()
        model.apply(an_update(1))
        other = TransformersModel(small_model, scope=get_scope("full"), sampling=SAMPLING, dtype="bfloat16")
        for step in range(3):
            other.apply(an_update(step))
        one.kill()  # the one that is back is alone, and nobody else has the updates
        model.apply(an_update(2))
        assert f"Server {two.url} is back" in said[-1]
        assert [replica.url for replica in model._fleet.live] == [two.url]
        assert model.checksum() == other.checksum()


def test_a_whole_search_replays_on_transformers(two: Server, small_model: Path, tmp_path: Path) -> None:
    """The whole command: what was learnt on a server would be lost with it."""
    two.wait()
    out = tmp_path / "run"
    options = ["--scope", "full", "--method", "esopt-sample", "--directions", "4", "--budget", "12", "--workers", "1"]
    options += ["--max-new-tokens", "32", "--seed", "4", "--sigma", "1e-3", "--backend", "served", "--servers", two.url]
    called("run", "tsp_construct", "--model", small_model, "--out", out, *options)
    summary = json.loads((out / "summary.json").read_text())
    history = json.loads((out / "history.json").read_text())
    assert summary["ledger"]["updates"] == len(history["updates"])
    assert summary["weights_after"] == history["final_checksum"]
    assert "The weights equal the run's" in called("replay", out)
    assert two.ask("/eoh/status")[1]["state"] == "closed"


def called(*arguments: object) -> str:
    """The output of a command that succeeds."""
    done = subprocess.run(
        command(*arguments), env=ENVIRONMENT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_another_key_is_refused(two: Server, small_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user would wait for a server that runs."""
    monkeypatch.setenv(API_KEY, "another")
    with pytest.raises(UserError, match="does not take the key"), opened(small_model, two):
        pass


def test_other_releases_of_vllm_are_refused(one: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and caches are reached by inner names: another release may move half of them."""
    from eoh_esopt.models.vllm import model as vllm_model
    from eoh_esopt.models.vllm import server as vllm_server

    for name in ("VLLM_MAX_STOP_STRINGS", "VLLM_LOGGING_LEVEL", "VLLM_CPU_KVCACHE_SPACE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(vllm_model, "_version", lambda package: "0.31.2")
    with pytest.raises(UserError, match=r"vLLM 0\.31\.2 is installed; this was tested with 0\.32"):
        vllm_server._begin_vllm()
