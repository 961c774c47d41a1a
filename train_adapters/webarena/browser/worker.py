"""The browser's side of the protocol: one process, one Chromium, one page at a time, driven by BrowserGym.

Runs by itself in the environment of the browsers, whose pins do not go together with the trainer's: of this package it
imports the files alone that stand beside it. Requests are lines of JSON on standard input, replies are lines of
JSON on standard output; `client.py` is the other side. Every request has exactly one reply: {"id", "ok": {...}} or
{"id", "error": {"kind", "text"}}.

It ends with its standard input, so that nothing is left when the trainer is killed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import browsergym.core as core
import browsergym.core.env as gym
import playwright.sync_api as playwright

sys.path.append(str(Path(__file__).parent))  # which `python -I` leaves out

import looks  # type: ignore[import-not-found]
import page_actions  # type: ignore[import-not-found]
import page_tasks  # type: ignore[import-not-found]
import page_visits  # type: ignore[import-not-found]
import site_logins  # type: ignore[import-not-found]
import site_watch  # type: ignore[import-not-found]

PROTOCOL = 1
"""Both sides must have the same."""

_PAUSE = 0.05
"""Seconds between an action and the look at what it did; BrowserGym's default of 0.5 is for people who watch."""
_REST_MS = 3_000
"""How long a page that is read may go on loading, as long as the benchmark waits for each."""


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
        "login": browser.login,
        "open": browser.open,
        "act": browser.act,
        "read": browser.read,
        "finish": browser.finish,
    }
    try:
        return {"ok": commands[request["do"]](**request.get("with", {}))}
    except page_visits.Failure as failure:
        return {"error": {"kind": failure.kind, "text": str(failure)}}
    except playwright.Error as error:
        kind = "browser_crashed" if not browser.alive() or "crash" in str(error).lower() else "browser_error"
        return {"error": {"kind": kind, "text": page_visits.short(error)}}
    except Exception as error:  # noqa: BLE001 - whatever a page does, the reply is typed and the process lives on
        kind = "browser_error" if browser.alive() else "browser_crashed"
        return {"error": {"kind": kind, "text": page_visits.short(error)}}


class Browser:
    """One Chromium, kept from episode to episode and started anew when it has died.

    Args:
        options: `executable` of Chromium, `view` ("html" or "axtree"), and `action_ms` and `navigation_ms`, how long
            an action and a page may take.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._playwright = core._get_global_playwright()
        self._chromium: Any = None
        self._pid: int | None = None
        self._env: Any = None
        self._watch: Any = None
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
        if self.alive():
            return self._chromium
        self._stop()
        arguments = [*settings.pop("args", []), "--disable-dev-shm-usage", "--disable-gpu"]
        self._chromium = self._playwright.chromium.launch(
            executable_path=self._options["executable"], headless=True, args=arguments
        )
        self._pid = _pid_of(self._chromium)
        return self._chromium

    @property
    def selectors(self) -> Any:
        """Playwright's, which BrowserGym sets up."""
        return self._playwright.selectors

    def login(self, site: str, url: str, user: str, password: str, storage_state: Any = None) -> dict[str, Any]:
        """Log in to a site, in a context of its own.

        Args:
            site: WebArena's name of it.
            url: of the site.
            user: name of the account.
            password: of the account.
            storage_state: of the last time; where it still lets in, nothing is filled in.

        Returns:
            `storage_state`, to begin episodes with.
        """
        context = self.launch().new_context(storage_state=storage_state)
        try:
            context.set_default_timeout(self._options["action_ms"])
            limit = self._options["navigation_ms"]
            site_logins.logged_in(context, site, url, user, password, storage_state is not None, limit)
            return {"storage_state": context.storage_state()}
        finally:
            context.close()

    def open(self, url: str, seed: int = 0, **settings: Any) -> dict[str, Any]:
        """Begin an episode at a page.

        Args:
            url: of the page.
            seed: of what the page draws.
            settings: `miniwob` (whether the page is a MiniWoB task), `storage_state` (cookies and local storage),
                `har` (file for the network trace, written by `finish`), `sites` (addresses that the episode is played
                on), `viewport`.
        """
        self._close()
        kwargs = {"storage_state": settings.get("storage_state")}
        if settings.get("har"):
            kwargs |= {"record_har_path": settings["har"], "record_har_content": "omit"}
        self._env = gym.BrowserEnv(
            task_entrypoint=page_tasks.Miniwob if settings.get("miniwob") else page_tasks.Page,
            task_kwargs={"url": url, "navigation_ms": self._options["navigation_ms"]},
            viewport=settings.get("viewport"),
            timeout=self._options["action_ms"],
            slow_mo=0,
            pw_context_kwargs={name: value for name, value in kwargs.items() if value is not None},
            pre_observation_delay=_PAUSE,
        )
        self._env.reset(seed=seed)
        # There is no action that answers a question of the page's: it is answered with yes.
        self._env.context.on("dialog", lambda dialog: dialog.accept())
        self._watch = site_watch.SiteWatch(self._env.context, settings.get("sites", ()))
        return {**self._seen("", 0.0, False), "pid": self._pid}

    def act(self, name: str, element: str = "", argument: str = "") -> dict[str, Any]:
        """Take an action and look at what it did; an action that cannot be taken is told in `problem`."""
        if self._env is None:
            raise page_visits.Failure("bad_request", "no page is open")
        problem, until = "", time.monotonic() + self._options["navigation_ms"] / 1000
        try:
            page_actions.take(self._env.page, name, element, argument, self._options)
        except (ValueError, playwright.Error) as error:
            if not self.alive():
                raise
            if not (isinstance(error, playwright.TimeoutError) and self._watch.waits):  # else it was done
                problem = page_visits.short(error)
        problem = self._watch.settle(until) or problem
        _, reward, done, _, _ = self._env.post_step({"action": name})
        if self._watch.waits:  # a script has asked for a page meanwhile
            problem = self._watch.settle(until) or problem
        return self._seen(problem, float(reward), bool(done))

    def read(self, expression: str, url: str = "", before: Sequence[str] = ()) -> dict[str, Any]:
        """The value of a JavaScript expression, on a new page where one is named; the episode's page stays as it is.

        Args:
            expression: of JavaScript.
            url: of the page; empty for the episode's.
            before: expressions that bring the page to show it; one that fails is passed over.
        """
        if self._env is None:
            raise page_visits.Failure("bad_request", "no page is open")
        own = self._env.page
        page = self._env.context.new_page() if url else own
        try:
            if url:
                page_visits.goto(page, url, self._options["navigation_ms"])
                with suppress(playwright.TimeoutError):  # scripts may fill in forms; some pages never rest
                    page.wait_for_load_state("networkidle", timeout=_REST_MS)
            for one in before:
                with suppress(playwright.Error):
                    page.evaluate(one)
            return {"url": page.url, "value": page.evaluate(expression)}
        finally:
            if url:
                page.close()
                self._env.page = own

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

    def _seen(self, problem: str, reward: float, done: bool) -> dict[str, Any]:
        page = self._env.page
        return {
            "url": page.url,
            "title": page.title(),
            "tabs": [one.url for one in self._env.context.pages],
            "problem": problem,
            "reward": reward,
            "done": done,
            "writes": self._watch.writes,
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


if __name__ == "__main__":
    main()
