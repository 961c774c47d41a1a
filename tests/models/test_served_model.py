"""Several servers behind one model: work is spread, updates reach all, and what does not fit is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_served import KEY, FakeServed
from served_cases import DIRECTIONS, Servers, an_update, impatient, opened, requests, servers

from eoh_esopt.models import served_fleet
from eoh_esopt.models.chat import ChatSettings
from eoh_esopt.models.protocol import Reply, Request, Sampling, Turn
from eoh_esopt.models.selftest import self_test
from eoh_esopt.models.vllm import wire
from eoh_esopt.models.vllm.wire import API_KEY, server_urls
from operators.errors import UserError

__all__ = ["impatient", "servers"]


def test_replies_are_the_same_on_one_server_and_on_three(servers: Servers) -> None:
    """A run resumed with another number of servers would go another way."""
    asked = requests([None, *DIRECTIONS, None])
    with opened(servers[0]) as model:
        alone = model.generate(asked)
        assert model.generate(asked) == alone
        batches = model.batches(asked)
    for server in servers:
        server.delay_s = 0.01
    with opened(*servers) as model:
        assert model.generate(asked) == alone
        assert model.batches(asked) == batches
    assert len({reply.text for reply in alone}) == len(alone)
    assert all(server.calls.count("/eoh/perturb") >= 1 for server in servers), "the work was not spread"
    assert sum(server.calls.count("/eoh/perturb") for server in servers) == 3 * len(DIRECTIONS)
    assert all(server.engine.live == "[[], null]" for server in servers)


def test_replies_carry_their_beginning_and_end_with_the_function(servers: Servers) -> None:
    """Programs would lack their first lines, and carry talk behind their last."""
    with opened(servers[0]) as model:
        asked = [Request("a", "", 1), Request("a", "def f():\n", 1), Request("a" * 300, "x", 1)]
        plain, begun, long = model.generate(asked)
    assert plain.text.endswith("\nmore")
    assert begun.text.startswith("def f():\n ")
    assert "more" not in begun.text
    assert (begun.prompt_tokens, begun.new_tokens, begun.truncated) == (12, 8, False)
    assert long == Reply("x", 303, 0, truncated=True)


def test_batches_keep_directions_whole_and_stay_small(servers: Servers) -> None:
    """A direction cut in two is perturbed twice; a batch without a limit is lost as a whole when the run is killed."""
    asked = requests([*DIRECTIONS, None], each=10)
    with opened(servers[0]) as model:
        batches = model.batches(asked)
        assert [position for batch in batches for position in batch] == list(range(70))
        assert [len(batch) for batch in batches] == [30, 30, 10]
        assert [len(batch) for batch in model.batches(requests([None], each=70))] == [32, 32, 6]
        assert model.batches([]) == []
        assert model.generate([]) == []


def test_updates_reach_every_server_and_the_self_test_looks_at_all(servers: Servers) -> None:
    """A server that lacks an update writes replies of another model."""
    with opened(*servers) as model:
        before = model.probe("hello", None)
        assert len(before) == 3 * 6
        assert self_test(model, 0.5, exact=True) > 0
        assert np.array_equal(before, model.probe("hello", None))
        base = model.checksum()
        for step in range(3):
            model.apply(an_update(step))
        assert len({str(server.engine.updates) for server in servers}) == 1
        assert len(servers[0].engine.updates) == 3
        assert model.checksum() != base
        assert model.describe()["servers"] == 3
        assert model.describe()["backend"] == "served"
        assert (model.parameters, model.drift()) == (10, 0.0)


def test_the_next_run_begins_with_the_base_weights(servers: Servers) -> None:
    """What one run has learnt would be the beginning of the next, and its history could not be replayed."""
    with opened(*servers[:2]) as model:
        base = model.checksum()
        model.apply(an_update(0))
    assert servers[0].control.status()["state"] == "closed"
    with opened(*servers[:2]) as model:
        assert model.checksum() == base


@pytest.mark.parametrize(
    ("facts", "settings", "message"),
    [
        ({}, {"model": "large"}, r"serves \./small, not large"),
        ({}, {"dtype": "float32"}, "serves bfloat16 weights, not float32"),
        ({}, {"scope": "none"}, "cannot move the weights: Unknown scope"),
    ],
)
def test_servers_that_do_not_fit_are_named(facts: dict[str, Any], settings: dict[str, Any], message: str) -> None:
    """The run would be one of another model than it says."""
    with FakeServed(facts) as server, pytest.raises(UserError, match=message), opened(server, **settings):
        pass


def test_servers_that_differ_are_not_used_together() -> None:
    """Replies would depend on which server was free."""
    differ = pytest.raises(UserError, match=r"The servers differ: .* context")
    with FakeServed() as one, FakeServed({"context": 100}) as two, differ, opened(one, two):
        pass
    differ = pytest.raises(UserError, match="hold different weights")
    with FakeServed() as one, FakeServed(base="other") as two, opened(one, two) as model, differ:
        model.checksum()


@pytest.mark.parametrize(("key", "message"), [("", "wants a key"), ("wrong", "does not take the key")])
def test_a_wrong_key_is_said_at_once(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str, message: str
) -> None:
    """The user would wait for servers that run."""
    monkeypatch.setenv("EOH_ESOPT_CACHE", str(tmp_path))
    monkeypatch.setenv(API_KEY, key)
    with pytest.raises(UserError, match=f"{message}. Set {API_KEY}"), opened(servers[0]):
        pass
    if key:
        return
    file = wire.key_file(servers[0].port)  # as a server of this user leaves it
    file.parent.mkdir()
    file.write_text(KEY + "\n")
    with opened(servers[0]) as model:
        assert model.parameters == 10


def test_a_server_writes_into_a_folder_that_both_see(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint would be written on another machine, and nobody would know."""
    with opened(servers[0]) as model:
        model.save(tmp_path / "out", float32=True)
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["weights.json"]
        monkeypatch.setattr(served_fleet, "NONCE", "elsewhere")
        with pytest.raises(UserError, match=r"does not see the folder .* eoh-esopt replay"):
            model.save(tmp_path / "out")


