"""HTML that is escaped unless it says otherwise: text becomes markup only through `tag`."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"br", "hr", "input", "meta"})


class Html(str):
    """Text that is markup already. Only the functions of this module make it."""

    __slots__ = ()


Node = str | int | None | Iterable["Node"]
"""What can stand inside a tag: text, numbers, nothing, or several of these."""

Attribute = str | int | bool | None
"""Value of an attribute; True for one without a value, False and None for none at all."""


def join(*nodes: Node) -> Html:
    """The nodes, one after another; plain text is escaped."""
    return Html("".join(_parts(nodes)))


def _parts(node: Node) -> Iterable[str]:
    if isinstance(node, Html):
        yield node
    elif isinstance(node, (str, int)):
        yield escape(str(node))
    elif node is not None:
        for one in node:
            yield from _parts(one)


def tag(name: str, /, *children: Node, **attributes: Attribute) -> Html:
    """One element. In the names of attributes a trailing underscore is dropped, and others become hyphens."""
    opening = "".join([name, *map(_attribute, attributes.items())])
    if name in _VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join(*children)}</{name}>")


def _attribute(pair: tuple[str, Attribute]) -> str:
    name, value = pair[0].rstrip("_").replace("_", "-"), pair[1]
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def link(text: str, address: str, **attributes: Attribute) -> Html:
    """A link."""
    return tag("a", text, href=address, **attributes)


def paragraphs(text: str) -> Html:
    """Text that people have written, a paragraph for each of its lines."""
    return join([tag("p", line) for line in text.split("\n") if line.strip()])


def table(head: Iterable[str], rows: Iterable[Iterable[Node]], **attributes: Attribute) -> Html:
    """A table with a head."""
    top = tag("thead", tag("tr", [tag("th", one) for one in head]))
    body = tag("tbody", [tag("tr", [tag("td", cell) for cell in row]) for row in rows])
    return tag("table", top, body, **attributes)


def details(pairs: Iterable[tuple[str, Node]]) -> Html:
    """What is known of one thing: a list of names and values."""
    return tag("dl", [(tag("dt", name), tag("dd", value)) for name, value in pairs])
