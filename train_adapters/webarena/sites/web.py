"""Requests, answers and routes of one site. No sockets here."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from train_adapters.webarena.sites.markup import Html

LONGEST_LINE = 200
LONGEST_TEXT = 20_000
"""Most characters of a field of one line, and of several."""


class Refused(Exception):
    """A request that cannot be served.

    Args:
        status: of the answer.
        message: what the page says.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class LoginNeeded(Exception):
    """A page that only a user may see."""


@dataclass(frozen=True)
class Request:
    """What a page is made from.

    Attributes:
        database: of the site set; what is written is kept if the page succeeds.
        path: below the site, beginning with a slash.
        query: of the address.
        form: what was posted.
        user: who is logged in on this site; None for nobody.
    """

    database: sqlite3.Connection
    path: str
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)
    user: str | None = None

    @property
    def login(self) -> str:
        """The user.

        Raises:
            LoginNeeded: there is none.
        """
        if self.user is None:
            raise LoginNeeded
        return self.user

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """All rows of a query."""
        return self.database.execute(query, values).fetchall()

    def row(self, query: str, *values: object) -> sqlite3.Row:
        """The first row of a query.

        Raises:
            Refused: there is none; the page does not exist.
        """
        found = self.database.execute(query, values).fetchone()
        if found is None:
            raise Refused(404, "There is no such page.")
        return found  # type: ignore[no-any-return]

    def value(self, query: str, *values: object) -> int:
        """The number that a query of one column finds."""
        return int(self.row(query, *values)[0])

    def write(self, query: str, *values: object) -> int:
        """Change the database; the id of the row that was added last."""
        return self.database.execute(query, values).lastrowid or 0

    def asked(self, name: str, default: str = "") -> str:
        """A parameter of the address; what is too long is cut."""
        return clean(self.query.get(name, [default])[0])[:LONGEST_LINE]

    def text(self, name: str, label: str, longest: int = LONGEST_LINE, optional: bool = False) -> str:
        """A text that was posted.

        Raises:
            Refused: it is empty or too long.
        """
        value = clean(self.form.get(name, [""])[0]).strip()
        if not value and not optional:
            raise Refused(400, f"{label} must not be empty.")
        if len(value) > longest:
            raise Refused(400, f"{label} must not have more than {longest} characters.")
        return value

    def number(self, name: str, label: str, least: int, most: int) -> int:
        """A whole number that was posted.

        Raises:
            Refused: it is none, or out of range.
        """
        value = self.text(name, label)
        if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) <= most:
            raise Refused(400, f"{label} must be a whole number from {least} to {most}.")
        return int(value)

    def cents(self, name: str, label: str) -> int:
        """A price that was posted, in cents.

        Raises:
            Refused: it is none.
        """
        match = re.fullmatch(r"\$?([0-9]{1,6})(?:\.([0-9]{1,2}))?", self.text(name, label))
        if match is None:
            raise Refused(400, f"{label} must be a price like 12.50.")
        return int(match[1]) * 100 + int((match[2] or "0").ljust(2, "0"))

    def one_of(self, name: str, label: str, allowed: Sequence[str]) -> str:
        """One of several texts that was posted.

        Raises:
            Refused: it is none of them.
        """
        value = self.text(name, label)
        if value not in allowed:
            raise Refused(400, f"{label} must be one of those offered.")
        return value

    def several(self, name: str) -> list[str]:
        """All values that were posted under a name."""
        return [clean(one) for one in self.form.get(name, ())]


@dataclass(frozen=True)
class Answer:
    """What goes back.

    Attributes:
        body: the page; empty for a redirection.
        status: of HTTP.
        location: where a redirection leads.
        cookies: set by it, whole header values.
    """

    body: str = ""
    status: int = 200
    location: str | None = None
    cookies: tuple[str, ...] = ()


def go(address: str, *cookies: str, **query: str | int) -> Answer:
    """Redirect after a form, so that loading the page again posts nothing."""
    return Answer(status=303, location=address + (f"?{urlencode(query)}" if query else ""), cookies=cookies)


Handler = Callable[..., "Html | Answer"]
"""Told the request and, by name, what the route captures."""


@dataclass
class Site:
    """Routes of one site.

    Attributes:
        name: first segment of its addresses.
        title: for people.
        private: whether only its users see it.
    """

    name: str
    title: str
    private: bool = False
    _routes: list[tuple[str, re.Pattern[str], Handler]] = field(default_factory=list)

    def get(self, pattern: str) -> Callable[[Handler], Handler]:
        """Make a function the page at a path; `{name}` in it captures a word, `{name:int}` a number."""
        return self._register("GET", pattern)

    def post(self, pattern: str) -> Callable[[Handler], Handler]:
        """Make a function the target of forms at a path."""
        return self._register("POST", pattern)

    def _register(self, method: str, pattern: str) -> Callable[[Handler], Handler]:
        number = re.sub(r"\{(\w+):int\}", r"(?P<\1__int>[0-9]{1,9})", pattern)
        compiled = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[a-z0-9_-]{1,60})", number))

        def keep(handler: Handler) -> Handler:
            self._routes.append((method, compiled, handler))
            return handler

        return keep

    def answer(self, method: str, request: Request) -> Html | Answer:
        """What the route of a request gives.

        Raises:
            Refused: there is no such page, or its content is refused.
            LoginNeeded: nobody is logged in.
        """
        if self.private and request.user is None:
            raise LoginNeeded
        matches = [one for one in self._routes if one[1].fullmatch(request.path)]
        for allowed, pattern, handler in matches:
            if allowed == method:
                match = pattern.fullmatch(request.path)
                assert match is not None
                return handler(request, **dict(_captured(match)))
        raise Refused(405 if matches else 404, "There is no such page.")


def _captured(match: re.Match[str]) -> Iterator[tuple[str, str | int]]:
    for name, value in match.groupdict().items():
        yield (name.removesuffix("__int"), int(value)) if name.endswith("__int") else (name, value)


def clean(text: str) -> str:
    """Text as it is kept: newlines as one character, no other control characters, nothing that is no Unicode text."""
    whole = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", whole)