@pytest.mark.parametrize(
    ("given", "urls"),
    [
        ("localhost:8000", ("http://localhost:8000",)),
        (" http://a:1/ , https://b/v1/ ,", ("http://a:1", "https://b")),
        ("[::1]:8000", ("http://[::1]:8000",)),
    ],
)
def test_addresses_may_be_written_as_people_write_them(given: str, urls: tuple[str, ...]) -> None:
    """A slash at the end would make a server unreachable."""
    assert server_urls(given) == urls


@pytest.mark.parametrize(
    "given", ["", " , ", "ftp://a", "http://", "a:b", "a:0", "http://a/x", "http://a?k=1", "http://u:p@a", "a:1,a:1/"]
)
def test_what_is_no_address_is_refused(given: str) -> None:
    """The run would begin, and fail with an error of the HTTP library."""
    with pytest.raises(UserError, match="--servers"):
        server_urls(given)


def test_conversations_and_stop_strings_reach_the_server(servers: Servers) -> None:
    """An agent on servers would play without its rules or write on beyond its action."""
    talk = (Turn("system", "Be short."), Turn("user", "a"), Turn("assistant", "b"), Turn("user", "c"))
    settings, sampling = ChatSettings(stop=("END",)), Sampling(presence_penalty=1.5, max_new_tokens=20)
    with opened(servers[0], settings=settings, sampling=sampling) as model:
        whole, cut = model.generate([Request(talk, "", 1), Request(talk, "", 1, stop=("\n",))])
    assert servers[0].rendered == [talk], "one conversation is rendered once"
    assert [asked["stop"] for asked in servers[0].asked] == [["END"], ["END", "\n"]]
    assert {asked["presence_penalty"] for asked in servers[0].asked} == {1.5}
    assert cut.text == whole.text.partition("\n")[0] != whole.text
