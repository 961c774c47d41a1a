"""Who is logged in in a browser: login states from files, or sessions of accounts that are logged in here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from operators.errors import UserError
from train_adapters.webarena.browser.client import Browser
from train_adapters.webarena.site_sets import SiteSet


class Logins:
    """The sessions of one browser on a set of sites. Each browser has its own: an agent may log out.

    Args:
        sites: the set.
    """

    def __init__(self, sites: SiteSet) -> None:
        self._sites = sites
        self._sessions: dict[str, Any] = {}

    def state(self, names: Iterable[str], browser: Browser) -> dict[str, Any] | None:
        """Cookies and local storage of who is logged in to some sites, as Playwright has them; None where nobody is.

        A site with a file in the folder of login states is given those; else its account is logged in, unless it still
        is since the last time.

        Raises:
            InfraFailed: an account could not be logged in.
            UserError: a file cannot be read.
        """
        if self._sites.login is None and not self._sites.accounts:
            return None
        found: dict[str, list[Any]] = {"cookies": [], "origins": []}
        for site in names:
            state = self._state_of(site, browser)
            for name, values in found.items():
                values += state.get(name, [])
        return found

    def forget(self) -> None:
        """The sites have been put back, and may know no session any more."""
        self._sessions.clear()

    def _state_of(self, site: str, browser: Browser) -> dict[str, Any]:
        path = None if self._sites.login is None else self._sites.login / f"{site}_state.json"
        if path is not None and path.exists():
            return read_state(path)
        account = self._sites.accounts.get(site)
        if account is None:
            return {}
        url, known = self._sites.urls[site].rstrip("/"), self._sessions.pop(site, None)
        told = browser.call(
            "login", site=site, url=url, user=account.user, password=account.password, storage_state=known
        )
        self._sessions[site] = told["storage_state"]
        return self._sessions[site]  # type: ignore[no-any-return]


def read_state(path: Path) -> dict[str, Any]:
    """A login state of a file.

    Raises:
        UserError: it cannot be read.
    """
    try:
        state = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is no login state: {error}. Make it anew.") from error
    if not isinstance(state, dict):
        raise UserError(f"{path} is no login state, which is a table with cookies and origins. Make it anew.")
    return state
