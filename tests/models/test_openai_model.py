"""Endpoints: real HTTP against a server that behaves well, badly or not at all."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_server import (
    Behaviour,
    FakeServer,
    answers,
    breaks_off,
    completion,
    drips,
    echo,
    fails,
    hangs_up,
    is_silent,
    refuses,
    says,
    sends,
)

from eoh_esopt.models import chat, endpoint_retries
from eoh_esopt.models.chat import ChatSettings
from eoh_esopt.models.endpoint import API_KEY, PartialReplies
from eoh_esopt.models.openai_model import LONGEST_TEXT, OpenAIModel
from eoh_esopt.models.protocol import Reply, Request, Sampling, Turn
from operators.errors import UserError
from operators.records import Direction, Update

KEY = "sk-verysecret123"
SEED = 2**63 + 5


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are short, and nothing of the user's environment is used."""
    monkeypatch.setattr(endpoint_retries, "FIRST_WAIT_S", 0.005)
    for name in (API_KEY, "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def model_of(
    server: FakeServer | str, timeout_s: float = 20.0, max_batch: int = 64, name: str = "small", **options: Any
) -> OpenAIModel:
    url = server if isinstance(server, str) else server.url
    options = {"sampling": Sampling(), **options}
    return OpenAIModel(name, url, timeout_s=timeout_s, max_batch=max_batch, **options)


def requests(count: int = 1) -> list[Request]:
    return [Request(f"prompt {i}", "", SEED + i) for i in range(count)]


def one_reply(*script: Behaviour, **options: Any) -> Reply:
    with FakeServer(*script) as server:
        [reply] = model_of(server, **options).generate(requests())
    return reply


def refusal(*script: Behaviour, **options: Any) -> str:
    with FakeServer(*script) as server, pytest.raises(UserError) as refused:
        model_of(server, **options).generate(requests())
    return str(refused.value)


def test_a_batch_is_answered_in_its_order() -> None:
    """Else heuristics are credited to the wrong candidates, or requests with one prompt are merged into one."""

    def slower_at_first(handler: Any, body: dict[str, Any]) -> None:
        time.sleep(0.05 if body["seed"] % 2 else 0.0)
        says()(handler, body)

    batch = [*requests(6), Request("prompt 0", "", 1), Request("prompt 0", "", 2)]
    with FakeServer(slower_at_first) as server:
        replies = model_of(server).generate(batch)
        asked = server.asked
    assert [reply.text for reply in replies] == [f"{one.prompt}/{one.seed % 2**63}" for one in batch]
    assert replies[0] == Reply(f"prompt 0/{SEED % 2**63}", 11, 7, truncated=False)
    assert len(asked) == len(batch)
    assert {one.authorization for one in asked} == {"Bearer none"}
    sampling = Sampling()
    expected = {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}
    expected |= {"max_tokens": sampling.max_new_tokens, "model": "small", "seed": 5}
    assert {**asked[0].body, "seed": 5, "messages": None} == {**expected, "messages": None}


def test_requests_of_a_batch_are_under_way_at_once() -> None:
    """Else a run at an endpoint takes as many times longer as it has candidates."""
    together = threading.Barrier(8)

    def with_the_others(handler: Any, body: dict[str, Any]) -> None:
        together.wait(20)
        says()(handler, body)

    with FakeServer(with_the_others) as server:
        model = model_of(server, max_batch=8)
        assert len(model.generate(requests(8))) == 8
    assert [len(batch) for batch in model.batches(requests(20))] == [8, 8, 4]


SILENT = {"silent": is_silent, "dripping": drips}


@pytest.mark.parametrize("behaviour", SILENT.values(), ids=SILENT)
def test_a_server_that_never_answers_is_given_up(behaviour: Behaviour) -> None:
    """Else one stalled endpoint holds a run for hours: limits on silence alone do not end a dripping answer."""
    began = time.monotonic()
    said = refusal(behaviour, timeout_s=0.4)
    assert time.monotonic() - began < 10
    assert "does not answer (asked 2 times): no reply within 0.4 seconds" in said
    assert "--request-timeout" in said
    assert "--resume" in said


