"""Forms of the sites: every field has a visible label that belongs to it."""

from __future__ import annotations

from collections.abc import Iterable

from train_adapters.webarena.sites.markup import Attribute, Html, Node, join, tag


def field(label: str, name: str, value: Attribute = "", kind: str = "text", place: str = "") -> Html:
    """A field of one line; `place` is its id where several on the page have the same name."""
    place = place or name
    return _labelled(label, place, tag("input", type=kind, id=place, name=name, value=value))


def area(label: str, name: str, value: str = "") -> Html:
    """A field of several lines."""
    # A browser drops the first newline inside the element: this one, and not one of the text.
    return _labelled(label, name, tag("textarea", "\n", value, id=name, name=name, rows=5, cols=60))


def choice(label: str, name: str, options: Iterable[tuple[str | int, str]], chosen: str | int | None = None) -> Html:
    """A drop-down list of (value, text)."""
    items = [tag("option", text, value=value, selected=str(value) == str(chosen)) for value, text in options]
    return _labelled(label, name, tag("select", items, id=name, name=name))


def check(label: str, name: str, value: str | int = "1", ticked: bool = False, kind: str = "checkbox") -> Html:
    """A tick box, or one of several radio buttons, with its label behind it."""
    place = f"{name}-{value}"
    box = tag("input", type=kind, id=place, name=name, value=value, checked=ticked)
    return tag("div", box, tag("label", label, for_=place), class_="field")


def radios(title: str, name: str, options: Iterable[tuple[str | int, str]], chosen: str | int | None = None) -> Html:
    """Several things of which one is chosen."""
    boxes = [check(text, name, value, str(value) == str(chosen), "radio") for value, text in options]
    return tag("fieldset", tag("legend", title), boxes)


def checks(title: str, name: str, options: Iterable[tuple[str | int, str]], ticked: Iterable[str | int] = ()) -> Html:
    """Several things of which any number are ticked."""
    on = {str(one) for one in ticked}
    return tag(
        "fieldset", tag("legend", title), [check(text, name, value, str(value) in on) for value, text in options]
    )


def form(address: str, submit: str, *content: Node, method: str = "post", **attributes: Attribute) -> Html:
    """A form with its button."""
    button = tag("button", submit, type="submit")
    return tag("form", content, button, action=address, method=method, **attributes)


def _labelled(label: str, place: str, control: Html) -> Html:
    return tag("div", join(tag("label", label, for_=place), " ", control), class_="field")
