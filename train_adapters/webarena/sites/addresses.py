"""Where the sites of a set are, and the placeholders that tasks write for them."""

from __future__ import annotations

from collections.abc import Mapping

PATHS = {
    "__HOME__": "",
    "__SHOP__": "/shop",
    "__ADMIN__": "/admin",
    "__FORUM__": "/forum",
    "__TRACKER__": "/tracker",
}
"""Path by placeholder. A placeholder is followed by a path that begins with a slash, or by nothing."""


def addresses(url: str) -> dict[str, str]:
    """Addresses by placeholder.

    Args:
        url: of the site set, without a slash at its end.
    """
    return {placeholder: url + path for placeholder, path in PATHS.items()}


def filled(text: str, urls: Mapping[str, str]) -> str:
    """The text with addresses in the place of placeholders."""
    for placeholder, url in urls.items():
        text = text.replace(placeholder, url)
    return text
