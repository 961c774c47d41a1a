"""Servers that die, come back, lose answers, or are left alone by their client: the run goes on, and nothing shows."""

from __future__ import annotations

import _thread
import signal
import threading
import time
import urllib.request
from contextlib import ExitStack

import pytest
from fake_served import KEY, FakeServed
from served_cases import DIRECTIONS, Servers, an_update, impatient, opened, requests, servers, soon

from eoh_esopt.models import served_link
from eoh_esopt.models.endpoint import PartialReplies
from operators.errors import UserError

__all__ = ["impatient", "servers"]


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
        assert two.calls.count("/eoh/checksum") == 3, "at the start, when it came back, and now"
        assert model.checksum() != base
        two.calls.clear()
        model.generate(asked)
        assert "/eoh/perturb" in two.calls


def test_a_server_that_came_back_with_wrong_weights_begins_again(servers: Servers) -> None:
    """A fault of its memory would stay in its replies until the end of the run."""
    one, two, _ = servers
    said: list[str] = []
    with opened(one, two, notify=said.append) as model:
        model.checksum()
        model.apply(an_update(0))
        two.die()
        two.start()
        model.generate(requests([None, *DIRECTIONS]))
        soon(lambda: "is back" in said[-1])
        two.engine.updates[0] = "a bit has flipped"
        model.apply(an_update(1))
        assert "its weights differ" in said[-1]
        soon(lambda: two.engine.updates == one.engine.updates)
        model.checksum()


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


def test_a_server_that_was_left_under_a_direction_is_put_back(servers: Servers) -> None:
    """What a lost connection has left behind would write the next replies."""
    server = servers[0]
    lost = ["/eoh/restore"] * served_link.ATTEMPTS

    def lose(asked: str) -> None:
        if asked in lost:
            lost.remove(asked)
            raise OSError("the connection breaks")

    with opened(server) as model:
        expected = model.generate(requests([DIRECTIONS[0], None]))
        server.before = lose
        assert model.generate(requests([DIRECTIONS[0], None])) == expected
        assert lost == []


def test_replies_for_others_are_waited_for(servers: Servers) -> None:
    """Somebody who tries the model in a browser would end the run."""
    server = servers[0]
    said: list[str] = []
    with opened(server, notify=said.append) as model:
        server.delay_s = 0.4
        body = b'{"prompt": [1], "max_tokens": 1}'
        asked = urllib.request.Request(f"{server.url}/v1/completions", body, {"Authorization": f"Bearer {KEY}"})
        answers: list[int] = []
        other = threading.Thread(target=lambda: answers.append(urllib.request.urlopen(asked).status))
        other.start()
        soon(lambda: server.control.status()["writing"] == 1)
        model.apply(an_update(0))
        other.join()
        assert answers == [200]
        assert server.calls.count("/eoh/update") > 1
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
