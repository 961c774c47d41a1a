"""What the browser's worker tells of a page. Like `worker.py` it runs in the environment of the browsers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import playwright.sync_api as playwright
from browsergym.core.observation import (
    MarkingError,
    _post_extract,
    _pre_extract,
    extract_dom_snapshot,
    extract_merged_axtree,
)
from browsergym.utils.obs import IGNORED_AXTREE_PROPERTIES, IGNORED_AXTREE_ROLES, flatten_axtree_to_str


def looked_at(page: Any, view: str) -> dict[str, Any]:
    """Mark the elements of the page with ids, and look; once more where the page moved on meanwhile.

    Args:
        page: Playwright's.
        view: "html" for the document as `nodes`, "axtree" for the accessibility tree as `lines`.
    """
    _give_up_dead_frames(page)
    for last in (False, False, True):
        try:
            _pre_extract(page, tags_to_mark="standard_html", lenient=last)
            return _outline(page) if view == "axtree" else _nodes(page)
        except (playwright.Error, MarkingError):
            if last or page.is_closed():
                raise
            page.wait_for_timeout(300)
        finally:
            if not page.is_closed():
                _post_extract(page)
    raise AssertionError


_FRAME_MS = 3_000
"""How long a frame may take once the page is there, as long as BrowserGym waits for each."""


def _give_up_dead_frames(page: Any) -> None:
    """Leave frames empty whose site does not answer: whoever looks into one would wait for ever."""
    for frame in page.frames[1:]:
        with suppress(playwright.Error):  # it may have gone meanwhile
            if not frame.url and not _comes(frame):
                frame.frame_element().evaluate("one => { one.src = 'about:blank'; }")
                _comes(frame)


def _comes(frame: Any) -> bool:
    try:
        frame.wait_for_load_state("domcontentloaded", timeout=_FRAME_MS)
    except playwright.TimeoutError:
        return False
    return True


_NO_ROLES = [*IGNORED_AXTREE_ROLES, "InlineTextBox"]
_NO_PROPERTIES = (*IGNORED_AXTREE_PROPERTIES, "url")  # long, and not needed to follow a link


def _outline(page: Any) -> dict[str, Any]:
    """The accessibility tree, as lines."""
    tree = flatten_axtree_to_str(
        extract_merged_axtree(page), ignored_roles=_NO_ROLES, ignored_properties=_NO_PROPERTIES
    )
    return {"lines": tree.replace("\t", " ").split("\n")}


def _nodes(page: Any) -> dict[str, Any]:
    """The document as nodes in their order: [depth, tag, id, attributes, text, clickable, within the viewport]."""
    snapshot = extract_dom_snapshot(page)
    found: list[list[Any]] = []
    _walk(snapshot, 0, 0, found)
    return {"nodes": found}


_TEXT, _ELEMENT = 3, 1
_SKIPPED = ("script", "style", "noscript", "template", "head", "svg", "::before", "::after", "::marker")
_WITH_THEIR_SELECT = ("option", "optgroup")
"""They have no box of their own before the list is opened."""
_ATTRIBUTES = ("type", "name", "value", "placeholder", "aria-label", "alt", "title", "role", "checked", "class")


def _walk(snapshot: dict[str, Any], number: int, depth: int, found: list[list[Any]]) -> None:
    """The nodes of a document that have a box on the page, those of the frames in it among them."""
    strings, document = snapshot["strings"], snapshot["documents"][number]
    nodes = document["nodes"]
    drawn = set(document["layout"]["nodeIndex"])
    clickable = set(nodes["isClickable"]["index"])
    frames = dict(zip(nodes["contentDocumentIndex"]["index"], nodes["contentDocumentIndex"]["value"], strict=True))
    depths, options = {-1: depth - 1}, set[int]()
    for place, parent in enumerate(nodes["parentIndex"]):
        name = strings[nodes["nodeName"][place]].lower()
        if parent not in depths or name in _SKIPPED:
            continue  # nor what is within it
        depths[place] = depths[parent] + 1
        if parent in drawn and (name in _WITH_THEIR_SELECT or parent in options):
            drawn.add(place)
            options.add(place)
        if place not in drawn:
            continue
        if nodes["nodeType"][place] == _TEXT:
            text = " ".join(strings[nodes["nodeValue"][place]].split())
            found.extend([[depths[place], "", "", {}, text, False, False]] if text else [])
        elif nodes["nodeType"][place] == _ELEMENT:
            pairs = [strings[one] if one >= 0 else "" for one in nodes["attributes"][place]]
            attributes = dict(zip(pairs[::2], pairs[1::2], strict=True))
            seen = float(attributes.get("browsergym_visibility_ratio") or 0) > 0
            kept = {one: attributes[one][:_LONGEST] for one in _ATTRIBUTES if one in attributes}
            found.append([depths[place], name, attributes.get("bid", ""), kept, "", place in clickable, seen])
        if place in frames:
            _walk(snapshot, frames[place], depths[place] + 1, found)


_LONGEST = 200
"""Characters of an attribute."""
