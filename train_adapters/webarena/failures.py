"""What goes wrong by no fault of the agent's: typed, and noted by site, so that a dead one is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

KINDS = (
    "site_down",
    "navigation_timeout",
    "login_failed",
    "reset_failed",
    "browser_crashed",
    "browser_error",
    "worker_lost",
    "worker_timeout",
    "circuit_open",
    "no_browser",
    "slow_site",
    "slow_model",
)
"""Every kind of `InfraFailed`."""

_OF_THE_SITE = ("site_down", "navigation_timeout", "login_failed", "reset_failed")


class InfraFailed(Exception):
    """The browser's or the site's fault, not the agent's.

    Args:
        kind: one of `KINDS`: the site does not answer, or a page not in time; nobody could be logged in;
            the sites could not be put back; the browser crashed, or failed otherwise;
            its worker ended, or did not answer; the site's circuit is open; no browser came free;
            the episode took too long, most of it on pages or waiting for the model.
        text: for people.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind

    @property
    def of_the_site(self) -> bool:
        """Whether the site is to blame rather than the browser."""
        return self.kind in _OF_THE_SITE


class JudgeFailed(Exception):
    """The judge's fault: the episode is left out of the rewards.

    Args:
        text: for people.
    """

    kind = "judge"


@dataclass
class _Circuit:
    failures: int = 0
    closed_at: float = 0.0


class Breaker:
    """A circuit breaker for each site: after some failures in a row it opens, and nobody waits for the site.

    Args:
        limit: failures in a row that open a circuit, at least 1.
        seconds: how long it stays open; then one episode tries, and opens it again or closes it.
        clock: seconds, of any origin.
    """

    def __init__(self, limit: int = 3, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._seconds, self._clock = limit, seconds, clock
        self._circuits: dict[str, _Circuit] = {}

    def check(self, sites: Iterable[str]) -> None:
        """Refuse an episode that needs a site whose circuit is open.

        Raises:
            InfraFailed: it is.
        """
        for site in sites:
            circuit = self._circuits.setdefault(site, _Circuit())
            if circuit.failures < self._limit:
                continue
            left = circuit.closed_at - self._clock()
            if left > 0:
                raise InfraFailed(
                    "circuit_open", f"{site} failed {circuit.failures} times in a row; the next try is in {left:.0f} s"
                )
            circuit.closed_at = self._clock() + self._seconds  # one tries; the others wait for what becomes of it

    def failed(self, sites: Iterable[str]) -> None:
        """A site did not do its part."""
        for site in sites:
            circuit = self._circuits.setdefault(site, _Circuit())
            circuit.failures += 1
            circuit.closed_at = self._clock() + self._seconds

    def worked(self, sites: Iterable[str]) -> None:
        """A site did its part."""
        for site in sites:
            self._circuits[site] = _Circuit()