def test_a_server_that_only_listens_is_given_up() -> None:
    """Else a port that is open with nobody behind it holds a run for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.raises(UserError, match="no reply within 0"):
        model_of(f"127.0.0.1:{listening.getsockname()[1]}", timeout_s=0.3).generate(requests(3))


def test_an_endpoint_that_is_not_there() -> None:
    """Else a server that was never started ends in a stack trace."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UserError, match=rf"127.0.0.1:{port}/v1 does not answer \(asked 5 times\): the connection"):
        model_of(f"localhost:{port}".replace("localhost", "127.0.0.1")).generate(requests())


PASSING = {
    "hangs up": [hangs_up, says()],
    "breaks off": [breaks_off, says()],
    "busy": [fails(429, Retry_After="0"), says()],
    "no sense": [fails(500), fails(503), says()],
    "conflict": [fails(408), fails(409), fails(502), fails(429), says()],
    "no JSON": [sends(b'{"choices": [{"mess'), says()],
    "deep JSON": [sends(b"[" * 100_000), says()],
    "web page": [sends(b"<html>busy</html>", "text/html"), says()],
    "nothing": [sends(b""), says()],
    "no choices": [answers({"choices": []}), answers({"choices": None}), says()],
    "an error that is none": [answers({"error": {"message": "overloaded"}}), answers([]), says()],
    "no message": [answers({"choices": [{"text": "x"}]}), answers({"choices": ["x"]}), says()],
}


@pytest.mark.parametrize("script", PASSING.values(), ids=PASSING)
def test_what_may_pass_is_tried_again(script: list[Behaviour]) -> None:
    """Else a hiccup of a server ends a run of many hours."""
    assert one_reply(*script).text.startswith("prompt 0/")


def test_one_lost_request_is_tried_again() -> None:
    """Else a connection that a router dropped ends a run."""
    assert one_reply(is_silent, says(), timeout_s=1.5).text.startswith("prompt 0/")


@pytest.mark.parametrize("behaviour", [fails(500), fails(429, Retry_After="0"), sends(b"<html>")])
def test_attempts_are_bounded(behaviour: Behaviour) -> None:
    """Else a broken endpoint is asked, and paid, for ever."""
    with FakeServer(behaviour) as server, pytest.raises(UserError, match=r"does not answer \(asked 5 times\)"):
        model_of(server).generate(requests())
    assert len(server.asked) == 5


def test_a_server_that_asks_for_patience_gets_it() -> None:
    """Else a rate limit is hammered until all attempts are used up."""
    began = time.monotonic()
    assert one_reply(fails(429, Retry_After="0.5"), says()).text
    assert 0.5 <= time.monotonic() - began < 5


FATAL: dict[str, tuple[Behaviour, str]] = {
    "400": (fails(400, "no"), "refuses a request to 'small': HTTP 400: no"),
    "401": (fails(401), f"wants a key, and {API_KEY} is not set .*Set {API_KEY}"),
    "403": (fails(403, "not for you"), "HTTP 403: not for you"),
    "404": (fails(404), r"no model 'small', .*Choose one of its models by --model: small, large\."),
    "422": (fails(422, "no"), "HTTP 422: no"),
    "no money": (fails(429, "Pay.", code="insufficient_quota"), "HTTP 429: Pay."),
}


@pytest.mark.parametrize(("behaviour", "message"), FATAL.values(), ids=FATAL)
def test_what_will_not_pass_is_said_at_once(behaviour: Behaviour, message: str) -> None:
    """Else a wrong key or model name is retried for minutes, and the user is not told what to change."""
    with FakeServer(behaviour) as server, pytest.raises(UserError, match=message):
        model_of(server).generate(requests())
    assert len(server.asked) <= 2  # a setting that may be the reason is left out once


