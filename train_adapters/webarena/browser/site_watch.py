"""What the network tells of an episode. Like `worker.py`, in the browsers' environment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import page_visits  # type: ignore[import-not-found]
import playwright.sync_api as playwright

_STEP = 0.02
"""Seconds between two looks at whether a page has come."""


class SiteWatch:
    """Counts what may change the sites, and knows of pages that do not come.

    Args:
        context: of the episode, Playwright's.
        sites: addresses of the episode's sites. A page of theirs that does not come is not the agent's fault; one from
            elsewhere is, as it need not have gone there. Empty: every page is theirs.
    """

    def __init__(self, context: Any, sites: Sequence[str]) -> None:
        self.writes = 0
        self._context = context
        self._sites = {_origin(one) for one in sites}
        self._coming: list[Any] = []
        self._down: tuple[str, str] | None = None
        self._problem = ""
        context.on("request", self._begun)
        context.on("response", self._answered)
        context.on("requestfinished", self._ended)
        context.on("requestfailed", self._failed)

    @property
    def waits(self) -> bool:
        """Whether a page has been asked for that has not come yet, or will not come."""
        return bool(self._coming or self._down or self._problem)

    def settle(self, until: float) -> str:
        """Wait for the pages that have been asked for.

        Args:
            until: as long, by the monotonic clock.

        Returns:
            What is wrong with a page where no site is to blame; empty where nothing is.

        Raises:
            Failure: a page of the sites does not come, or not in time.
        """
        late = self._late(until)
        down, problem = self._down, self._problem
        self._down, self._problem = None, ""
        url, text = down or (late, "has not come in time")
        if url and self._is_of_the_sites(url):
            raise page_visits.Failure("site_down" if down else "navigation_timeout", f"{url} {text}")
        if late:
            self._give_up()
        return f"{url} {text}" if url else problem

    def _late(self, until: float) -> str:
        """Address of a page that has not come in time; empty where all have."""
        while self._coming and time.monotonic() < until:
            time.sleep(_STEP)
            self._context.cookies()  # lets Playwright tell what has happened meanwhile
        if self._coming:
            return str(self._coming[-1].url)
        for page in self._context.pages:
            try:
                page.wait_for_load_state("domcontentloaded", timeout=max(1.0, 1000 * (until - time.monotonic())))
            except playwright.TimeoutError:
                return str(page.url)
        return ""

    def _give_up(self) -> None:
        for page in self._context.pages:  # a script would wait for the page that does not come
            session = self._context.new_cdp_session(page)
            session.send("Page.stopLoading")
            session.detach()
        self._coming.clear()

    def _is_of_the_sites(self, url: str) -> bool:
        return not self._sites or _origin(url) in self._sites

    def _begun(self, request: Any) -> None:
        self.writes += request.method not in ("GET", "HEAD", "OPTIONS")
        if _is_for_a_page(request):
            self._coming.append(request)

    def _answered(self, response: Any) -> None:
        if response.request in self._coming and response.status in page_visits.STATUSES_OF_A_SITE_THAT_IS_DOWN:
            self._down = response.url, f"answers with status {response.status}"

    def _ended(self, request: Any) -> None:
        if request in self._coming:
            self._coming.remove(request)

    def _failed(self, request: Any) -> None:
        if request in self._coming:
            self._coming.remove(request)
            if request.failure == "net::ERR_CACHE_MISS":
                self._problem = f"{request.url} answered a form, which is not sent again to go there"
            elif request.failure != "net::ERR_ABORTED":  # a download, or another page that was asked for instead
                self._down = request.url, f"is not to be had: {request.failure}"


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url)[:2]


def _is_for_a_page(request: Any) -> bool:
    """Rather than for a part of one, such as a picture or a frame."""
    if not request.is_navigation_request():
        return False
    try:
        return request.frame.parent_frame is None
    except playwright.Error:  # of a tab that is not there yet
        return True
