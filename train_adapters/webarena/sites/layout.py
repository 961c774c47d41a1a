"""What all pages share: the frame, notices, long lists in pieces, and how things are written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from train_adapters.webarena.sites.forms import field, form
from train_adapters.webarena.sites.markup import Html, Node, join, link, tag
from train_adapters.webarena.sites.web import Request, Site

_STYLE = (
    "body{font:16px sans-serif;margin:1em auto;max-width:60em;padding:0 1em}nav a,nav form{margin-right:1em}"
    "table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.3em .6em;text-align:left}"
    ".field{margin:.4em 0}.notice{background:#e6f4e6;padding:.5em}.error{background:#f8e0e0;padding:.5em}"
    "article{border-top:1px solid #bbb;padding:.4em 0}"
)

NOTICES = {
    "added": "Added.",
    "saved": "Your changes have been saved.",
    "removed": "Removed.",
    "login": "You are logged in.",
    "logout": "You are logged out.",
}
"""What a page may be told to say after a form, by the word for it in the address."""


def frame(site: Site, request: Request, title: str, links: Sequence[tuple[str, str]], *content: Node) -> Html:
    """A whole page.

    Args:
        site: it is part of.
        request: it answers.
        title: its headline.
        links: text and path below the site, of what every page leads to.
        content: what stands below the headline.
    """
    top = [link(site.title, f"/{site.name}", class_="home")]
    top += [link(text, f"/{site.name}{path}") for text, path in links]
    top.append(link("All Sites", "/"))
    if request.user is None:
        top.append(link("Log in", f"/{site.name}/login"))
    else:
        top += [tag("span", f"Logged in as {request.user} "), form(f"/{site.name}/logout", "Log out")]
    notice = NOTICES.get(request.asked("notice"))
    main = tag("main", tag("h1", title), notice and tag("p", notice, class_="notice", role="status"), content)
    return document(f"{title} - {site.title}", tag("nav", [(one, " ") for one in top]), main)


def document(title: str, *body: Node) -> Html:
    """An HTML document."""
    # The style holds no text from elsewhere; inside this element nothing is unescaped by browsers.
    head = tag("head", tag("meta", charset="utf-8"), tag("title", title), tag("style", Html(_STYLE)))
    return join(Html("<!DOCTYPE html>"), tag("html", head, tag("body", body), lang="en"))


def login_page(site: Site, request: Request, following: str, wrong: bool = False) -> Html:
    """The form that asks who it is, and the page to go to afterwards."""
    error = tag("p", "The user name or the password is not right.", class_="error", role="alert") if wrong else None
    fields = [field("User name", "user"), field("Password", "password", kind="password")]
    hidden = tag("input", type="hidden", name="next", value=following)
    return frame(site, request, "Log in", (), error, form(f"/{site.name}/login", "Log in", hidden, fields))


def search_form(site: Site, label: str, text: str = "") -> Html:
    """The search of a site."""
    return form(f"/{site.name}/search", "Search", field(label, "q", text, "search"), method="get", role="search")


def page_number(request: Request) -> int:
    """The page of a long list that was asked for, from 1; 1 for nonsense."""
    asked = request.asked("page", "1")
    return int(asked) if re.fullmatch(r"[1-9][0-9]{0,5}", asked) else 1


def piece(request: Request, rows: Sequence[Node], path: str, size: int = 8) -> Html:
    """One page of a long list, its length, and links to the pages before and after.

    Args:
        request: says which page, and what the links keep of the address.
        rows: the whole list.
        path: of the list.
        size: rows of a page.
    """
    number, last = page_number(request), max(1, -(-len(rows) // size))
    start = (min(number, last) - 1) * size
    places = [("Previous page", start // size), ("Next page", start // size + 2)]
    steps = [link(text, address(path, request, page=place)) for text, place in places if 1 <= place <= last]
    count = f"{len(rows)} {'item' if len(rows) == 1 else 'items'}, page {start // size + 1} of {last}"
    return join(tag("p", count, class_="count"), rows[start : start + size], tag("p", [(one, " ") for one in steps]))


def address(path: str, request: Request, **changes: str | int) -> str:
    """The path with the parameters of a request, some of them changed; notices are not kept."""
    kept: Mapping[str, str | int] = {name: values[0] for name, values in request.query.items() if name != "notice"}
    return f"{path}?{urlencode({**kept, **changes})}"


def money(cents: int) -> str:
    """A price as the pages write it."""
    return f"${cents // 100}.{cents % 100:02}"


def stars(rating: int) -> str:
    """A rating as the pages write it."""
    return f"{rating} of 5 stars"


def like(text: str) -> str:
    """The pattern of SQL (with a backslash as its escape) that finds a text anywhere."""
    return "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