@pytest.mark.parametrize("models", [None, [], [f"m{i}" for i in range(30)]])
def test_a_wrong_name_with_a_list_of_any_length(models: list[str] | None) -> None:
    """Else a mistyped model name fills the screen, or a server without a list ends in a stack trace."""
    advice = "m0, .*m9 and 20 more" if models else "Check --model and --base-url"
    with FakeServer(fails(404), models=models) as server, pytest.raises(UserError, match=advice):
        model_of(server).generate(requests())


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a secret ends up in a log, a history or a bug report."""
    monkeypatch.setenv(API_KEY, f" {KEY}\n")
    said = refusal(fails(401, f"Incorrect API key provided: {KEY}."))
    assert f"{API_KEY} is not the right key" in said
    assert KEY not in said
    with FakeServer(says()) as server:
        model = model_of(server)
        model.check()
    assert server.asked[0].authorization == f"Bearer {KEY}"
    assert KEY not in repr(model.describe()) + repr(vars(model))


def test_a_key_that_no_header_can_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a key copied with a line break ends in a stack trace that shows it."""
    monkeypatch.setenv(API_KEY, f"{KEY}\n{KEY}")
    with pytest.raises(UserError, match=f"{API_KEY} holds") as refused:
        model_of("localhost")
    assert KEY not in str(refused.value)


def test_refused_settings_are_left_out_and_remembered() -> None:
    """Else servers that know no top_k, or models that reason, cannot be used at all."""
    with FakeServer(refuses("top_k", "max_tokens", "temperature")) as server:
        model = model_of(server)
        model.check()
        before = len(server.asked)
        model.generate(requests(3))
    assert before == 4
    assert len(server.asked) == before + 3
    assert model.refused == model.describe()["refused"] == ["max_tokens", "temperature", "top_k"]
    assert server.asked[-1].body["max_completion_tokens"] == Sampling().max_new_tokens
    assert "top_p" in server.asked[-1].body


def test_a_server_that_refuses_top_k_without_a_name_for_it() -> None:
    """Else a server that only says "bad request" is taken for one that cannot be used."""
    with FakeServer(refuses("top_k", message="extra fields not permitted")) as server:
        model = model_of(server)
        model.generate(requests(2))
    assert model.refused == ["top_k"]


def test_a_prompt_that_leaves_no_room_is_an_empty_reply() -> None:
    """Else one long heuristic ends a run that can never be resumed: its prompt is the same again."""
    too_long = fails(400, "This model's maximum context length is 4096 tokens. Please reduce max_tokens.")
    with FakeServer(says(), too_long) as server:
        model = model_of(server)
        model.check()
        assert model.generate(requests()) == [Reply("", 0, 0, truncated=True)]
        assert model.refused == []
    assert "maximum context length" in refusal(too_long)


