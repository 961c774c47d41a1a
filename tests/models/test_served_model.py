"""Several servers behind one model: work is spread, updates reach all, and servers die and come back."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_served import KEY, FakeServed

from eoh_esopt.models import served_fleet, served_link
from eoh_esopt.models.endpoint import PartialReplies
from eoh_esopt.models.protocol import Reply, Request, Sampling
from eoh_esopt.models.selftest import self_test
from eoh_esopt.models.served_model import ServedModel
from eoh_esopt.models.vllm import wire
from eoh_esopt.models.vllm.wire import API_KEY, server_urls
from operators.errors import UserError
from operators.records import Direction, Update

Servers = list[FakeServed]
DIRECTIONS = [Direction(2**64 - 1 - i, 0.5) for i in range(6)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY, KEY)
    monkeypatch.setattr(served_fleet, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(served_link, "FIRST_WAIT_S", 0.01)


@pytest.fixture
def servers() -> Iterator[Servers]:
    with FakeServed() as one, FakeServed() as two, FakeServed() as three:
        yield [one, two, three]


@contextmanager
def opened(*servers: FakeServed, **settings: Any) -> Iterator[ServedModel]:
    """A model on these servers; what it says goes to `said`."""
    values: dict[str, Any] = {"scope": "full", "sampling": Sampling(max_new_tokens=20), "max_batch": 4}
    values |= {"model": "small", "patience_s": 5.0, **settings}
    model = ServedModel(",".join(server.url for server in servers), **values)
    try:
        yield model
    finally:
        model.close()


def an_update(step: int) -> Update:
    return Update(step, (step, 2**64 - 1), (1.0, 0.25), (1.0, -1.0), 0.1, 0.01)


def requests(directions: list[Direction | None], each: int = 3) -> list[Request]:
    return [
        Request(f"prompt {i}", "def f():\n" if i % 2 else "", 2**64 - 1 - i, direction)
        for i, direction in enumerate(direction for direction in directions for _ in range(each))
    ]


def soon(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


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


def test_a_server_that_dies_loses_its_work_to_the_others_and_comes_back(servers: Servers) -> None:
    """A candidate would be blamed for a server's failure, or the server would go on without the updates."""
    one, two, _ = servers
    asked, said = requests([None, *DIRECTIONS]), []
    with opened(one, two, notify=said.append) as model:
        expected = model.generate(asked)
        base = model.checksum()
        model.apply(an_update(0))
        moved = model.generate(asked)
        assert moved != expected

        def dies(path: str) -> None:
            if path == "/v1/completions" and two.engine.direction:
                two.die()

        one.delay_s, two.before = 0.01, dies
        assert model.generate(asked) == moved
        assert "Server " + two.url in said[-1]
        model.apply(an_update(1))
        two.before = lambda path: None
        two.start()
        soon(lambda: "is back, with 2 updates" in said[-1])
        assert two.engine.updates == one.engine.updates
        model.apply(an_update(2))  # and compared with the other
        assert two.calls.count("/eoh/checksum") >= 2
        assert model.checksum() != base
        two.calls.clear()
        model.generate(asked)
        assert "/eoh/perturb" in two.calls


def test_a_lone_server_that_was_restarted_is_brought_up_to_date(servers: Servers) -> None:
    """The rest of the run would be written by the base model."""
    asked = requests([None, *DIRECTIONS[:2]])
    with opened(servers[0]) as model:
        model.checksum()
        model.apply(an_update(0))
        expected, checksum = model.generate(asked), model.checksum()
        servers[0].die()
        servers[0].start()
        assert model.generate(asked) == expected
        assert model.checksum() == checksum
        servers[0].die()
        servers[0].start()
        model.apply(an_update(1))
        assert len(servers[0].engine.updates) == 2


def test_a_server_that_comes_back_with_another_model_gets_no_work(servers: Servers) -> None:
    """Half of the replies would be another model's."""
    one, two, _ = servers
    said: list[str] = []
    with opened(one, two, notify=said.append) as model:
        model.checksum()
        two.die()
        two.base = "other weights"
        two.start()
        model.apply(an_update(0))
        soon(lambda: "began with weights" in said[-1])
        assert len(set(model.generate(requests([None, *DIRECTIONS])))) == 21
        assert model.checksum()


