"""Logging in to WebArena's sites by their forms. Like `worker.py`, in the browsers' environment.

Where the forms are and what their fields are called is as in WebArena's images: two of Magento (the shop and its
administration), Postmill (the forum) and GitLab.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import page_visits  # type: ignore[import-not-found]
import playwright.sync_api as playwright


@dataclass(frozen=True)
class Form:
    """A site's form.

    Attributes:
        page: it is on.
        members: a page that leads to the form whoever is not logged in.
        user: label of the field for the name, all of it.
        button: what sends it.
    """

    page: str
    members: str
    user: str
    button: str


FORMS = {
    "shopping": Form("/customer/account/login/", "/customer/account/", "Email", "Sign In"),
    "shopping_admin": Form("", "", "Username", "Sign in"),
    "reddit": Form("/login", "/submit", "Username", "Log in"),
    "gitlab": Form("/users/sign_in", "/dashboard/todos", "Username or (primary )?email", "Sign in"),
}


def logged_in(context: Any, site: str, url: str, user: str, password: str, known: bool, navigation_ms: float) -> None:
    """Have a context logged in to a site.

    Args:
        context: Playwright's.
        site: one of `FORMS`.
        url: of the site.
        user: name of the account.
        password: of the account; no message has it.
        known: whether the context may be logged in already.
        navigation_ms: limit of a page.

    Raises:
        Failure: the site does not let the account in, or fails.
    """
    form, page, who = FORMS[site], context.new_page(), f"logging in to {site} as {user}"
    try:
        if known and _is_inside(page, url, form, navigation_ms):
            return
        page_visits.goto(page, url + form.page, navigation_ms)
        name = _field(page, form)
        if not name.count():
            raise page_visits.Failure("login_failed", f"{page.url} has no field {form.user!r}")
        name.first.fill(user)
        page.locator("input[type=password]:visible").first.fill(password)
        with page.expect_navigation(timeout=navigation_ms, wait_until="domcontentloaded"):
            page.get_by_role("button", name=form.button).first.click(no_wait_after=True)
        if not _is_inside(page, url, form, navigation_ms):
            raise page_visits.Failure("login_failed", "the site does not let the account in: is the password right?")
    except page_visits.Failure as failure:
        raise page_visits.Failure(failure.kind, f"{who}: {failure}") from None
    except playwright.Error as error:
        if not context.browser.is_connected():
            raise
        kind = "site_down" if "net::" in str(error) else "login_failed"  # no more of it: it may say what was typed
        raise page_visits.Failure(kind, f"{who}: the form at {url}{form.page} does not work") from None


def _is_inside(page: Any, url: str, form: Form, navigation_ms: float) -> bool:
    """Whether the page for members is shown, rather than the form or an error."""
    status = page_visits.goto(page, url + form.members, navigation_ms)
    return bool(status < 400) and not _field(page, form).count()


def _field(page: Any, form: Form) -> Any:
    label = re.compile(rf"^\s*{form.user}\s*\W*$", re.IGNORECASE)
    return page.get_by_label(label).locator("visible=true")