READ: dict[str, tuple[Any, Reply]] = {
    "only reasoning": (completion(None, reasoning_content="Hm."), Reply("", 11, 7, False)),
    "no content": ({"choices": [{"message": {"reasoning": "Hm."}}]}, Reply("", 0, 0, False)),
    "cut off": (completion("def f", "length"), Reply("def f", 11, 7, True)),
    "parts": (
        completion([{"type": "thinking", "text": "Hm."}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        Reply("ab", 11, 7, False),
    ),
    "odd parts": (completion(["x", {"type": "text"}, {"type": "text", "text": 3}, None]), Reply("", 11, 7, False)),
    "content of another kind": (completion({"a": 1}), Reply("", 11, 7, False)),
    "no usage": ({**completion("a"), "usage": None}, Reply("a", 0, 0, False)),
    "odd usage": (
        {**completion("a"), "usage": {"prompt_tokens": "5", "completion_tokens": -1}},
        Reply("a", 0, 0, False),
    ),
    "unknown name": ({**completion("a"), "model": "never heard of"}, Reply("a", 11, 7, False)),
    "half a character": (completion("\ud83d"), Reply("\ud83d", 11, 7, False)),
}


@pytest.mark.parametrize(("value", "reply"), READ.values(), ids=READ)
def test_replies_of_every_sort(value: Any, reply: Reply) -> None:
    """Else a model that reasons, or a server that counts no tokens, ends the run instead of failing one candidate."""
    assert one_reply(answers(value)) == reply


def test_a_huge_reply_is_cut() -> None:
    """Else one runaway reply fills the log."""
    reply = one_reply(answers(completion("a" * (3 * LONGEST_TEXT))))
    assert (len(reply.text), reply.truncated) == (LONGEST_TEXT, True)


def test_what_was_answered_before_a_failure_is_handed_over() -> None:
    """Else replies that were paid for are thrown away because their neighbour failed."""

    def fails_on_odd(handler: Any, body: dict[str, Any]) -> None:
        (fails(500) if body["seed"] % 2 else says())(handler, body)

    with FakeServer(fails_on_odd) as server, pytest.raises(PartialReplies, match="HTTP 500") as partial:
        model_of(server).generate(requests(5))
    assert {i: reply.text for i, reply in partial.value.received.items()} == {
        i: f"prompt {i}/{SEED % 2**63 + i}" for i in (1, 3)
    }


def frozen_calls(model: OpenAIModel, folder: Path) -> Iterator[Any]:
    update = Update(0, (1,), (1.0,), (1.0,), 0.1, 0.1)
    yield lambda: model.probe("p", None)
    yield lambda: model.apply(update)
    yield lambda: model.save(folder / "m")
    yield lambda: model.generate([Request("p", "", 1, Direction(1, 0.1))])


def test_weights_elsewhere_cannot_be_moved(tmp_path: Path) -> None:
    """Else a run claims to have learnt something from a model that never changed."""
    model = model_of("localhost:1", name="org/my model")
    for call in frozen_calls(model, tmp_path):
        with pytest.raises(UserError, match="cannot be moved: use --method eoh or sample"):
            call()
    with pytest.raises(UserError, match="--prefill none"):
        model.generate([Request("p", "def f", 1)])
    assert (model.checksum(), model.parameters, model.drift()) == ("endpoint:org/my%20model", None, 0.0)
    assert model.describe()["device"] == "http://localhost:1/v1"
    assert not list(tmp_path.iterdir())
    model.close()
    model.close()


def test_the_echo_shows_the_prompt() -> None:
    """Else the tests above compare nothing with nothing."""
    assert echo({"messages": [{"content": "p"}], "seed": 3}) == "p/3"


def test_conversations_stop_strings_and_penalties_are_sent() -> None:
    """Else an agent behind an endpoint plays without its rules, its memory or its sampling, and without a word."""
    talk = (Turn("system", "Be short."), Turn("user", "a"), Turn("assistant", "b"), Turn("user", "c"))
    sampling = Sampling(presence_penalty=1.5)
    with FakeServer(says()) as server:
        model = model_of(server, sampling=sampling, settings=ChatSettings("Unused.", thinking=True, stop=("END",)))
        replies = model.generate([Request(talk, "", 7, stop=("/",)), Request("d", "", 7)])
        sent, plain = sorted((one.body for one in server.asked), key=lambda body: -len(body["messages"]))
    assert sent["messages"] == chat.messages(talk)
    assert (sent["stop"], plain["stop"]) == (["END", "/"], ["END"])
    assert plain["messages"] == chat.messages("d", "Unused.")
    assert sent["presence_penalty"] == 1.5
    assert sent["chat_template_kwargs"] == {"enable_thinking": True}
    assert [reply.text for reply in replies] == ["c", "d/7"], "cut here too, for servers that write on"


def test_what_is_not_asked_for_is_not_sent() -> None:
    """Else servers that know none of it refuse what they took before."""
    with FakeServer(says()) as server:
        model_of(server).generate(requests(1))
        [asked] = server.asked
    assert not {"stop", "presence_penalty", "chat_template_kwargs"} & asked.body.keys()


def test_a_server_that_refuses_stop_strings_is_cut_after() -> None:
    """Else the text after an action counts as part of it."""
    with FakeServer(refuses("stop")) as server:
        model = model_of(server)
        [reply] = model.generate([Request("a/b", "", 7, stop=("/",))])
    assert reply.text == "a"
    assert model.refused == ["stop"]
    with FakeServer(fails(400, "it cannot stop")) as server, pytest.raises(UserError, match="it cannot stop"):
        model_of(server).generate(requests(1))
    assert len(server.asked) == 2, "once with top_k and once without: stop, which was not sent, is only a word here"
