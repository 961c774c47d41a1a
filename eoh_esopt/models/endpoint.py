"""What endpoints that somebody else serves have in common: an address, a key, and weights that stay as they are."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from eoh_esopt.models.protocol import Reply
from operators.errors import UserError

API_KEY = "OPENAI_API_KEY"
"""The environment variable that holds the key. It is read when it is needed and never written anywhere."""

NO_KEY = "none"
"""What is sent where there is no key: local servers want none, but the client always sends something."""

ENDPOINT = "endpoint:"
"""Begins what stands for the checksum of weights that cannot be read."""

FROZEN = (
    "The weights of an endpoint cannot be moved: use --method eoh or sample, or a --backend that holds the weights, "
    "such as transformers."
)

_METHOD_PATH = "/chat/completions"


class PartialReplies(UserError):
    """A batch that was answered in part.

    Args:
        message: what went wrong, and the remedy.
        received: the replies that did come, by their position in the batch.
    """

    def __init__(self, message: str, received: Mapping[int, Reply]) -> None:
        super().__init__(message)
        self.received = dict(received)


def normalise_url(value: str, option: str = "--base-url") -> str:
    """The address of an OpenAI-compatible API, with a scheme and a path and without a slash at its end.

    Without a scheme, this machine and plain addresses are asked by http and names by https. Without a path, it is /v1.

    Args:
        value: what the user gave.
        option: where, for messages.

    Raises:
        UserError: the value is no address, or holds a user name, a password, a query or a fragment.
    """
    text = value.strip()
    if "@" in text:  # the value is not named: it may hold a password
        raise UserError(
            f"{option} must not hold a user name or a password: it is kept with the run. Put the key into {API_KEY}."
        )
    if "://" not in text:
        text = f"{'http' if _is_plain(text) else 'https'}://{text}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UserError(_not_an_address(option, value, str(error))) from error
    if parts.scheme not in ("http", "https"):
        raise UserError(_not_an_address(option, value, f"the scheme is {parts.scheme!r}"))
    if parts.query or parts.fragment:
        raise UserError(_not_an_address(option, value, "it ends in a query or a fragment"))
    if host in (None, "", "http", "https") or port == 0 or any(not 32 < ord(one) < 127 for one in text):
        raise UserError(_not_an_address(option, value, "no host can be read from it"))
    return f"{parts.scheme}://{parts.netloc}{_path(parts)}"


def _path(parts: SplitResult) -> str:
    path = parts.path.rstrip("/").removesuffix(_METHOD_PATH).rstrip("/")
    return path or "/v1"


def _is_plain(text: str) -> bool:
    """Whether an address without a scheme names this machine, or is a number: servers there rarely speak https."""
    try:
        host = urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _not_an_address(option: str, value: str, why: str) -> str:
    shown = re.split(r"[?#]", value)[0]  # a query may hold a key
    return f"{option} {shown!r} is no address of an API: {why}. Give something like http://localhost:8000/v1."


def api_key() -> str:
    """The key of the environment, or `NO_KEY`.

    Raises:
        UserError: the key holds characters that no header can carry.
    """
    key = os.environ.get(API_KEY, "").strip()
    if any(not 32 < ord(character) < 127 for character in key):
        raise UserError(f"{API_KEY} holds spaces or characters that no key has. Set it again.")
    return key or NO_KEY


def without_key(text: str) -> str:
    """A text of a server on one line, without the key it may repeat and not longer than a message should be."""
    key = api_key()
    text = " ".join(text.split())
    if key != NO_KEY:
        text = text.replace(key, "***")
    return text if len(text) <= 300 else f"{text[:300]}..."
