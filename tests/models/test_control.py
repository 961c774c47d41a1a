"""Who may move a served model's weights, and when: illegal requests, repeated ones, errors, leases, running replies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fake_engine import FakeEngine

from eoh_esopt.models.vllm import control as control_module
from eoh_esopt.models.vllm.arguments import Refusal
from eoh_esopt.models.vllm.control import Control
from eoh_esopt.models.vllm.wire import NONCE, hash_of

UPDATE = {"step": 0, "seeds": [1, 2**64 - 1], "rewards": [1.0, 0.0], "weights": [1.0, -1.0], "alpha": 0.1, "sigma": 0.2}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "init": {"scope": "full", "restore": "exact"},
    "perturb": {"seed": 2**64 - 1, "sigma": 0.5},
    "update": {"update": UPDATE},
}


class Client:
    """One client of a control, with a clock that it moves."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.now = 0.0
        self.control = Control(self.engine, lease_s=30.0, clock=lambda: self.now)
        self._tokens = 0

    async def __call__(self, name: str, session: str = "me", token: str = "", **more: Any) -> dict[str, Any]:
        self._tokens += 1
        expect = more.pop("expect", None)
        fields = more or ARGUMENTS.get(name, {})
        return await self.control.call(name, fields, session=session, token=token or f"t{self._tokens}", expect=expect)

    async def refused(self, name: str, *arguments: Any, **more: Any) -> str:
        with pytest.raises(Refusal) as refusal:
            await self(name, *arguments, **more)
        return refusal.value.code


Scenario = Callable[[Client], Awaitable[None]]


def run(scenario: Scenario) -> Client:
    client = Client()
    asyncio.run(scenario(client))
    return client


async def at(client: Client, state: str) -> None:
    """Bring the control into a state."""
    if state != "closed":
        await client("init")
    if state == "perturbed":
        await client("perturb")
    if state == "broken":
        client.engine.fails = ["perturb", "restore", "reset"]
        assert await client.refused("perturb") == "failed"
    assert client.control.status()["state"] == state


ALLOWED = {
    "closed": {"init"},
    "ready": {"init", "perturb", "restore", "update", "checksum", "release"},
    "perturbed": {"init", "restore", "release"},
    "broken": {"init", "release"},
}
NAMES = ("init", "perturb", "restore", "update", "checksum", "release")


@pytest.mark.parametrize("state", ALLOWED)
@pytest.mark.parametrize("name", NAMES)
def test_only_legal_transitions_are_made(state: str, name: str) -> None:
    """Two directions at once, or an update under one, would leave weights that no history describes."""

    async def scenario(client: Client) -> None:
        await at(client, state)
        before = client.engine.live
        if name in ALLOWED[state]:
            await client(name)
            return
        assert await client.refused(name) in ("state", "lease")
        assert client.engine.live == before
        assert client.control.status()["state"] == state

    run(scenario)


def test_a_day_in_the_life() -> None:
    """The usual order has to work, and the status has to tell the truth at every point of it."""

    async def scenario(client: Client) -> None:
        first = await client("init")
        assert (first["state"], first["step"], first["scope"], first["yours"]) == ("ready", 0, "full", True)
        moved = await client("perturb")
        assert moved["direction"] == {"seed": 2**64 - 1, "sigma": 0.5}
        back = await client("restore")
        assert back["tag"] == first["tag"] != moved["tag"]
        after = await client("update")
        assert (after["step"], after["updates"]) == (1, hash_of([UPDATE]))
        assert (await client("checksum"))["checksum"] == hash_of([UPDATE])
        assert (await client("release"))["state"] == "closed"
        assert client.control.status("me")["yours"] is False

    assert run(scenario).engine.fresh


def test_the_same_token_gets_the_same_answer_and_does_nothing_again() -> None:
    """A request whose answer was lost on the way would move the weights twice."""

    async def scenario(client: Client) -> None:
        await client("init")
        answers = [await client("update", token="one") for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]
        assert answers[0]["step"] == 1
        client.engine.fails = ["update-"]
        assert [await client.refused("update", token="two") for _ in range(2)] == ["failed", "failed"]
        assert client.control.status()["step"] == 1
        assert await client.refused("perturb", token="one") == "token"
        assert await client.refused("update", token="one", update={**UPDATE, "step": 9}) == "token"
        assert await client.refused("update", token="one", session="other") == "token"

    assert len(run(scenario).engine.updates) == 1