def test_when_no_server_is_left_the_user_is_told_how_to_go_on(servers: Servers) -> None:
    """The run would hang, or end with a traceback; and replies that are there already would be lost."""
    one = servers[0]
    with opened(one, patience_s=0.2) as model:
        count = 0

        def dies(path: str) -> None:
            nonlocal count
            count += path == "/v1/completions"
            if count == 5:
                one.die()

        one.before = dies
        with pytest.raises(PartialReplies, match=r"No server can be used any more .*--resume") as partial:
            model.generate(requests([None, DIRECTIONS[0], DIRECTIONS[1]]))
        assert 3 <= len(partial.value.received) < 9
        with pytest.raises(UserError, match="eoh-esopt serve"):
            model.apply(an_update(0))


def test_work_that_takes_every_server_down_ends_the_run(servers: Servers) -> None:
    """Servers would be restarted and taken down again for ever."""
    with opened(*servers) as model:
        for server in servers:
            server.engine.fails = ["perturb"] * 50
        with pytest.raises(UserError, match="A piece of work failed on 5 servers"):
            model.generate(requests([DIRECTIONS[0]]))


@pytest.mark.parametrize("path", ["/eoh/perturb", "/eoh/restore", "/eoh/update", "/eoh/checksum"])
def test_answers_that_get_lost_are_asked_for_again(servers: Servers, path: str) -> None:
    """An update would be applied twice, or a server taken for dead at the first hiccup."""
    server = servers[0]
    said: list[str] = []
    lost = [path, path]

    def lose(asked: str) -> None:
        if asked in lost:
            lost.remove(asked)
            raise OSError("the connection breaks")

    with opened(server, notify=said.append) as model:
        server.after = lose
        model.generate(requests([DIRECTIONS[0]]))
        model.apply(an_update(0))
        model.checksum()
        assert lost == []
    assert len(server.engine.updates) == 1
    assert server.engine.log.count("perturb") == 1
    assert said == []


def test_errors_on_a_server_leave_no_trace(servers: Servers) -> None:
    """An update that broke off half-way would stay in one server's weights."""
    one, two, _ = servers
    asked = requests([None, *DIRECTIONS])
    with opened(one, two) as model:
        model.checksum()
        expected = model.generate(asked)
        one.engine.fails = ["perturb+", "restore+", "forget"]
        assert model.generate(asked) == expected
        one.engine.fails = ["update+"]
        model.apply(an_update(0))
        soon(lambda: one.engine.updates == two.engine.updates)
        model.checksum()


def test_a_second_client_is_kept_out_and_a_killed_one_only_for_a_while(servers: Servers) -> None:
    """Two searches would move the same weights; but one that was killed must not keep its server for ever."""
    server = servers[0]
    said: list[str] = []
    with opened(server):
        server.control._lease_s = 0.3
        alive = threading.Thread(target=_keeps_alive, args=(server,))
        alive.start()
        with pytest.raises(UserError, match="Another client holds the server"), opened(server):
            pass
        alive.join()
        with opened(server, notify=said.append) as next_one:
            assert next_one.checksum()
    assert "wait until it has been silent" in said[0]


def _keeps_alive(server: FakeServed) -> None:
    session = server.control._holder
    for _ in range(30):
        server.control.status(session or "")
        time.sleep(0.05)


def test_an_interrupt_puts_the_weights_back(servers: Servers) -> None:
    """After Ctrl-C the server would stay under a direction."""
    server = servers[0]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGINT, before)
        _interrupt(server)


def _interrupt(server: FakeServed) -> None:
    with opened(server) as model:
        server.delay_s = 0.5

        def interrupts(path: str) -> None:
            if path == "/v1/completions":
                server.before = lambda path: None
                _thread.interrupt_main()

        server.before = interrupts
        with pytest.raises(KeyboardInterrupt):
            model.generate(requests([DIRECTIONS[0]]))
        assert server.engine.direction is None
    assert server.control.status()["state"] == "closed"


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


def test_servers_that_are_down_at_the_start(servers: Servers) -> None:
    """A resumed run would wait for the server whose death has ended it."""
    said: list[str] = []
    with ExitStack() as stack:
        servers[1].die()
        model = stack.enter_context(opened(*servers[:2], notify=said.append))
        assert servers[1].url in said[0]
        model.checksum()
        model.apply(an_update(0))
        servers[1].start()
        soon(lambda: servers[1].engine.updates == servers[0].engine.updates)
    servers[0].die()
    with pytest.raises(UserError, match=r"No server answers .*eoh-esopt serve --model small"), opened(servers[0]):
        pass


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
