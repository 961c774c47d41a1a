"""Who may log in where, and the cookies that say who did."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

SITES = ("shop", "admin", "forum", "tracker")

USERS: Mapping[str, Mapping[str, str]] = {
    "shop": {"emma": "emma-shop", "liam": "liam-shop", "noor": "noor-shop", "otto": "otto-shop"},
    "admin": {"manager": "manager-admin"},
    "forum": {
        "emma_w": "emma-forum",
        "cycling_tom": "tom-forum",
        "bakerlena": "lena-forum",
        "pixel_ravi": "ravi-forum",
    },
    "tracker": {"emma": "emma-tracker", "jonas": "jonas-tracker", "mei": "mei-tracker", "sofia": "sofia-tracker"},
}
"""Passwords by site and user. There are no secrets on these sites."""

TASK_USER: Mapping[str, str] = {"shop": "emma", "admin": "manager", "forum": "emma_w", "tracker": "emma"}
"""Whom the tasks of a site are for."""


def cookie_name(site: str) -> str:
    return f"{site}_session"


def cookie_value(secret: str, site: str, user: str) -> str:
    """The cookie of a user who is logged in. It depends on nothing that a reset changes."""
    signature = hmac.new(secret.encode(), f"session/{site}/{user}".encode(), hashlib.sha256)
    return f"{user}.{signature.hexdigest()}"


def user_of(secret: str, site: str, cookie: str | None) -> str | None:
    """Who a cookie stands for; None where it is missing, forged, or of another site."""
    user = (cookie or "").partition(".")[0]
    known = user in USERS[site] and hmac.compare_digest(cookie_value(secret, site, user), (cookie or ""))
    return user if known else None


def knows(site: str, user: str, password: str) -> bool:
    """Whether the password is the user's."""
    right = USERS[site].get(user)
    return right is not None and hmac.compare_digest(right.encode(), password.encode())
