"""The circuit breaker of a site, and the table of episodes that were left out."""

from __future__ import annotations

import pytest

from train_adapters.adapter import Ending, Episode
from train_adapters.failures import failure_lines, failures_of
from train_adapters.webarena.failures import Breaker, InfraFailed


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_dead_site_is_left_alone_for_a_while() -> None:
    """Without it every episode of a generation would wait its full time limit for a site that is down."""
    clock = Clock()
    breaker = Breaker(limit=2, seconds=60, clock=clock)
    breaker.failed(["shop"])
    breaker.check(["shop"])
    breaker.failed(["shop"])
    with pytest.raises(InfraFailed, match="shop failed 2 times in a row") as failure:
        breaker.check(["forum", "shop"])
    assert failure.value.kind == "circuit_open"
    breaker.check(["forum"])


def test_one_episode_tries_after_a_while() -> None:
    """A site that is back has to be found out about, but not by all episodes at once."""
    clock = Clock()
    breaker = Breaker(limit=1, seconds=60, clock=clock)
    breaker.failed(["shop"])
    clock.now = 61
    breaker.check(["shop"])
    with pytest.raises(InfraFailed):
        breaker.check(["shop"])
    breaker.worked(["shop"])
    breaker.check(["shop"])


def test_success_forgets_failures() -> None:
    """Failures that lie far apart are no dead site."""
    breaker = Breaker(limit=2)
    for _ in range(5):
        breaker.failed(["shop"])
        breaker.worked(["shop"])
    breaker.check(["shop"])


def episode(group: str, ending: Ending, reason: str = "") -> Episode:
    return Episode("t", 0, ending, 1.0 if ending.counts else None, reason, group=group)


def test_failures_are_counted_by_site_and_cause() -> None:
    """Whoever compares two agents has to see that one of them lost more episodes to a dead site."""
    episodes = [
        episode("shop", Ending.SCORED),
        episode("shop", Ending.INFRA_FAILED, "site_down: refused: twice"),
        episode("shop", Ending.INFRA_FAILED, "site_down: refused"),
        episode("forum", Ending.JUDGE_FAILED, "judge: no answer"),
        episode("forum", Ending.AGENT_FAILED, "not done after 30 turns"),
        episode("", Ending.INFRA_FAILED, "x"),
    ]
    found = failures_of(episodes[:3])
    found = failures_of(episodes[3:], found)
    assert found == {"forum": {"episodes": 2, "judge": 1}, "shop": {"episodes": 3, "site_down": 2}}
    assert dict(failure_lines(found)) == {
        "forum": "1 of 2 left out (50%): 1 judge",
        "shop": "2 of 3 left out (67%): 2 site_down",
    }
