"""Logging in to made-up sites whose forms are called as those of WebArena's images, in real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from made_up_site import Answer, Asked, path_of, site

from train_adapters.webarena.accounts import Account
from train_adapters.webarena.browser.client import Browser, BrowserOptions
from train_adapters.webarena.failures import InfraFailed
from train_adapters.webarena.installed import BROWSERS, chromium, python_of
from train_adapters.webarena.lite import LiteStage, lite_task
from train_adapters.webarena.site_sets import SiteSet

_PASSWORD = "correct horse"
_SHOP = """<form method=post action=/in style="display: none"><label for=e>Email Address</label><input id=e name=x>
<label for=q>Password</label><input id=q type=password><button>Sign In</button></form>
<form method=post action=/in><label for=email><span>Email</span></label><input id=email name=user type=email>
<label for=pass><span>Password</span></label><input id=pass name=password type=password><button>Sign In</button></form>
<form><label for=n>Sign Up for Our Newsletter:</label><input id=n type=email></form>"""
_ADMIN = """<form method=post action=/in><label for=username>Username</label><input id=username name=user>
<label for=login>Password</label><input id=login name=password type=password><button>Sign in</button></form>"""
_FORUM = """<form><label for=s>Search</label><input id=s></form>
<form method=post action=/in><label for=u>Username</label><input id=u name=user>
<label for=p>Password</label><input id=p name=password type=password><label><input type=checkbox>Remember me</label>
<button>Log in</button></form>"""
_GITLAB = """<form method=post action=/in><label for=u>Username or email</label><input id=u name=user>
<label for=p>Password</label><input id=p name=password type=password>
<button type=button aria-label="Show password">o</button><button>Sign in</button></form>"""
KINDS = {
    "shopping": ("/customer/account/login/", "/customer/account/", _SHOP),
    "shopping_admin": ("/admin", "/admin", _ADMIN),
    "reddit": ("/login", "/submit", _FORUM),
    "gitlab": ("/users/sign_in", "/dashboard/todos", _GITLAB),
}


@dataclass
class MadeUp:
    """A site that lets one account in.

    Attributes:
        kind: of the site.
        sessions: that are logged in.
        logins: so far.
    """

    kind: str
    sessions: set[str] = field(default_factory=set)
    logins: int = 0

    def __call__(self, asked: Asked) -> Answer:
        form_page, members, form = KINDS[self.kind]
        path, inside = path_of(asked), any(f"session={one}" in asked.cookies for one in self.sessions)
        if path == "/reset":
            self.sessions.clear()
            return Answer()
        if path == "/in":
            if (asked.form.get("user"), asked.form.get("password")) != ("ann@example.org", _PASSWORD):
                return Answer(location=form_page)
            self.logins += 1
            self.sessions.add(str(self.logins))
            return Answer(location=members, cookie=f"session={self.logins}; Path=/; HttpOnly")
        if path == members and inside:
            return Answer("<title>Welcome, Ann</title><p>Dashboard</p>")
        if path == form_page:
            return Answer(f"<title>Login</title>{form}")
        return Answer(location=form_page)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    made = Browser(python_of(BROWSERS), BrowserOptions(chromium(), "axtree"))
    yield made
    made.close()


def log_in(browser: Browser, kind: str, url: str, password: str = _PASSWORD, known: Any = None) -> Any:
    told = browser.call(
        "login",
        site=kind,
        url=url + ("/admin" if kind == "shopping_admin" else ""),
        user="ann@example.org",
        password=password,
        storage_state=known,
    )
    return told["storage_state"]


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_account_is_logged_in_and_stays_so(browser: Browser, kind: str) -> None:
    """Episodes of who is not logged in cannot be solved; a session that has ended must be noticed and renewed."""
    made_up = MadeUp(kind)
    with site(made_up) as running:
        state = log_in(browser, kind, running.url)
        seen = browser.call("open", url=running.url + KINDS[kind][1], storage_state=state)
        assert seen["title"] == "Welcome, Ann"
        state = log_in(browser, kind, running.url, known=state)
        assert made_up.logins == 1
        made_up.sessions.clear()
        state = log_in(browser, kind, running.url, known=state)
        assert made_up.logins == 2
        seen = browser.call("open", url=running.url + KINDS[kind][1], storage_state=state)
        assert seen["title"] == "Welcome, Ann"


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_wrong_password_is_told_without_the_password(browser: Browser, kind: str) -> None:
    """Without it all episodes would be played by nobody, and score 0; reports are shown to others."""
    with site(MadeUp(kind)) as running, pytest.raises(InfraFailed) as failure:
        log_in(browser, kind, running.url, password="battery staple")
    assert failure.value.kind == "login_failed"
    assert f"{kind} as ann@example.org" in str(failure.value)
    assert "battery staple" not in str(failure.value)


def test_a_site_without_its_form_is_told(browser: Browser) -> None:
    """An address with a typing error answers with some page too, which must not pass for being logged in."""
    with (
        site(lambda asked: Answer("<title>Not found</title>", 404)) as running,
        pytest.raises(InfraFailed, match="has no field 'Username'") as failure,
    ):
        log_in(browser, "reddit", running.url)
    assert failure.value.kind == "login_failed"


class AnyJudge:
    reads_verified = False
    advice = ""

    def traces(self, number: int) -> Path | None:
        return None

    def score(self, *parts: Any) -> float:
        return 1.0


def test_episodes_begin_logged_in_also_after_a_reset(browser: Browser) -> None:
    """A reset takes the sessions away: every later episode would be played by nobody."""
    made_up = MadeUp("gitlab")
    with site(made_up) as running:
        account = Account("ann@example.org", _PASSWORD)
        urls, resets = {"gitlab": running.url}, (f"{running.url}/reset",)
        stage = LiteStage(SiteSet(urls, accounts={"gitlab": account}, reset_urls=resets), AnyJudge(), 0, resets=True)
        config = {
            "task_id": 1,
            "sites": ["gitlab"],
            "start_url": "__GITLAB__/dashboard/todos",
            "eval": {"eval_types": []},
        }
        task = lite_task("train", config, {}, False)
        titles = []
        for _ in range(3):
            opening = stage.prepare(task, browser)
            titles.append(browser.call("open", **opening.arguments())["title"])
            if len(titles) == 2:
                stage.note_changes()
    assert titles == ["Welcome, Ann"] * 3
    assert made_up.logins == 2, "once, and once more after the reset"
