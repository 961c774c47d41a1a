"""Episodes side by side: seeds, waves, endings, and replies of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_cases import CountAdapter, OneDirection, drawn

from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.protocol import Reply, Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from operators.records import Direction
from train_adapters.adapter import AgentFailed, AgentTask, Ending, Episode
from train_adapters.rollout import Job, Table, play, waves
from train_adapters.seeds import turn_seed

NORTH, SOUTH = Direction(11, 0.1), Direction(22, 0.1)


def table(model: ScriptedModel, adapter: CountAdapter, seed: int = 5) -> Table:
    return Table(adapter, model, seed, Timekeeper(model, None, Timings()))


def jobs(adapter: CountAdapter, *directions: Direction | None, samples: int = 1) -> list[Job]:
    tasks = adapter.tasks("train")
    return [Job(task, sample, one) for one in directions for task in tasks for sample in range(samples)]


def say(text: str) -> ScriptedModel:
    return ScriptedModel(lambda request, number: text)


def one_episode(model: ScriptedModel, adapter: CountAdapter | None = None) -> Episode:
    adapter = adapter or CountAdapter()
    [episode] = play(table(model, adapter), jobs(adapter, NORTH)[:1], "train/0")
    return episode


def failing(moment: str, error: Exception, times: int) -> Callable[[AgentTask, str, int], None]:
    def fails(task: AgentTask, at: str, count: int) -> None:
        if at == moment and count <= times:
            raise error

    return fails


def test_directions_share_the_seeds_of_their_replies() -> None:
    """Else directions differ by how the dice fell, and the updates learn the dice."""
    adapter, model = CountAdapter(), say("")
    play(table(model, adapter), jobs(adapter, NORTH, SOUTH, samples=2), "train/3")
    seeds: dict[Direction | None, list[tuple[str, int]]] = {}
    for request in model.requests:
        seeds.setdefault(request.direction, []).append((request.prompt, request.seed))
    assert seeds[NORTH] == seeds[SOUTH]
    of_one = [seed for _, seed in seeds[NORTH]]
    assert len(set(of_one)) == len(of_one) == 5 * 2 * 4, "tasks, samples and turns have their own"


@given(
    st.lists(st.tuples(st.text(), st.text(max_size=3), st.integers(0, 3), st.integers(0, 3)), unique=True, max_size=9)
)
def test_every_turn_has_its_own_seed(places: list[tuple[str, str, int, int]]) -> None:
    """Else two replies are drawn alike, as where a row's number and a turn's add up to the same."""
    found = {turn_seed(1, place.replace("/", ""), task, sample, turn) for place, task, sample, turn in places}
    assert len(found) == len({(place.replace("/", ""), *rest) for place, *rest in places})
    assert all(0 <= seed < 2**64 for seed in found)


def test_another_run_has_other_seeds() -> None:
    """Else repetitions of a training are no repetitions."""
    assert turn_seed(1, "train/0", "a", 0, 0) != turn_seed(2, "train/0", "a", 0, 0)
    assert turn_seed(1, "train/0", "a", 0, 0) != turn_seed(1, "train/1", "a", 0, 0)


def test_a_wave_holds_what_a_batch_holds() -> None:
    """Else weights are moved for every episode, or a kill costs more than the episodes in flight."""
    adapter = CountAdapter()
    both = jobs(adapter, NORTH, SOUTH)
    assert waves(ScriptedModel(drawn), both) == [both]
    assert waves(OneDirection(drawn), both) == [both[:5], both[5:]]
    assert waves(OneDirection(drawn), jobs(adapter, None)) == [jobs(adapter, None)]


def test_a_direction_is_not_torn() -> None:
    """Else half a direction's episodes are lost where the model's batches are small."""

    class Small(ScriptedModel):
        def batches(self, requests: Any) -> list[list[int]]:
            return [[place] for place in range(len(requests))]

    adapter = CountAdapter()
    both = jobs(adapter, NORTH, SOUTH)
    assert waves(Small(drawn), both) == [both[:5], both[5:]]


def test_each_round_asks_the_model_once() -> None:
    """Else episodes are written one by one, which takes many times as long."""
    adapter = CountAdapter()
    model = say("no number")
    play(table(model, adapter), jobs(adapter, NORTH, SOUTH), "train/0")
    assert model.batch_sizes == [10, 10, 10, 10]


def test_an_episode_that_comes_to_its_end_is_scored() -> None:
    """Else successes are not learnt from."""
    episode = one_episode(say("3"))
    assert (episode.ending, episode.reward, episode.reason) == (Ending.SCORED, 1.0, "")
    assert (episode.turns, episode.unparsed, episode.minimum_horizon) == (1, 0, 1)
    assert episode.new_tokens == 1
    assert episode.prompt_tokens == len("train-0: 3 left")


@pytest.mark.parametrize(
    "reply", ["", "x" * 100_000, "<think>3 or 4? I do not know", "³", "٣", "\x00\ud800", "{" * 5_000], ids=range(7)
)
def test_a_reply_without_an_action_is_a_turn_spent(reply: str) -> None:
    """Else a strange reply ends the training, or is taken for an action."""
    episode = one_episode(say(reply))
    assert (episode.ending, episode.turns, episode.unparsed) == (Ending.AGENT_FAILED, 4, 4)
    assert episode.reward == pytest.approx(-0.3)
    assert episode.reason == "not done after 4 turns"


def test_an_agent_that_spoils_the_episode_gets_what_it_earned() -> None:
    """Else an agent may choose to fail rather than to score badly."""
    episode = one_episode(say("9"))
    assert (episode.ending, episode.reason, episode.turns) == (Ending.AGENT_FAILED, "overshot", 1)
    assert episode.reward == pytest.approx(-0.6)


def test_a_prompt_that_fills_the_context_ends_the_episode() -> None:
    """Else all its turns are spent on empty replies."""

    class Full(ScriptedModel):
        def generate(self, requests: Any) -> list[Reply]:
            return [Reply("", 9, 0, truncated=True) for _ in requests]

    episode = one_episode(Full(drawn))
    assert (episode.ending, episode.turns) == (Ending.AGENT_FAILED, 1)
    assert "context" in episode.reason


@pytest.mark.parametrize("moment", ["reset", "step"])
def test_a_failure_of_ours_is_tried_once_more(moment: str) -> None:
    """Else one lost connection costs an episode, or what the first try did is scored."""
    adapter = CountAdapter(fails=failing(moment, ConnectionError("gone"), 1))
    episode = one_episode(say("3"), adapter)
    assert (episode.ending, episode.reward, episode.turns) == (Ending.SCORED, 1.0, 1)
    assert adapter.seen["train-0", "close"] == 2, "every environment is closed"


@pytest.mark.parametrize("moment", ["reset", "step"])
def test_a_failure_that_stays_is_left_out(moment: str) -> None:
    """Else the agent is punished for the machine's failures."""
    adapter = CountAdapter(fails=failing(moment, ConnectionError("gone"), 99))
    episode = one_episode(say("3"), adapter)
    assert (episode.ending, episode.reward) == (Ending.INFRA_FAILED, None)
    assert episode.reason == "ConnectionError: gone"
    assert adapter.seen["train-0", "close"] == 2


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), None])
def test_a_judge_that_fails_is_told_apart(reward: float | None) -> None:
    """Else a broken scorer looks like a bad agent, or a reward that is no number ends the training."""

    class Judge(CountAdapter):
        async def score(self, task: AgentTask, environment: Any) -> float:
            return reward  # type: ignore[return-value]

    episode = one_episode(say("3"), Judge())
    assert (episode.ending, episode.reward) == (Ending.JUDGE_FAILED, None)
    assert episode.reason


