"""The browser's side of the protocol: one process, one Chromium, one page at a time, driven by BrowserGym.

Runs by itself in the environment of the browsers, whose pins do not go together with the trainer's: of this package it
imports `looks.py` alone, which stands beside it. Requests are lines of JSON on standard input, replies are lines of
JSON on standard output; `client.py` is the other side. Every request has exactly one reply: {"id", "ok": {...}} or
{"id", "error": {"kind", "text"}}.

It ends with its standard input, so that nothing is left when the trainer is killed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import browsergym.core as core
import browsergym.core.env as gym
import playwright.sync_api as playwright
from browsergym.core.action.utils import get_elem_by_bid

sys.path.append(str(Path(__file__).parent))  # which `python -I` leaves out

import looks  # type: ignore[import-not-found]

PROTOCOL = 1
"""Both sides must have the same."""

_PAUSE = 0.05
"""Seconds between an action and the look at what it did; BrowserGym's default of 0.5 is for people who watch."""

_STATUSES_OF_A_SITE_THAT_IS_DOWN = (502, 503, 504)


class Failure(Exception):
    """What is not the agent's fault.

    Args:
        kind: `site_down`, `navigation_timeout`, `browser_crashed` or `bad_request`.
        text: for people.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def main() -> None:
    """Answer requests until there are no more."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no reply
    options = json.loads(sys.argv[1])
    browser = Browser(options)
    _say(out, {"id": 0, "ok": {"protocol": PROTOCOL, **browser.versions()}})
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "quit":
            break
        _say(out, {"id": request["id"], **_answer(browser, request)})
    browser.quit()


