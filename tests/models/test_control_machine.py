"""Any sequence of requests by two clients, with errors, lost answers and silences, against a model of what is true."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_engine import FakeEngine
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from eoh_esopt.models.vllm.arguments import Refusal
from eoh_esopt.models.vllm.control import Control
from eoh_esopt.models.vllm.wire import hash_of

SESSIONS = st.sampled_from(["a", "a", "a", "b"])


def failures(*steps: str) -> st.SearchStrategy[list[str]]:
    """Steps that fail before, in the middle of or after what they do; recovering from that may fail as well."""
    own = [step + where for step in steps for where in ("", "+", "-")]
    return st.one_of(
        st.just([]),
        st.lists(st.sampled_from([*own, "forget"]), max_size=1),
        st.lists(st.sampled_from([*own, "forget", "restore", "restore+", "reset", "reset+"]), max_size=3),
    )


SEEDS = st.integers(0, 2**64 - 1)
LEASE = 30.0


class ControlMachine(RuleBasedStateMachine):
    """The model: what was applied since the base weights, the direction, who holds the server since when."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.engine = FakeEngine()
        self.now = 0.0
        self.control = Control(self.engine, lease_s=LEASE, clock=lambda: self.now)
        self.holder: str | None = None
        self.seen = -1000.0
        self.updates: list[Any] = []
        self.direction: tuple[int, float] | None = None
        self.last: tuple[str, str, str, dict[str, Any]] | None = None
        self.answer: Any = None
        self.count = 0

    def teardown(self) -> None:
        self.loop.close()

    def ask(self, session: str, name: str, **fields: Any) -> dict[str, Any] | str:
        """The answer to a new request, or the code of its refusal."""
        self.count += 1
        self.last = (session, name, f"t{self.count}", fields)
        self.answer = self.send(*self.last)
        if session == self.holder and self.answer not in ("invalid",):
            self.seen = self.now
        return self.answer

    def send(self, session: str, name: str, token: str, fields: dict[str, Any]) -> dict[str, Any] | str:
        try:
            return self.loop.run_until_complete(self.control.call(name, fields, session=session, token=token))
        except Refusal as refusal:
            return refusal.code

    @property
    def state(self) -> str:
        return str(self.control.status()["state"])

    @rule(session=SESSIONS, scope=st.sampled_from(["full", "norms", "none"]), fails=failures("open", "reset"))
    def init(self, session: str, scope: str, fails: list[str]) -> None:
        free = self.holder in (None, session) or self.now - self.seen >= LEASE
        self.engine.fails = fails
        answer = self.ask(session, "init", scope=scope, restore="exact")
        self.engine.fails = []
        if not free:
            assert answer == "lease"
            return
        if scope == "none" or answer == "refused":
            assert answer == "failed" or (scope, answer) == ("none", "refused")
        self.updates, self.direction = [], None
        self.holder = session if isinstance(answer, dict) else None
        self.seen = self.now

    @rule(session=SESSIONS, seed=SEEDS, sigma=st.floats(0, 1), fails=failures("perturb"))
    def perturb(self, session: str, seed: int, sigma: float, fails: list[str]) -> None:
        before = self.state
        self.engine.fails = fails
        answer = self.ask(session, "perturb", seed=seed, sigma=sigma)
        self.engine.fails = []
        if session != self.holder:
            assert answer == "lease"
        elif before != "ready":
            assert answer == "state"
        else:
            assert answer == "failed" or isinstance(answer, dict)
            self.direction = (seed, sigma) if isinstance(answer, dict) else None

    @rule(session=SESSIONS, fails=failures("restore"))
    def restore(self, session: str, fails: list[str]) -> None:
        before = self.state
        self.engine.fails = fails
        answer = self.ask(session, "restore")
        self.engine.fails = []
        if session != self.holder:
            assert answer == "lease"
        elif before == "broken":
            assert answer == "state"
        else:
            self.direction = None

    @rule(session=SESSIONS, seed=SEEDS, fails=failures("update"))
    def update(self, session: str, seed: int, fails: list[str]) -> None:
        before = self.state
        update = {"step": self.count, "seeds": [seed], "rewards": [1.0], "weights": [0.5], "alpha": 0.1, "sigma": 0.1}
        self.engine.fails = fails
        answer = self.ask(session, "update", update=update)
        self.engine.fails = []
        if session != self.holder:
            assert answer == "lease"
        elif before != "ready":
            assert answer == "state"
        elif isinstance(answer, dict):
            self.updates = [*self.updates, update]

    @rule(session=SESSIONS)
    def checksum(self, session: str) -> None:
        before = self.state
        answer = self.ask(session, "checksum")
        if session == self.holder and before == "ready":
            assert isinstance(answer, dict)
            assert answer["checksum"] == hash_of(self.updates)
        else:
            assert answer == ("lease" if session != self.holder else "state")

    @rule(session=SESSIONS, fails=failures("restore"))
    def release(self, session: str, fails: list[str]) -> None:
        self.engine.fails = fails
        answer = self.ask(session, "release")
        self.engine.fails = []
        if session != self.holder:
            assert answer == "lease"
        else:
            self.holder, self.direction = None, None

    @precondition(lambda self: self.last is not None and self.answer not in ("lease", "state", "busy", "writing"))
    @rule()
    def send_again(self) -> None:
        """An attempt whose answer was lost: the same answer, and nothing moves."""
        assert self.last is not None
        before = self.engine.live
        assert self.send(*self.last) == self.answer
        assert self.engine.live == before

    @rule(seconds=st.sampled_from([1.0, 20.0, 31.0]))
    def silence(self, seconds: float) -> None:
        self.now += seconds

    @rule(session=SESSIONS)
    def write(self, session: str) -> None:
        """A reply is only written under what the client believes in."""

        async def scenario() -> str:
            async with self.control.writing(session=session, expect=self.control.tag):
                return self.engine.live

        if session == self.holder:
            assert self.loop.run_until_complete(scenario()) == self.engine.live
            self.seen = self.now
        else:
            with pytest.raises(Refusal, match="Another client"):
                self.loop.run_until_complete(scenario())

    @invariant()
    def the_weights_are_what_the_status_says(self) -> None:
        status = self.control.status()
        if status["state"] == "broken":
            return
        direction = status["direction"]
        assert (direction is None) == (status["state"] != "perturbed")
        assert self.engine.direction == (direction and (direction["seed"], direction["sigma"]))
        assert self.engine.direction == self.direction
        assert self.engine.fresh
        assert (status["step"], status["updates"]) == (len(self.updates), hash_of(self.updates))
        if status["state"] != "closed":
            assert self.engine.updates == self.updates
        assert status["busy"] is None


TestControlMachine = ControlMachine.TestCase
TestControlMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
