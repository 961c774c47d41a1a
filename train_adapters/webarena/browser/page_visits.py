"""Going to pages, and what fails there by no fault of the agent's. Like `worker.py`, in the browsers' environment."""

from __future__ import annotations

from typing import Any

import playwright.sync_api as playwright

STATUSES_OF_A_SITE_THAT_IS_DOWN = (502, 503, 504)


class Failure(Exception):
    """What is not the agent's fault.

    Args:
        kind: `site_down`, `navigation_timeout`, `login_failed`, `browser_crashed` or `bad_request`.
        text: for people.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def goto(page: Any, url: str, timeout: float) -> int:
    """Go to a page.

    Returns:
        The status of the answer.

    Raises:
        Failure: the site does not answer, or not in time.
    """
    try:
        response = page.goto(url, timeout=timeout, wait_until="domcontentloaded")
    except playwright.TimeoutError as error:
        raise Failure("navigation_timeout", f"{url} took longer than {timeout / 1000:g} s") from error
    except playwright.Error as error:
        if "net::" in str(error):
            raise Failure("site_down", short(error)) from error
        raise
    if response is not None and response.status in STATUSES_OF_A_SITE_THAT_IS_DOWN:
        raise Failure("site_down", f"{url} answers with status {response.status}")
    return 200 if response is None else int(response.status)  # none where the page is the same but for its fragment


def short(error: BaseException) -> str:
    """What it says, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