def _say(out: Any, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def _answer(browser: Browser, request: dict[str, Any]) -> dict[str, Any]:
    commands: dict[str, Callable[..., dict[str, Any]]] = {
        "open": browser.open,
        "act": browser.act,
        "read": browser.read,
        "finish": browser.finish,
    }
    try:
        return {"ok": commands[request["do"]](**request.get("with", {}))}
    except Failure as failure:
        return {"error": {"kind": failure.kind, "text": str(failure)}}
    except playwright.Error as error:
        kind = "browser_crashed" if not browser.alive() or "crash" in str(error).lower() else "browser_error"
        return {"error": {"kind": kind, "text": _short(error)}}
    except Exception as error:  # noqa: BLE001 - whatever a page does, the reply is typed and the process lives on
        kind = "browser_error" if browser.alive() else "browser_crashed"
        return {"error": {"kind": kind, "text": _short(error)}}


class Browser:
    """One Chromium, kept from episode to episode and started anew now and then or when it has died.

    Args:
        options: `executable` of Chromium, `episodes` before it is started anew, `view` ("html" or "axtree"), and
            `action_ms` and `navigation_ms`, how long an action and a page may take.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._playwright = core._get_global_playwright()
        self._chromium: Any = None
        self._episodes = 0
        self._pid: int | None = None
        self._env: Any = None
        self._writes = 0
        self._down = ""
        gym.Chat = _Messages  # BrowserGym's own opens a second browser, and always a downloaded one
        gym._get_global_playwright = lambda: _Playwright(self)
        gym.BrowserEnv._get_obs = lambda env: {}  # screenshots and trees nobody reads

    def versions(self) -> dict[str, Any]:
        """Of what is at work here."""
        self.launch()
        packages = {name: version(name) for name in ("browsergym-core", "playwright")}
        return {**packages, "chromium": self._chromium.version, "pid": self._pid}

    def alive(self) -> bool:
        """Whether Chromium can be talked to."""
        return self._chromium is not None and bool(self._chromium.is_connected())

    def launch(self, **settings: Any) -> Any:
        """The Chromium that runs, or a new one."""
        if self.alive() and self._episodes < self._options["episodes"]:
            return self._chromium
        self._stop()
        arguments = [*settings.pop("args", []), "--disable-dev-shm-usage", "--disable-gpu"]
        self._chromium = self._playwright.chromium.launch(
            executable_path=self._options["executable"], headless=True, args=arguments
        )
        self._episodes, self._pid = 0, _pid_of(self._chromium)
        return self._chromium

    @property
    def selectors(self) -> Any:
        """Playwright's, which BrowserGym sets up."""
        return self._playwright.selectors

    def open(self, url: str, seed: int = 0, **settings: Any) -> dict[str, Any]:
        """Begin an episode at a page.

        Args:
            url: of the page.
            seed: of what the page draws.
            settings: `miniwob` (whether the page is a MiniWoB task), `storage_state` (cookies and local storage),
                `har` (file for the network trace, written by `finish`), `viewport`.
        """
        self._close()
        self._down, self._writes = "", 0
        kwargs = {"storage_state": settings.get("storage_state")}
        if settings.get("har"):
            kwargs |= {"record_har_path": settings["har"], "record_har_content": "omit"}
        self._env = gym.BrowserEnv(
            task_entrypoint=_Miniwob if settings.get("miniwob") else _Page,
            task_kwargs={"url": url, "navigation_ms": self._options["navigation_ms"]},
            viewport=settings.get("viewport"),
            timeout=self._options["action_ms"],
            slow_mo=0,
            pw_context_kwargs={name: value for name, value in kwargs.items() if value is not None},
            pre_observation_delay=_PAUSE,
        )
        self._episodes += 1
        self._env.reset(seed=seed)
        self._listen()
        return {**self._seen("", 0.0, False), "pid": self._pid}

    def act(self, name: str, element: str = "", argument: str = "") -> dict[str, Any]:
        """Take an action and look at what it did; an action that cannot be taken is told in `problem`."""
        if self._env is None:
            raise Failure("bad_request", "no page is open")
        problem = ""
        try:
            _take(self._env.page, name, element, argument, self._options)
        except (ValueError, playwright.Error) as error:
            if not self.alive():
                raise
            problem = _short(error)
        _, reward, done, _, _ = self._env.post_step({"action": name})
        self._check_site()
        return self._seen(problem, float(reward), bool(done))

    def read(self, url: str = "", expression: str = "") -> dict[str, Any]:
        """The value of a JavaScript expression, on a new page where one is named; the episode's page stays as it is."""
        if self._env is None:
            raise Failure("bad_request", "no page is open")
        page = self._env.context.new_page() if url else self._env.page
        try:
            if url:
                _goto(page, url, self._options["navigation_ms"])
            return {"url": page.url, "value": page.evaluate(expression or "document.body.innerText")}
        finally:
            if url:
                page.close()

    def finish(self) -> dict[str, Any]:
        """End the episode; its network trace is on disk afterwards."""
        url = self._env.page.url if self._env is not None else ""
        self._close()
        return {"url": url}

    def quit(self) -> None:
        """End everything."""
        self._close()
        self._stop()
        self._playwright.stop()

    def _listen(self) -> None:
        # There is no action that answers a question of the page's: it is answered with yes.
        self._env.context.on("dialog", lambda dialog: dialog.accept())
        self._env.context.on("response", self._hear)
        self._env.context.on("request", self._count)

    def _hear(self, response: Any) -> None:
        if response.request.is_navigation_request() and response.status in _STATUSES_OF_A_SITE_THAT_IS_DOWN:
            self._down = f"{response.url} answers with status {response.status}"

    def _count(self, request: Any) -> None:
        self._writes += request.method not in ("GET", "HEAD", "OPTIONS")

    def _check_site(self) -> None:
        if self._env.page.url.startswith("chrome-error:"):
            self._down = "the site refuses connections"
        if self._down:
            raise Failure("site_down", self._down)

    def _seen(self, problem: str, reward: float, done: bool) -> dict[str, Any]:
        page = self._env.page
        return {
            "url": page.url,
            "title": page.title(),
            "tabs": [one.url for one in self._env.context.pages],
            "problem": problem,
            "reward": reward,
            "done": done,
            "writes": self._writes,
            "goal": " ".join(one["text"] for one in self._env.goal_object if one["type"] == "text"),
            **looks.looked_at(page, self._options["view"]),
        }

    def _close(self) -> None:
        env, self._env = self._env, None
        if env is not None and self.alive():
            env.close()

    def _stop(self) -> None:
        chromium, self._chromium = self._chromium, None
        if chromium is not None and chromium.is_connected():
            chromium.close()


def _pid_of(chromium: Any) -> int | None:
    """Of its main process, for whoever has to end it."""
    session = chromium.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return next((one["id"] for one in found if one["type"] == "browser"), None)


class _Playwright:
    """What BrowserGym asks of Playwright: it is given the Chromium that is kept, and cannot close it."""

    def __init__(self, browser: Browser) -> None:
        self.chromium, self.selectors = self, browser.selectors
        self._browser = browser

    def launch(self, **settings: Any) -> _Playwright:
        self._chromium = self._browser.launch(**settings)
        return self

    def new_context(self, **settings: Any) -> Any:
        return self._chromium.new_context(**settings)

    def close(self) -> None:
        """It is kept."""


class _Messages:
    """BrowserGym's chat without its window."""

    def __init__(self, **settings: Any) -> None:
        self.messages: list[dict[str, Any]] = []

    def add_message(self, role: str, msg: str) -> None:
        self.messages.append({"role": role, "timestamp": time.time(), "message": msg})

    def wait_for_user_message(self) -> None:
        """Nobody is there."""

    def close(self) -> None:
        """There is no window."""


def _goto(page: Any, url: str, timeout: float) -> None:
    """Go to a page.

    Raises:
        Failure: the site does not answer, or not in time.
    """
    try:
        response = page.goto(url, timeout=timeout, wait_until="domcontentloaded")
    except playwright.TimeoutError as error:
        raise Failure("navigation_timeout", f"{url} took longer than {timeout / 1000:g} s") from error
    except playwright.Error as error:
        if "net::" in str(error):
            raise Failure("site_down", _short(error)) from error
        raise
    if response is not None and response.status in _STATUSES_OF_A_SITE_THAT_IS_DOWN:
        raise Failure("site_down", f"{url} answers with status {response.status}")


class _Page:
    """BrowserGym's task, where somebody else judges."""

    def __init__(self, seed: int, url: str, navigation_ms: float) -> None:
        self.viewport = {"width": 1280, "height": 720}
        self.slow_mo = self.timeout = self.locale = self.timezone_id = None
        self.seed, self.url, self.navigation_ms = seed, url, navigation_ms

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        _goto(page, self.url, self.navigation_ms)
        return "", {}

    def validate(self, page: Any, messages: Any) -> tuple[float, bool, str, dict[str, Any]]:
        return 0.0, False, "", {}

    def teardown(self) -> None:
        """Nothing was set up."""


class _Miniwob(_Page):
    """A page of MiniWoB++, which draws its task, shows it, and judges by itself."""

    def __init__(self, seed: int, url: str, navigation_ms: float) -> None:
        super().__init__(seed, url, navigation_ms)
        self.viewport = {"width": 332, "height": 214}

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        super().setup(page)
        page.evaluate(
            """seed => {
                core.EPISODE_MAX_TIME = 1e9;
                Math.seedrandom(seed);
                core.startEpisodeReal();
                document.getElementById("reward-display")?.remove();
            }""",
            str(self.seed),
        )
        said = page.evaluate("(() => { const said = core.getUtterance(); return said.utterance ?? said; })()")
        return str(said), {}

    def validate(self, page: Any, messages: Any) -> tuple[float, bool, str, dict[str, Any]]:
        done = bool(page.evaluate("WOB_DONE_GLOBAL"))
        return (max(0.0, float(page.evaluate("WOB_RAW_REWARD_GLOBAL"))) if done else 0.0), done, "", {}


def _take(page: Any, name: str, element: str, argument: str, options: dict[str, Any]) -> None:
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


def _short(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


if __name__ == "__main__":
    main()
