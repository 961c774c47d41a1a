"""Accounts on WebArena's sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eoh_esopt.experiments.settings_files import nearest
from operators.errors import UserError


@dataclass(frozen=True)
class Account:
    """Who is logged in at a site.

    Attributes:
        user: name, or address of e-mail.
        password: is told to nobody but the site.
    """

    user: str
    password: str = field(repr=False)


PUBLISHED: Mapping[str, Account] = {
    "shopping": Account("emma.lopez@gmail.com", "Password.123"),
    "shopping_admin": Account("admin", "admin1234"),
    "reddit": Account("MarvelsGrantMan136", "test1234"),
    "gitlab": Account("byteblaze", "hello1234"),
}
"""Those that the benchmark's images come with, by site. The map and the encyclopaedia know no users."""


def read_accounts(path: Path, value: Any) -> Mapping[str, Account]:
    """The accounts of a file of sites.

    Args:
        path: of the file, for people.
        value: of `accounts` there: "published", or by site [user, password].

    Raises:
        UserError: it is neither.
    """
    if value == "published":
        return PUBLISHED
    if not isinstance(value, Mapping):
        raise UserError(f'{path}: accounts must be "published" or a table of site = ["user", "password"].')
    found = {}
    for site, pair in value.items():
        if site not in PUBLISHED:
            raise UserError(f"{path}: accounts has unknown site {site!r}. {nearest(site, tuple(PUBLISHED))}")
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(one, str) for one in pair):
            raise UserError(f'{path}: the account of {site} must be ["user", "password"].')
        found[site] = Account(*pair)
    return found
