"""Rounds and the free pace: who waits for whom, and that neither changes what is played."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from training_cases import CountAdapter, CountDown, OneDirection, drawn, settings, train

from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.protocol import Reply, Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from operators.records import Direction
from train_adapters.adapter import AgentTask, Ending, Episode
from train_adapters.pace import FREE, PACES, ROUNDS
from train_adapters.rollout import Job, Table, play

NORTH, SOUTH = Direction(11, 0.1), Direction(22, 0.1)


def played(adapter: CountAdapter, model: ScriptedModel, pace: str, told: list[int] | None = None) -> list[Episode]:
    jobs = [Job(task, 0, one) for one in (NORTH, SOUTH) for task in adapter.tasks("train")]
    tell = (lambda count: None) if told is None else told.append
    return play(Table(adapter, model, 5, Timekeeper(model, None, Timings()), tell, pace=pace), jobs, "train/0")


@pytest.mark.parametrize("model", [ScriptedModel, OneDirection])
def test_the_same_is_played_at_both_paces(model: type[ScriptedModel]) -> None:
    """Else the pace is no matter of time alone, and what was learnt at one cannot be compared with the other."""
    told: list[int] = []
    rounds, free = (played(CountAdapter(), model(drawn), pace, told) for pace in (ROUNDS, FREE))
    assert rounds == free
    assert sum(told) == 2 * len(rounds)


class Waits(CountDown):
    """An episode whose first step waits until the others are over."""

    def __init__(self, target: int, tell: Any, others_over: asyncio.Event | None) -> None:
        super().__init__(target, tell)
        self._others_over = others_over

    async def step(self, action: int | None) -> None:
        if self._others_over is not None:
            await asyncio.wait_for(self._others_over.wait(), 30)
        await super().step(action)


class OneWaits(CountAdapter):
    """All episodes but the first one of NORTH take several turns, and that one waits for them in its first."""

    def __init__(self) -> None:
        super().__init__()
        self._made = 0
        self._over = asyncio.Event()
        self._closed = 0

    def environment(self, task: AgentTask) -> CountDown:
        self._made += 1
        waits = self._over if self._made == 1 else None
        return Waits(task.payload["target"], lambda moment: self._tell(moment, waits is None), waits)

    def _tell(self, moment: str, other: bool) -> None:
        self._closed += other and moment == "close"
        if self._closed == 9:
            self._over.set()


class OneWaitsABit(OneWaits):
    """The same, in rounds that wait for a tenth of a second."""

    patience = 0.1


@pytest.mark.parametrize("pace", PACES)
def test_a_slow_step_holds_nobody_up(pace: str) -> None:
    """Else one tool call of twenty seconds holds up hundreds of episodes, again and again."""
    episodes = played(OneWaitsABit(), ScriptedModel(lambda request, number: "1"), pace)
    assert [episode.ending for episode in episodes[:2]] == [Ending.SCORED, Ending.SCORED]
    assert {episode.turns for episode in episodes} == {3, 4}
    late = [episode.late for episode in episodes]
    assert late == [pace == ROUNDS, *[0] * 9], "each late step is counted once, however many rounds it lasts"


def test_rounds_wait_where_all_steps_are_slow() -> None:
    """Else episodes fall apart into rounds of one, and a training no longer repeats itself where pages load slowly."""

    class Slow(CountDown):
        async def step(self, action: int | None) -> None:
            await asyncio.sleep(0.2 + 0.04 * self.left)
            await super().step(action)

    class AllSlow(CountAdapter):
        patience = 0.01

        def environment(self, task: AgentTask) -> CountDown:
            return Slow(task.payload["target"], lambda moment: None)

    model = ScriptedModel(lambda request, number: "1")
    episodes = played(AllSlow(), model, ROUNDS)
    assert {(episode.ending.counts, episode.late) for episode in episodes} == {(True, 0)}
    assert model.batch_sizes[0] == 10


def test_what_fails_while_late_stops_the_rounds() -> None:
    """Else a program that only needs to be installed is not named until every other episode is over, or never."""

    class Fails(Waits):
        async def step(self, action: int | None) -> None:
            await asyncio.sleep(0.3)
            raise UserError("Install it.")

    class OneFails(OneWaitsABit):
        def environment(self, task: AgentTask) -> CountDown:
            kind = Fails if task.id == "train-0" else CountDown
            return kind(task.payload["target"], lambda moment: None, *([None] if kind is Fails else []))

    with pytest.raises(UserError, match=r"Install it\."):
        played(OneFails(), ScriptedModel(lambda request, number: "no number"), ROUNDS)


def test_episodes_step_while_the_model_writes() -> None:
    """Else the model's time and the tools' time add up."""
    stepped = threading.Event()

    class Steps(CountDown):
        async def step(self, action: int | None) -> None:
            await asyncio.sleep(0.1)
            stepped.set()
            await super().step(action)

    class Mixed(CountAdapter):
        def environment(self, task: AgentTask) -> CountDown:
            kind = Steps if task.id == "train-0" else CountDown
            return kind(task.payload["target"], lambda moment: None)

    class Slow(ScriptedModel):
        waited = False

        def generate(self, requests: Sequence[Request]) -> list[Reply]:
            if self.batch_sizes and not self.waited:
                self.waited = True
                assert stepped.wait(30), "the step of the first task did not go on"
            return super().generate(requests)

    model = Slow(lambda request, number: "1")
    played(Mixed(), model, FREE)
    assert model.waited


def test_the_model_is_asked_by_one_thread_at_a_time() -> None:
    """Else two batches move the weights at once."""
    busy = threading.Lock()

    class Alone(ScriptedModel):
        def generate(self, requests: Sequence[Request]) -> list[Reply]:
            assert busy.acquire(blocking=False)
            try:
                return super().generate(requests)
            finally:
                busy.release()

    before = threading.active_count()
    played(CountAdapter(), Alone(drawn), FREE)
    assert threading.active_count() == before, "the model may be closed: nobody asks it any more"


def test_batches_are_filled_at_the_free_pace() -> None:
    """Else episodes are written one by one, which takes many times as long."""
    model = ScriptedModel(lambda request, number: "no number")
    played(CountAdapter(), model, FREE)
    assert model.batch_sizes == [10, 10, 10, 10]


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("moment", ["reset", "step", "score"])
def test_what_the_user_must_mend_stops_both(pace: str, moment: str) -> None:
    """Else a training goes on for hours without a program that only needs to be installed, or leaves episodes open."""

    def fails(task: AgentTask, at: str, count: int) -> None:
        if at == moment and task.id == "train-3":
            raise UserError("Install it.")

    adapter = CountAdapter(fails=fails)
    with pytest.raises(UserError, match=r"Install it\."):
        played(adapter, ScriptedModel(lambda request, number: "3"), pace)
    for task in adapter.tasks("train"):
        assert adapter.seen.get((task.id, "close"), 0) == adapter.seen.get((task.id, "reset"), 0)


@pytest.mark.parametrize("pace", PACES)
def test_environments_are_closed_when_the_model_is_gone(pace: str) -> None:
    """Else browsers and containers outlive the training."""

    class Gone(ScriptedModel):
        def generate(self, requests: Sequence[Request]) -> list[Reply]:
            raise UserError("The server is gone.")

    adapter = CountAdapter()
    with pytest.raises(UserError, match="gone"):
        played(adapter, Gone(drawn), pace)
    assert [adapter.seen[f"train-{i}", "close"] for i in range(5)] == [2] * 5


def test_a_training_at_the_free_pace_ends_in_the_same_weights(tmp_path: Path) -> None:
    """Else the pace changes what is learnt even where replies do not depend on their batch."""
    rounds, free = (train(tmp_path / pace, settings(pace=pace)) for pace in (ROUNDS, FREE))
    for name in ("weights_after", "ledger", "evaluations"):
        assert rounds[name] == free[name]


def test_a_training_at_the_free_pace_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Else what was played is played again, or a resumed training learns something else."""

    class Stops(OneDirection):
        def generate(self, requests: Sequence[Request]) -> list[Reply]:
            if len(self.requests) > 60:
                raise UserError("The server is gone.")
            return super().generate(requests)

    free = settings(pace=FREE)
    stopped, fresh, model = Stops(drawn), OneDirection(drawn), OneDirection(drawn)
    with pytest.raises(UserError, match="gone"):
        train(tmp_path / "stopped", free, model=stopped)
    resumed, whole = train(tmp_path / "stopped", free, model=fresh), train(tmp_path / "whole", free, model=model)
    for name in ("weights_after", "ledger", "evaluations"):
        assert resumed[name] == whole[name]
    assert len(fresh.requests) < len(model.requests)


def test_an_unknown_pace_is_refused() -> None:
    """Else a slip of the pen is taken for rounds."""
    with pytest.raises(UserError, match=r"Unknown pace 'fast'.*rounds, free"):
        settings(pace="fast")