def test_attempts_at_a_request_that_still_runs_wait_for_its_answer() -> None:
    """A client that lost patience would be told that the server is busy with its own request."""

    async def scenario(client: Client) -> None:
        await client("init")
        client.engine.held = asyncio.Event()
        tries = [asyncio.ensure_future(client("update", token="one")) for _ in range(3)]
        await asyncio.sleep(0.01)
        tries[0].cancel()  # the connection is gone; the work goes on
        assert await client.refused("restore") == "busy"
        client.engine.held.set()
        assert (await tries[1])["step"] == (await tries[2])["step"] == 1

    assert len(run(scenario).engine.updates) == 1


def test_tokens_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that runs for months would fill up with old answers."""
    monkeypatch.setattr(control_module, "ANSWERS", 4)

    async def scenario(client: Client) -> None:
        await client("init")
        for _ in range(20):
            await client("checksum")
        assert len(client.control._asked) == 4

    run(scenario)


@pytest.mark.parametrize("name", ["perturb", "restore", "update", "release"])
@pytest.mark.parametrize("where", ["", "+", "-", "forget"])
def test_an_error_in_the_middle_ends_at_the_true_weights(name: str, where: str) -> None:
    """A half-made direction or update would be taken for the model by all later candidates."""

    async def scenario(client: Client) -> None:
        await client("init")
        await client("update")
        if name in ("restore", "release"):
            await client("perturb")
        step = "restore" if name == "release" else name
        client.engine.fails = ["forget"] if where == "forget" else [step + where]
        assert await client.refused(name) == "failed"
        status = client.control.status()
        assert status["state"] == ("closed" if name == "release" else "ready")
        assert (status["step"], status["direction"]) == (1, None)
        assert (client.engine.updates, client.engine.direction) == ([UPDATE], None)
        assert client.engine.fresh
        if name != "release":
            await client("perturb")

    run(scenario)


def test_after_a_failed_recovery_only_the_base_weights_help() -> None:
    """Nobody knows what the weights are: every reply would be attributed to others."""

    async def scenario(client: Client) -> None:
        await client("init")
        await client("update")
        client.engine.fails = ["update+", "reset"]
        assert await client.refused("update") == "failed"
        assert client.control.status()["state"] == "broken"
        for name in ("perturb", "restore", "update", "checksum"):
            assert await client.refused(name) == "state"
        assert (await client("init"))["step"] == 0

    assert run(scenario).engine.live == FakeEngine().live


def test_init_begins_with_the_base_weights_whatever_was_before() -> None:
    """The second run on a server would begin where the first one ended."""

    async def scenario(client: Client) -> None:
        await client("init")
        await client("update")
        await client("perturb")
        again = await client("init")
        assert (again["step"], again["updates"], again["state"]) == (0, hash_of([]), "ready")
        await client("update")
        await client("release")
        assert (await client("init", session="next"))["step"] == 0
        assert client.engine.updates == []
        other = await client("init", session="next", scope="norms", restore="exact")
        assert other["scope_elements"] == 2

    assert run(scenario).engine.log.count("open") == 2


@pytest.mark.parametrize("fails", ["open", "open+", "forget"])
def test_a_failed_init_leaves_the_server_to_others(fails: str) -> None:
    """A client that cannot begin would keep the server from those that can."""

    async def scenario(client: Client) -> None:
        client.engine.fails = [fails]
        assert await client.refused("init") == "failed"
        assert await client.refused("init", session="other", scope="none", restore="exact") == "refused"
        assert (await client("init", session="other"))["yours"]
        assert client.engine.live == FakeEngine().live

    run(scenario)


def test_a_second_client_is_refused_until_the_first_has_been_silent() -> None:
    """Two searches would move the same weights, each with half of the updates."""

    async def scenario(client: Client) -> None:
        await client("init")
        client.now = 29.0
        client.control.status("me")  # a sign of life
        client.now = 58.0
        with pytest.raises(Refusal, match="heard of 29 s ago") as refusal:
            await client("init", session="other")
        assert refusal.value.wait_s == pytest.approx(1.0)
        assert await client.refused("perturb", session="other") == "lease"
        client.now = 60.0
        assert (await client("init", session="other"))["yours"]
        assert await client.refused("perturb") == "lease"

    run(scenario)


def test_replies_that_are_being_written_hold_every_operation_off() -> None:
    """The weights would change in the middle of a reply."""

    async def scenario(client: Client) -> None:
        await client("init")
        async with client.control.writing(session="me"):
            client.now = 100.0
            for name in NAMES:
                assert await client.refused(name) == "writing"
        assert await client.refused("init", session="other") == "lease", "the reply was a sign of life"
        assert (await client("perturb"))["writing"] == 0

    run(scenario)


def test_requests_wait_for_an_operation_and_see_the_weights_they_are_meant_for() -> None:
    """A reply would be written by other weights than the client believes, such as those of a restarted server."""

    async def scenario(client: Client) -> None:
        control = client.control
        tag = (await client("init"))["tag"]
        client.engine.held = asyncio.Event()
        moving = asyncio.ensure_future(client("perturb"))
        await asyncio.sleep(0)

        async def write(**meant: Any) -> str:
            async with control.writing(**meant):
                return client.engine.live

        plain, stale = asyncio.ensure_future(write()), asyncio.ensure_future(write(session="me", expect=tag))
        await asyncio.sleep(0.01)
        assert not plain.done()
        client.engine.held.set()
        moved = await moving
        assert await plain == client.engine.live
        with pytest.raises(Refusal, match="not those that the request is meant for"):
            await stale
        assert await write(session="me", expect=moved["tag"]) == client.engine.live
        with pytest.raises(Refusal, match="Another client"):
            await write(session="other")
        assert await client.refused("restore", expect=tag) == "expect"

    run(scenario)


def test_restarted_servers_have_other_boot_ids_and_tags() -> None:
    """A client would go on with a server that has lost its updates."""
    tags = []

    async def scenario(client: Client) -> None:
        tags.append((await client("init"))["tag"])

    clients = [run(scenario), run(scenario)]
    assert clients[0].control.boot != clients[1].control.boot
    assert tags[0] != tags[1]


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("init", {"scope": "full"}),
    ("init", {"scope": 3, "restore": "exact"}),
    *(("perturb", {"seed": seed, "sigma": 0.1}) for seed in (-1, 2**64, 1.0, "1", True, None)),
    *(("perturb", {"seed": 1, "sigma": sigma}) for sigma in (float("nan"), float("inf"), "1", None, True)),
    ("update", {"update": []}),
    ("update", {"update": {**UPDATE, "seeds": []}}),
    ("update", {"update": {**UPDATE, "weights": [1.0]}}),
    ("update", {"update": {**UPDATE, "weights": [1.0, None]}}),
    ("update", {"update": {**UPDATE, "alpha": float("nan")}}),
    ("update", {"update": {**UPDATE, "step": "0"}}),
    ("update", {"update": {**UPDATE, "seeds": 5}}),
    ("export", {"folder": "/", "nonce": "n"}),
    ("export", {"folder": ".", "nonce": "n", "float32": 1}),
]


@pytest.mark.parametrize(("name", "fields"), WRONG)
def test_wrong_arguments_are_refused_before_anything_moves(name: str, fields: dict[str, Any]) -> None:
    """A seed that was cut to 53 bits on the way would move the weights elsewhere."""

    async def scenario(client: Client) -> None:
        await client("init")
        with pytest.raises(Refusal) as refusal:
            await client(name, **fields)
        assert (refusal.value.code, refusal.value.status) == ("invalid", 400)
        assert client.engine.live == FakeEngine().live
        with pytest.raises(Refusal, match="needs a session and a token"):
            await client.control.call("checksum", {}, session="me", token="")

    run(scenario)


def test_exports_go_only_where_the_client_has_left_its_mark(tmp_path: Path) -> None:
    """A server elsewhere would fill a folder of its own of the same name; one here could be made to write anywhere."""

    async def scenario(client: Client) -> None:
        await client("init")
        asked = {"folder": str(tmp_path), "nonce": "abc"}
        with pytest.raises(Refusal, match="does not see the folder"):
            await client("export", **asked)
        (tmp_path / NONCE).write_text("abc")
        await client("export", **asked, float32=True)
        client.engine.fails = ["export"]
        assert await client.refused("export", **asked) == "failed"
        assert client.control.status()["state"] == "ready"

    run(scenario)
    assert (tmp_path / "weights.json").read_text() == "[[], true]"
