"""A browser of a few lines, without pictures and scripts: follows links and sends forms as people would."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from web_oracles import Step

from train_adapters.webarena.sites.dom import Element, read, select

FIELDS = ("input", "textarea", "select")


class WebClient:
    """One user.

    Args:
        storage: as of Playwright; who is logged in.

    Attributes:
        url: of the page.
        page: what it shows.
        status: of HTTP.
        history: addresses of the pages before.
        answer: message of the exit.
    """

    def __init__(self, storage: Mapping[str, Any] | None = None) -> None:
        self._cookies = {(one["path"], one["name"]): one["value"] for one in (storage or {"cookies": ()})["cookies"]}
        self.url, self.page, self.status = "", read(""), 0
        self.history: list[str] = []
        self.answer: str | None = None
        self._last: Element | None = None

    def open(self, url: str, data: str | None = None) -> None:
        """Load a page, or send a form; redirections are followed."""
        if self.url:
            self.history.append(self.url)
        for _ in range(5):
            response, text = self._request(url, data)
            self.status, location = response.status, response.getheader("Location")
            if location is None:
                break
            url, data = urljoin(url, location), None
        self.url, self.page, self._last = url, read(text), None

    def _request(self, url: str, data: str | None) -> tuple[http.client.HTTPResponse, str]:
        target = urlsplit(url)
        connection = http.client.HTTPConnection(target.netloc, timeout=10)
        try:
            headers = {"Cookie": "; ".join(self._sent(target.path))}
            if data is not None:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            path = (target.path or "/") + (f"?{target.query}" if target.query else "")
            connection.request("GET" if data is None else "POST", path, data, headers)
            response = connection.getresponse()
            for header in response.msg.get_all("Set-Cookie") or ():
                self._keep(header)
            return response, response.read().decode()
        finally:
            connection.close()

    def _sent(self, path: str) -> Iterable[str]:
        for (place, name), value in self._cookies.items():
            if path == place or path.startswith(f"{place}/"):
                yield f"{name}={value}"

    def _keep(self, header: str) -> None:
        pair, *rest = header.split("; ")
        name, _, value = pair.partition("=")
        path = next(one.removeprefix("Path=") for one in rest if one.startswith("Path="))
        self._cookies[path, name] = value

    def do(self, step: Step) -> None:
        """Take an action.

        Raises:
            LookupError: the page has nothing of that name.
        """
        if step.action == "exit":
            self.answer = step.argument
        elif step.action == "go_backward":
            self.open(self.history.pop())
            self.history.pop()
        elif step.action == "Click":
            self._click(step.target)
        elif step.action == "Press Enter":
            assert self._last is not None
            self._submit(self._last)
        else:
            self._last = self._field(step.target)
            self._fill(self._last, step)

    def _fill(self, field: Element, step: Step) -> None:
        if step.action == "Select Dropdown Option":
            options = select(field, "option")
            chosen = next((one for one in options if one.text == step.argument), None)
            if chosen is None:
                raise LookupError(f"{step.target!r} does not offer {step.argument!r}: {[one.text for one in options]}")
            for one in options:
                one.attributes.pop("selected", None)
            chosen.attributes["selected"] = ""
        elif field.name == "textarea":
            field.children[:] = [step.argument]
        else:
            field.attributes["value"] = step.argument
        if step.action == "Search":
            self._submit(field)

    def _click(self, target: str) -> None:
        for element in self.page.walk():
            if element.name in ("a", "button") and element.text == target:
                if element.name == "a":
                    self.open(urljoin(self.url, element.attributes["href"]))
                else:
                    self._submit(element)
                return
        field = self._field(target)
        kind = field.attributes.get("type")
        if kind == "checkbox" and "checked" in field.attributes:
            del field.attributes["checked"]
        elif kind in ("checkbox", "radio"):
            same = select(_form(field), f'input[name="{field.attributes["name"]}"]') if kind == "radio" else ()
            for one in same:
                one.attributes.pop("checked", None)
            field.attributes["checked"] = ""

    def _field(self, label: str) -> Element:
        for element in select(self.page, "label"):
            if element.text == label:
                place = element.attributes["for"]
                return next(one for one in self.page.walk() if one.attributes.get("id") == place)
        raise LookupError(f"nothing on {self.url} is called {label!r}: {self.page.text[:500]}")

    def _submit(self, inside: Element) -> None:
        form = _form(inside)
        pairs = [
            (one.attributes["name"], one.value)
            for one in form.walk()
            if one.name in FIELDS
            and (one.attributes.get("type") not in ("checkbox", "radio") or "checked" in one.attributes)
        ]
        action = urljoin(self.url, form.attributes["action"])
        if form.attributes["method"] == "get":
            self.open(f"{action}?{urlencode(pairs)}")
        else:
            self.open(action, urlencode(pairs))


def _form(element: Element) -> Element:
    """The form that an element is part of."""
    while element.name != "form":
        assert element.parent is not None
        element = element.parent
    return element
