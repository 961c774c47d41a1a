"""Where WebArena's sites are, who is logged in there, and how they are put back: a TOML file of the user's.

login = "auth"                                 # folder with shopping_state.json, gitlab_state.json, ...

[[sets]]                                       # one for each browser, or one for all that only read
shopping = "http://web1:7770"
shopping_admin = "http://web1:7780/admin"
reset_urls = ["http://web1:7771/init"]         # each is sent a POST, or
reset_command = ["./reset.sh", "web1"]         # it is run and has to end with 0
reset_seconds = 900                            # limit of either
"""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eoh_esopt.experiments.settings_files import nearest, read_toml
from operators.errors import UserError
from train_adapters.webarena.failures import InfraFailed

SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage")
_OTHERS = ("reset_urls", "reset_command", "reset_seconds")


@dataclass(frozen=True)
class SiteSet:
    """One set of sites.

    Attributes:
        urls: by site; a site without one is not played on.
        login: folder with the login states; None where nobody is logged in.
        reset_urls: each is sent a POST to put the set back.
        reset_command: is run to put the set back.
        reset_seconds: limit of either.
    """

    urls: Mapping[str, str]
    login: Path | None = None
    reset_urls: tuple[str, ...] = ()
    reset_command: tuple[str, ...] = ()
    reset_seconds: float = field(default=900.0)

    @property
    def can_reset(self) -> bool:
        """Whether the set can be put back as it was."""
        return bool(self.reset_urls or self.reset_command)

    def fill(self, text: str) -> str:
        """A text with the addresses of the sites in place of their names, such as `__SHOPPING__`."""
        for site, url in self.urls.items():
            text = text.replace(f"__{site.upper()}__", url.rstrip("/"))
        return text

    def storage_state(self, sites: Iterable[str]) -> dict[str, Any] | None:
        """Cookies and local storage of who is logged in to the sites; None where nobody is.

        Raises:
            UserError: a file cannot be read.
        """
        if self.login is None:
            return None
        found: dict[str, list[Any]] = {"cookies": [], "origins": []}
        for site in sites:
            path = self.login / f"{site}_state.json"
            if not path.exists():
                continue  # the map and the encyclopaedia know no users
            try:
                state = json.loads(path.read_text())
            except (OSError, ValueError) as error:
                raise UserError(f"{path} is no login state: {error}. Make it anew.") from error
            for name, values in found.items():
                values += state.get(name, [])
        return found

    def reset(self) -> None:
        """Put the set back.

        Raises:
            InfraFailed: it did not work.
        """
        try:
            for url in self.reset_urls:
                request = urllib.request.Request(url, method="POST")
                with urllib.request.urlopen(request, timeout=self.reset_seconds):
                    pass
            if self.reset_command:
                done = subprocess.run(self.reset_command, timeout=self.reset_seconds, capture_output=True, text=True)
                if done.returncode:
                    said = " ".join((done.stderr or done.stdout).split())[-300:]
                    raise InfraFailed("site_down", f"{self.reset_command[0]} ended with {done.returncode}: {said}")
        except (urllib.error.URLError, OSError, subprocess.TimeoutExpired) as error:
            raise InfraFailed("site_down", f"the reset failed: {error}") from error


def read_site_sets(path: Path) -> tuple[SiteSet, ...]:
    """The sets of a file.

    Raises:
        UserError: it cannot be read, has no set, or has a key that is not known.
    """
    content = read_toml(path)
    tables = content.pop("sets", [])
    login = content.pop("login", None)
    if content or not isinstance(tables, list) or not tables:
        raise UserError(f"{path} must have [[sets]], at least one, and may have `login`; see docs/webarena.md.")
    folder = None if login is None else (path.parent / str(login)).resolve()
    if folder is not None and not folder.is_dir():
        raise UserError(f"{path}: login names {folder}, which is no folder.")
    return tuple(_site_set(path, table, folder) for table in tables)


def _site_set(path: Path, table: Mapping[str, Any], login: Path | None) -> SiteSet:
    for key in table:
        if key not in SITES + _OTHERS:
            raise UserError(f"{path}: unknown key {key!r} in [[sets]]. {nearest(key, SITES + _OTHERS)}")
    urls = {site: str(table[site]) for site in SITES if site in table}
    if not urls:
        raise UserError(f"{path}: a set names no site. Give at least one of {', '.join(SITES)}.")
    return SiteSet(
        urls,
        login,
        _texts(path, "reset_urls", table),
        _texts(path, "reset_command", table),
        float(table.get("reset_seconds", 900)),
    )


def _texts(path: Path, name: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    values: Sequence[Any] = table.get(name, [])
    if isinstance(values, str) or not all(isinstance(one, str) for one in values):
        raise UserError(f"{path}: {name} must be a list of texts, not {values!r}.")
    return tuple(values)
