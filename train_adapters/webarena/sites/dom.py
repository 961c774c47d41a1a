"""A small reader of HTML for checks and tests: elements, their text, and the selectors that locators use.

It covers tags, ids, classes, attributes, `:nth-of-type(n)`, descendants (` `), children (`>`) and lists (`,`). It does
not cover style sheets: what a page hides from sight by them is read all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"])
_UNSEEN = frozenset({"script", "style", "title", "template", "noscript", "head"})
_INLINE = frozenset(["a", "abbr", "b", "code", "em", "i", "label", "small", "span", "strong", "sub", "sup", "u"])
_CLOSES = {
    "p": {"p"},
    "li": {"li"},
    "option": {"option"},
    "tr": {"tr", "td", "th"},
    "td": {"td", "th"},
    "th": {"td", "th"},
}
"""Elements left open that the beginning of another one ends."""


@dataclass(eq=False)
class Element:
    """One element.

    Attributes:
        name: of the tag, in lower case.
        attributes: by name; empty for one without a value.
        parent: it stands in; None for the document.
        children: elements and texts in their order.
    """

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    parent: Element | None = None
    children: list[Element | str] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """This element and all within it, in the order of the document."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    @property
    def text(self) -> str:
        """What is to be read, spaces and newlines made one space each."""
        return " ".join("".join(self._pieces()).split())

    def _pieces(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            elif child.name not in _UNSEEN:
                gap = "" if child.name in _INLINE else " "
                yield gap
                yield from child._pieces()
                yield gap

    @property
    def value(self) -> str:
        """What a field holds; of a drop-down list, the value of the chosen option."""
        if self.name == "textarea":
            return "".join(one for one in self.children if isinstance(one, str)).removeprefix("\n")
        if self.name != "select":
            return self.attributes.get("value", "")
        options = [one for one in self.walk() if one.name == "option"]
        chosen = [one for one in options if "selected" in one.attributes] or options
        return chosen[0].attributes.get("value", chosen[0].text) if chosen else ""


def read(html: str) -> Element:
    """The document; broken HTML is read as far as it goes."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.document


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.document = self._open = Element("#document")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self._open.name in _CLOSES.get(tag, ()) and self._open.parent is not None:
            self._open = self._open.parent
        found = Element(tag, {name: value or "" for name, value in attrs}, self._open)
        self._open.children.append(found)
        if tag not in _VOID:
            self._open = found

    def handle_endtag(self, tag: str) -> None:
        place: Element | None = self._open
        while place is not None and place.name != tag:
            place = place.parent
        if place is not None and place.parent is not None:
            self._open = place.parent

    def handle_data(self, data: str) -> None:
        self._open.children.append(data)


def select(document: Element, selector: str) -> list[Element]:
    """The elements that a CSS selector names, in the order of the document.

    Raises:
        ValueError: the selector has parts that are not covered.
    """
    lists = [_steps(one) for one in re.split(r",(?![^\[]*\])", selector)]
    return [one for one in document.walk() if any(_matches(one, steps) for steps in lists)]


_Step = tuple[str, "list[tuple[str, str, str]]"]
"""How it hangs on the step before (` ` or `>`), and its conditions: kind, name and value."""

_CONDITION = re.compile(
    r"(?P<tag>[a-zA-Z][\w-]*|\*)|#(?P<id>[\w-]+)|\.(?P<class>[\w-]+)"
    r"|\[(?P<name>[\w-]+)\s*(?:(?P<how>[*^$~|]?=)\s*(?P<value>\"[^\"]*\"|'[^']*'|[^\]\"']+)\s*)?\]"
    r"|:nth-of-type\((?P<nth>\d+)\)"
)


def _steps(selector: str) -> list[_Step]:
    found: list[_Step] = []
    for how, compound in re.findall(r"(\s*>\s*|\s+|^)((?:\[[^\]]*\]|[^\s>\[])+)", selector.strip()):
        conditions, place = [], 0
        while place < len(compound):
            match = _CONDITION.match(compound, place)
            if match is None:
                raise ValueError(f"the selector {selector!r} cannot be read at {compound[place:]!r}")
            conditions.append(_condition(match))
            place = match.end()
        found.append((">" if ">" in how else " ", conditions))
    if not found:
        raise ValueError(f"the selector {selector!r} is empty")
    return found


def _condition(match: re.Match[str]) -> tuple[str, str, str]:
    for kind in ("tag", "id", "class", "nth"):
        if match[kind]:
            return kind, "", match[kind]
    return match["how"] or "has", match["name"], (match["value"] or "").strip("\"'")


def _matches(element: Element, steps: list[_Step]) -> bool:
    how, conditions = steps[-1]
    if element.name == "#document" or not all(_holds(element, *one) for one in conditions):
        return False
    if len(steps) == 1:
        return True
    above = element.parent
    while above is not None:
        if _matches(above, steps[:-1]):
            return True
        above = above.parent if how == " " else None
    return False


def _holds(element: Element, kind: str, name: str, value: str) -> bool:
    given = element.attributes.get(name, "")
    if kind in ("tag", "id", "class", "nth"):
        return {
            "tag": value in ("*", element.name) or value.lower() == element.name,
            "id": element.attributes.get("id") == value,
            "class": value in element.attributes.get("class", "").split(),
            "nth": _place(element) == value,
        }[kind]
    return (
        name in element.attributes
        and {
            "has": True,
            "=": given == value,
            "^=": given.startswith(value),
            "$=": given.endswith(value),
            "*=": value in given,
            "~=": value in given.split(),
            "|=": given == value or given.startswith(f"{value}-"),
        }[kind]
    )


def _place(element: Element) -> str:
    above = element.parent.children if element.parent else []
    same = [one for one in above if isinstance(one, Element) and one.name == element.name]
    return str(same.index(element) + 1) if element in same else ""
