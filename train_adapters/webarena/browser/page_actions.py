"""The agent's actions on a page. Like `worker.py`, in the browsers' environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browsergym.core.action.utils import get_elem_by_bid


def take(page: Any, name: str, element: str, argument: str, options: dict[str, Any]) -> None:
    """Do with the page what an action says.

    Raises:
        ValueError: there is no such element or action.
        playwright.sync_api.Error: it cannot be done.
    """

    def found() -> Any:
        return get_elem_by_bid(page, element)

    def clicked(**how: Any) -> None:
        place = found()
        if place.evaluate("one => one.tagName") == "OPTION":  # drawn by the system, out of the mouse's reach
            place.evaluate("one => { one.selected = true; one.closest('select').dispatchEvent(new Event('change', "
                           "{bubbles: true})); }")  # fmt: skip
        else:
            place.click(**how)

    def filled() -> Any:
        place = found()
        try:
            place.fill(argument)
        except Exception:  # noqa: BLE001 - not a field by itself: a click may open one, and the keys go there
            place.click()
            page.keyboard.type(argument)
        return place

    def entered() -> None:
        page.keyboard.press("Enter") if not element else found().press("Enter")

    def scrolled(share: float) -> None:
        page.mouse.wheel(0, share * page.viewport_size["height"])

    actions: dict[str, Callable[[], Any]] = {
        "Click": clicked,
        "Right Click": lambda: clicked(button="right"),
        "Type": filled,
        "Search": lambda: filled().press("Enter"),
        "Hover": lambda: found().hover(),
        "Scroll Up": lambda: scrolled(-0.7),
        "Scroll Down": lambda: scrolled(0.7),
        "Press Enter": entered,
        "Select Dropdown Option": lambda: found().select_option(argument),
        "Wait": lambda: page.wait_for_timeout(1000),
        "go_backward": lambda: page.go_back(timeout=options["navigation_ms"], wait_until="domcontentloaded"),
        "go_forward": lambda: page.go_forward(timeout=options["navigation_ms"], wait_until="domcontentloaded"),
    }
    if name not in actions:
        raise ValueError(f"there is no action {name!r}")
    actions[name]()
