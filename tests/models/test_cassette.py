"""Cassettes: what is recorded is played back, for nothing else than what it was recorded for."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_server import FakeServer, fails, says

from eoh_esopt.engine import backend
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.models import endpoint_retries
from eoh_esopt.models.cassette import Cassette, CassetteModel
from eoh_esopt.models.chat import PLAIN, ChatSettings
from eoh_esopt.models.endpoint import API_KEY, PartialReplies
from eoh_esopt.models.openai_model import OpenAIModel
from eoh_esopt.models.protocol import Reply, Request, Sampling, Turn
from operators.errors import UserError
from operators.records import Direction, Update

KEY = "sk-verysecret123"
UPDATE = Update(0, (1, 2), (0.5, 1.0), (-1.0, 1.0), 0.1, 0.01)
OLD_KEY = "33b897c2d8e6faf9851cd791e89a97aee6fb872272301c13e35eba246f4731c1"
"""Of the first request below, as releases without conversations wrote it."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_retries, "FIRST_WAIT_S", 0.005)
    monkeypatch.setenv(API_KEY, KEY)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def requests(count: int = 3) -> list[Request]:
    return [Request(f"prompt {i}", "", i) for i in range(count)]


def recorder(path: Path, server: FakeServer | None, name: str = "small", **settings: Any) -> CassetteModel:
    model = OpenAIModel(name, server.url if server else None, sampling=Sampling(), timeout_s=20)
    return CassetteModel(model, Cassette(path, recording=server is not None), {"temperature": 0.8, **settings})


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A cassette with the replies to three requests."""
    path = tmp_path / "replies.jsonl"
    with FakeServer(says()) as server:
        recorder(path, server).generate(requests())
    return path


def texts(replies: Sequence[Reply]) -> list[str]:
    return [reply.text for reply in replies]


def test_a_cassette_answers_without_a_server(recorded: Path) -> None:
    """Else tests and demonstrations need a model after all."""
    model = recorder(recorded, None)
    assert model.generate(requests()) == [Reply(f"prompt {i}/{i}", 11, 7, False) for i in range(3)]
    assert texts(model.generate([requests()[2], requests()[0]])) == ["prompt 2/2", "prompt 0/0"]
    assert model.describe()["device"] == "recorded"
    assert model.describe()["cassette"] == str(recorded)


def test_only_what_is_missing_is_asked_for(recorded: Path) -> None:
    """Else a second run pays for the same replies again, or puts them in the wrong order."""
    with FakeServer(says()) as server:
        replies = recorder(recorded, server).generate([Request("new", "", 9), *requests(), Request("newer", "", 9)])
    assert texts(replies) == ["new/9", "prompt 0/0", "prompt 1/1", "prompt 2/2", "newer/9"]
    assert sorted(one.body["messages"][0]["content"] for one in server.asked) == ["new", "newer"]
    assert len(recorded.read_text().splitlines()) == 5


def test_a_line_holds_the_key_of_the_request_and_the_reply(recorded: Path) -> None:
    """Else secrets end up in a file that is made to be shared, or it cannot be read by other tools."""
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    assert {tuple(line) for line in lines} == {("key", "text", "prompt_tokens", "new_tokens", "truncated")}
    assert all(len(line["key"]) == 64 for line in lines)
    assert KEY not in recorded.read_text()


Other = Callable[[Path], tuple[CassetteModel, Request]]
OTHER: dict[str, Other] = {
    "prompt": lambda path: (recorder(path, None), Request("prompt", "", 0)),
    "prefill": lambda path: (recorder(path, None), Request("prompt 0", "def", 0)),
    "seed": lambda path: (recorder(path, None), Request("prompt 0", "", 1)),
    "direction": lambda path: (recorder(path, None), Request("prompt 0", "", 0, Direction(1, 0.1))),
    "conversation": lambda path: (recorder(path, None), Request((Turn("user", "prompt 0"),), "", 0)),
    "stop": lambda path: (recorder(path, None), Request("prompt 0", "", 0, stop=("/",))),
    "limit": lambda path: (recorder(path, None), Request("prompt 0", "", 0, new_tokens=3)),
    "model": lambda path: (recorder(path, None, name="large"), requests()[0]),
    "temperature": lambda path: (recorder(path, None, temperature=0.9), requests()[0]),
}


@pytest.mark.parametrize("other", OTHER.values(), ids=OTHER)
def test_another_request_is_not_answered(recorded: Path, other: Other) -> None:
    """Else a run is made of replies to other prompts, or of another model, and nobody notices."""
    model, request = other(recorded)
    with pytest.raises(UserError, match=rf"no reply to request 1 of 1 .*seed {request.seed}, prompt 'prompt.*base-url"):
        model.generate([request])


def test_what_was_not_recorded_is_named(recorded: Path) -> None:
    """Else the user of a recording cannot find out which candidate it lacks."""
    with pytest.raises(UserError, match=r"request 4 of 4 of this batch \(seed 9, prompt 'new words'"):
        recorder(recorded, None).generate([*requests(), Request("new\nwords", "", 9)])


class Learning:
    """A model whose replies show its weights."""

    parameters = 1

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.written = 0

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        self.written += len(requests)
        return [Reply(f"{len(self.updates)} {one.direction}", 1, 1, False) for one in requests]

    def apply(self, update: Update) -> None:
        self.updates.append(update)

    def checksum(self) -> str:
        return "0" * 64


def learning_run(path: Path, model: Learning, alpha: float = 0.1) -> list[str]:
    wrapped = CassetteModel(model, Cassette(path, recording=True), {})  # type: ignore[arg-type]
    asked = [Request("p", "", 1, Direction(seed, 0.1)) for seed in (1, 2)]
    said = texts(wrapped.generate(asked))
    wrapped.apply(Update(0, (1, 2), (0.5, 1.0), (-1.0, 1.0), alpha, 0.1))
    return said + texts(wrapped.generate(asked))


def test_replies_of_a_model_that_learns_belong_to_its_weights(tmp_path: Path) -> None:
    """Else a reply from before an update is taken for one from after it, and learning is an illusion."""
    first, again, other = Learning(), Learning(), Learning()
    said = learning_run(tmp_path / "c", first)
    assert len(set(said)) == 4
    assert learning_run(tmp_path / "c", again) == said
    assert (first.written, again.written, len(again.updates)) == (4, 0, 1)
    learning_run(tmp_path / "c", other, alpha=0.2)
    assert other.written == 2


def test_replies_received_before_a_failure_are_kept(tmp_path: Path) -> None:
    """Else every attempt at a batch with one bad request is paid for in full."""
    path = tmp_path / "c"

    def fails_on_one(handler: Any, body: dict[str, Any]) -> None:
        (fails(400) if body["seed"] == 1 else says())(handler, body)

    with FakeServer(fails_on_one) as server, pytest.raises(PartialReplies, match="HTTP 400"):
        recorder(path, server).generate(requests())
    assert texts(recorder(path, None).generate([requests()[0], requests()[2]])) == ["prompt 0/0", "prompt 2/2"]


def test_nothing_is_left_where_nothing_was_received(tmp_path: Path) -> None:
    """Else an empty file makes the next run believe that there is a recording."""
    with FakeServer(fails(401)) as server, pytest.raises(UserError, match=f"Set {API_KEY}"):
        recorder(tmp_path / "c", server).generate(requests())
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("torn", [b'{"key": "ab', b"\0\0\0", b'{"key": "a", "text": "b"}'])
def test_a_last_line_that_was_cut_short_is_dropped(recorded: Path, torn: bytes) -> None:
    """Else a kill while a reply is written makes the whole recording useless, or the next line joins the torn one."""
    whole = recorded.read_bytes()
    recorded.write_bytes(whole + torn)
    assert len(recorder(recorded, None).generate(requests())) == 3
    assert recorded.read_bytes() == whole + torn
    with FakeServer(says()) as server:
        recorder(recorded, server).generate([Request("new", "", 9)])
    assert recorded.read_bytes().startswith(whole + b'{"key": ')
    assert texts(recorder(recorded, None).generate([Request("new", "", 9), *requests(1)])) == ["new/9", "prompt 0/0"]


def test_a_last_line_without_its_end_is_whole(recorded: Path) -> None:
    """Else an editor that strips the last line end makes a reply vanish."""
    recorded.write_bytes(recorded.read_bytes().rstrip(b"\n"))
    with FakeServer(says()) as server:
        recorder(recorded, server).generate([Request("new", "", 9)])
    assert len(server.asked) == 1
    assert len(recorder(recorded, None).generate([Request("new", "", 9), *requests()])) == 4


DAMAGE = {
    "no JSON": b"{{{",
    "empty": b"",
    "a list": b"[1]",
    "no text": b'{"key": "a", "prompt_tokens": 1, "new_tokens": 1, "truncated": false}',
    "a number for text": b'{"key": "a", "text": 1, "prompt_tokens": 1, "new_tokens": 1, "truncated": false}',
    "text for a number": b'{"key": "a", "text": "", "prompt_tokens": "1", "new_tokens": 1, "truncated": false}',
    "no text at all": b"\xff\xfe",
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("line", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_refused_with_its_line(recorded: Path, line: bytes) -> None:
    """Else a damaged recording ends in a stack trace, or replies go missing without a word."""
    first, *rest = recorded.read_bytes().splitlines(keepends=True)
    recorded.write_bytes(first + line + b"\n" + b"".join(rest))
    with pytest.raises(UserError, match=r"line 2, is damaged .* Restore the file from a copy") as refused:
        Cassette(recorded, recording=True)
    assert len(str(refused.value)) < 400 + len(str(recorded))


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    """Else a model is loaded for minutes before the file turns out to be useless."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for name, recording, message in (
        ("none", False, "There is no cassette at .*--base-url to record"),
        ("folder", True, "Cannot read .*Choose another --cassette"),
        ("folder", False, "Cannot read"),
        ("no/folder", True, "Cannot record to .*is no folder that can be written to"),
        ("file/under", True, "Cannot read"),
        ("x" * 300, True, "Cannot read"),
    ):
        with pytest.raises(UserError, match=message):
            Cassette(tmp_path / name, recording=recording)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def record_many(path: Path, start: int) -> None:
    for number in range(start, start + 40):
        Cassette(path, recording=True).record({f"{number % 60}": Reply("x" * 5000, 1, 1, False)})