def test_what_closing_raises_does_not_change_the_outcome() -> None:
    """Else an episode that was won is lost on its way out, or a leak is not told."""
    episode = one_episode(say("3"), CountAdapter(fails=failing("close", OSError("stuck"), 9)))
    assert (episode.ending, episode.reward) == (Ending.SCORED, 1.0)
    assert episode.reason == "closing: OSError: stuck"


@pytest.mark.parametrize("moment", ["reset", "step", "score"])
def test_what_the_user_must_mend_stops_the_training(moment: str) -> None:
    """Else a training goes on for hours without a browser that only needs to be installed."""
    adapter = CountAdapter(fails=failing(moment, UserError("Install it."), 9))
    with pytest.raises(UserError, match=r"Install it\."):
        one_episode(say("3"), adapter)
    assert adapter.seen["train-0", "close"] == 1


def test_environments_are_closed_when_the_model_is_gone() -> None:
    """Else browsers and containers outlive the training."""

    class Gone(ScriptedModel):
        def generate(self, requests: Any) -> list[Reply]:
            raise UserError("The server is gone.")

    adapter = CountAdapter()
    with pytest.raises(UserError, match="gone"):
        play(table(Gone(drawn), adapter), jobs(adapter, NORTH), "train/0")
    assert [adapter.seen[f"train-{i}", "close"] for i in range(5)] == [1] * 5


def test_tokens_of_a_first_try_are_counted() -> None:
    """Else the cost of failures is not seen."""

    def fails(task: AgentTask, moment: str, count: int) -> None:
        if moment == "step" and count == 2:
            raise ConnectionError("gone")

    turns = iter("1113")

    def write(request: Request, number: int) -> str:
        return next(turns)

    episode = one_episode(ScriptedModel(write), CountAdapter(fails=fails))
    assert episode.new_tokens == 4
    assert episode.turns == 2, "of the second try"


def test_agent_failed_is_no_failure_of_ours() -> None:
    """Else a spoilt episode is played a second time, with a second chance."""
    adapter = CountAdapter(fails=failing("step", AgentFailed("five wrong replies"), 1))
    episode = one_episode(say("3"), adapter)
    assert (episode.ending, episode.reason) == (Ending.AGENT_FAILED, "five wrong replies")
    assert adapter.seen["train-0", "reset"] == 1
