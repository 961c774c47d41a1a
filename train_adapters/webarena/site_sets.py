"""Where WebArena's sites are, who is logged in there, and how they are put back: a TOML file of the user's.

accounts = "published"                         # those of the images are logged in; or [accounts] with others
login = "auth"                                 # or folder with shopping_state.json, gitlab_state.json, ...

[[sets]]                                       # one for each browser, or one for all that only read
shopping = "http://web1:7770"
shopping_admin = "http://web1:7780/admin"
reset_urls = ["http://web1:7771/init"]         # each is sent a POST, or
reset_command = ["./reset.sh", "web1"]         # it is run and has to end with 0
reset_seconds = 900                            # limit of either

[accounts]
shopping = ["user", "password"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eoh_esopt.experiments.settings_files import nearest, read_toml
from operators.errors import UserError
from train_adapters.webarena.accounts import Account, read_accounts
from train_adapters.webarena.resets import reset_by_command, reset_by_request

SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage")
_OTHERS = ("reset_urls", "reset_command", "reset_seconds")


@dataclass(frozen=True)
class SiteSet:
    """One set of sites.

    Attributes:
        urls: by site; a site without one is not played on.
        login: folder with login states; None where there is none.
        accounts: by site, who is logged in where there is no such state.
        reset_urls: each is sent a POST to put the set back.
        reset_command: is run to put the set back.
        reset_seconds: limit of either.
    """

    urls: Mapping[str, str]
    login: Path | None = None
    accounts: Mapping[str, Account] = field(default_factory=dict)
    reset_urls: tuple[str, ...] = ()
    reset_command: tuple[str, ...] = ()
    reset_seconds: float = 900.0

    @property
    def can_reset(self) -> bool:
        """Whether the set can be put back as it was."""
        return bool(self.reset_urls or self.reset_command)

    def fill(self, text: str) -> str:
        """A text with the addresses of the sites in place of their names, such as `__SHOPPING__`."""
        for site, url in self.urls.items():
            text = text.replace(f"__{site.upper()}__", url.rstrip("/"))
        return text

    def reset(self) -> None:
        """Put the set back.

        Raises:
            InfraFailed: it did not work.
        """
        for url in self.reset_urls:
            reset_by_request(url, self.reset_seconds)
        if self.reset_command:
            reset_by_command(self.reset_command, self.reset_seconds)


def read_site_sets(path: Path) -> tuple[SiteSet, ...]:
    """The sets of a file.

    Raises:
        UserError: it cannot be read, has no set, or has a key that is not known.
    """
    content = read_toml(path)
    tables = content.pop("sets", [])
    login, accounts = content.pop("login", None), content.pop("accounts", {})
    if content or not isinstance(tables, list) or not tables:
        raise UserError(
            f"{path} must have [[sets]], at least one, and may have `accounts` and `login`; see docs/webarena.md."
        )
    folder = None if login is None else (path.parent / str(login)).resolve()
    if folder is not None and not folder.is_dir():
        raise UserError(f"{path}: login names {folder}, which is no folder.")
    known = read_accounts(path, accounts)
    return tuple(_site_set(path, table, folder, known) for table in tables)


def _site_set(path: Path, table: Mapping[str, Any], login: Path | None, accounts: Mapping[str, Account]) -> SiteSet:
    for key in table:
        if key not in SITES + _OTHERS:
            raise UserError(f"{path}: unknown key {key!r} in [[sets]]. {nearest(key, SITES + _OTHERS)}")
    urls = {site: str(table[site]) for site in SITES if site in table}
    if not urls:
        raise UserError(f"{path}: a set names no site. Give at least one of {', '.join(SITES)}.")
    reset_urls, reset_command = (_texts(path, name, table) for name in ("reset_urls", "reset_command"))
    for url in (*urls.values(), *reset_urls):
        if not url.startswith(("http://", "https://")):
            raise UserError(f"{path}: the address {url!r} does not begin with http:// or https://.")
    seconds = table.get("reset_seconds", 900)
    if type(seconds) not in (int, float) or not seconds > 0:
        raise UserError(f"{path}: reset_seconds must be a number above 0, not {seconds!r}.")
    return SiteSet(urls, login, accounts, reset_urls, reset_command, float(seconds))


def _texts(path: Path, name: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    values: Sequence[Any] = table.get(name, [])
    if isinstance(values, str) or not all(isinstance(one, str) for one in values):
        raise UserError(f"{path}: {name} must be a list of texts, not {values!r}.")
    return tuple(values)