def test_two_runs_may_record_into_one_file(tmp_path: Path) -> None:
    """Else two arms of an experiment that share a recording tear each other's lines."""
    path = tmp_path / "c"
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=record_many, args=(path, start)) for start in (0, 30)]
    for one in others:
        one.start()
    for one in others:
        one.join(60)
    assert [one.exitcode for one in others] == [0, 0]
    assert len(Cassette(path, recording=False)) == 60


def test_conversations_are_played_back_by_turns_and_stop_strings(tmp_path: Path) -> None:
    """Else a recorded training cannot be repeated, or one turn is answered with the reply to another."""
    talk = (Turn("system", "Be short."), Turn("user", "a"), Turn("assistant", "b"), Turn("user", "c"))
    asked = [Request(talk, "", 1), Request(talk, "", 1, stop=("/",)), Request(talk[:2], "", 1), Request("c", "", 1)]
    path = tmp_path / "talk.jsonl"
    with FakeServer(says()) as server:
        written = recorder(path, server).generate(asked)
    assert recorder(path, None).generate(asked) == written
    assert len(path.read_text().splitlines()) == 4
    assert [reply.text for reply in written[:2]] == ["c/1", "c"]


def test_keys_are_those_of_earlier_releases(recorded: Path) -> None:
    """Else every cassette that was ever recorded is worth nothing."""
    assert json.loads(recorded.read_text().splitlines()[0])["key"] == OLD_KEY


def test_settings_that_change_nothing_leave_keys_alone() -> None:
    """The same, for settings that earlier releases did not have."""
    config = RunConfig("tsp_construct", "m", method="sample")
    penalised = replace(config, sampling=Sampling(presence_penalty=1.5))
    before = {"temperature": 0.8, "top_p": 0.95, "top_k": 50, "max_new_tokens": 512}
    assert backend._deciding(config, PLAIN) == {
        "scope": "full",
        "restore": "exact",
        "dtype": "auto",
        "sampling": before,
    }
    assert backend._deciding(penalised, PLAIN)["sampling"] == {**before, "presence_penalty": 1.5}
    assert backend._deciding(config, ChatSettings(thinking=True))["chat"]["thinking"] is True
