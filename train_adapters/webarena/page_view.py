"""What the agent is shown of a page: simplified HTML with the ids of elements, cut to a size around what matters."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

_INTERACTIVE = ("a", "button", "input", "select", "textarea", "option", "summary")
_STRUCTURE = (
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "li",
    "tr",
    "td",
    "th",
    "label",
    "form",
    "table",
    "img",
    "p",
    "iframe",
)
_ROLES = ("button", "link", "tab", "checkbox", "radio", "menuitem", "option", "combobox", "textbox", "switch")
_PHRASES = ("span", "b", "i", "em", "strong", "small", "code", "u", "time", "abbr", "sub", "sup", "mark", "bdi", "br")
_VOID = ("input", "img")
_SHOWN = ("type", "name", "value", "placeholder", "aria-label", "alt", "title", "role", "checked", "selected")
_LINE = 140
"""Characters: what fits into a line is shown in one."""


@dataclass
class _Element:
    """A node of the page as the browser's worker tells of it; see `worker.py`."""

    tag: str = ""
    id: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    clickable: bool = False
    visible: bool = False
    children: list[_Element] = field(default_factory=list)


@dataclass(frozen=True)
class PageView:
    """A page as lines of text.

    Attributes:
        lines: all of it.
        first_visible: number of the first line of what the window shows now; it moves as the agent scrolls.
    """

    lines: tuple[str, ...]
    first_visible: int = 0


def page_view(seen: Mapping[str, Any]) -> PageView:
    """The view of a page.

    Args:
        seen: what the browser's worker told: `nodes` of the document, or `lines` of the accessibility tree.
    """
    if "nodes" not in seen:
        return PageView(tuple(line for line in seen["lines"] if line.strip() not in ("", "StaticText ''")))
    lines: list[tuple[str, bool]] = []
    for child in _tree(seen["nodes"]).children:
        lines += _lines(child, 0)
    first = next((place for place, (_, visible) in enumerate(lines) if visible), 0)
    return PageView(tuple(line for line, _ in lines), first)


def cut(view: PageView, most: int, element: str = "", scrolled: bool = False) -> str:
    """As much of a page as fits, around the element acted on last, or around what the window shows after scrolling.

    Args:
        view: the page.
        most: characters, at least 1; lines are kept whole, and one of them always.
        element: id of the element acted on last; empty for none.
        scrolled: whether the agent has scrolled since.

    Returns:
        The lines, with a note where some were left out.
    """
    if sum(len(line) + 1 for line in view.lines) <= most:
        return "\n".join(view.lines)
    middle = view.first_visible if scrolled else _line_of(view.lines, element)
    low = high = min(middle, len(view.lines) - 1)
    left = most - len(view.lines[low]) - 1
    grown = True
    while grown:
        grown = False
        for step in (high + 1, low - 1):
            if 0 <= step < len(view.lines) and len(view.lines[step]) < left:
                left -= len(view.lines[step]) + 1
                low, high, grown = min(low, step), max(high, step), True
    above, below = low, len(view.lines) - 1 - high
    return "\n".join(
        [f"... {above} lines above"] * (above > 0)
        + list(view.lines[low : high + 1])
        + [f"... {below} lines below"] * (below > 0)
    )


def _line_of(lines: Sequence[str], element: str) -> int:
    if element:
        mark = re.compile(rf'id="{re.escape(element)}"|\[{re.escape(element)}\]')
        for place, line in enumerate(lines):
            if mark.search(line):
                return place
    return 0


def _tree(rows: Sequence[Sequence[Any]]) -> _Element:
    root = _Element()
    path = [(-1, root)]
    for depth, tag, identity, attributes, text, clickable, visible in rows:
        while path[-1][0] >= depth:
            path.pop()
        element = _Element(tag, identity, attributes, text, clickable, visible)
        path[-1][1].children.append(element)
        path.append((depth, element))
    return root


def _lines(element: _Element, indent: int) -> list[tuple[str, bool]]:
    """The lines of an element, each with whether the window shows something of it."""
    if not element.tag:
        return [("  " * indent + html.escape(element.text, quote=False), False)]
    shown = _is_shown(element)
    inner = [line for child in _children(element) for line in _lines(child, indent + shown)]
    if not shown:
        return _joined(inner, indent) if inner and _is_running_text(element) else inner
    start, end = _opening(element), "" if element.tag in _VOID else f"</{element.tag}>"
    texts = [line.strip() for line, _ in inner]
    visible = element.visible
    if len(start) + len(end) + sum(map(len, texts)) + len(texts) + 2 * indent <= _LINE:
        return [("  " * indent + start + " ".join(texts) + end, visible)] if texts or element.id or not end else []
    return [("  " * indent + start, visible), *inner]


def _joined(lines: Sequence[tuple[str, bool]], indent: int) -> list[tuple[str, bool]]:
    return [("  " * indent + " ".join(line.strip() for line, _ in lines), any(visible for _, visible in lines))]


def _is_running_text(element: _Element) -> bool:
    """Whether there is nothing in it but text, perhaps in several pieces."""
    return all(not one.tag or (one.tag in _PHRASES and _is_running_text(one)) for one in element.children)


def _children(element: _Element) -> list[_Element]:
    """Of a list to choose from, the one chosen is marked."""
    if element.tag != "select":
        return element.children
    chosen = element.attributes.get("value")
    return [
        replace(one, attributes={**one.attributes, "selected": ""})
        if one.tag == "option" and one.attributes.get("value") == chosen
        else one
        for one in element.children
    ]


def _is_shown(element: _Element) -> bool:
    return element.tag in _INTERACTIVE or element.tag in _STRUCTURE or _can_be_acted_on(element)


def _can_be_acted_on(element: _Element) -> bool:
    acts = element.tag in _INTERACTIVE or element.attributes.get("role") in _ROLES
    return bool(element.id) and (acts or (element.clickable and element.tag not in ("html", "body")))


def _opening(element: _Element) -> str:
    parts = [element.tag]
    if _can_be_acted_on(element):
        parts.append(f'id="{element.id}"')
    for name in _SHOWN:
        value = element.attributes.get(name)
        if value is None or (value == "" and name not in ("checked", "selected")) or _is_noise(element, name):
            continue
        parts.append(f'{name}="{html.escape(value)}"' if value else name)
    if len(parts) == 2 and element.attributes.get("class") and not element.children and element.tag not in _VOID:
        parts.append(f'class="{html.escape(element.attributes["class"])}"')  # an icon: nothing else says what it is
    return f"<{' '.join(parts)}>"


def _is_noise(element: _Element, name: str) -> bool:
    """What says nothing that the agent could use."""
    if name == "value":
        return element.tag not in ("input", "textarea", "select") or element.attributes.get("type") == "hidden"
    if name == "type":
        return element.attributes[name] in ("text", "submit", "button") and element.tag != "input"
    return name == "name" and element.tag not in ("input", "textarea", "select", "iframe")
