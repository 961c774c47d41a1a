"""What a server with movable weights and its clients agree on: addresses, headers, key, and the hash of updates.

Nothing here needs vLLM: clients run without it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eoh_esopt.models.cache import cache_root
from operators.errors import UserError

PROTOCOL = 2
"""Raised when the routes or what they mean change."""

PREFIX = "/eoh/"
SESSION, TOKEN, EXPECT = "x-eoh-session", "x-eoh-token", "x-eoh-expect"
"""Headers: who asks, which request it is (the same for every attempt at it), and the state it is meant for."""
BATCH, REQUEST = "x-eoh-batch", "x-request-id"
"""Headers of a request for a reply: its place in a batch that begins together, and vLLM's own for its name."""

API_KEY = "EOH_ESOPT_KEY"
"""The environment variable with the key of the servers."""

NONCE = ".eoh-esopt-nonce"
"""A client's file in the folder that a server is to write to: it shows that both see the same folder."""

LEASE_S = 30.0
"""How long a client that is not heard of keeps a server to itself."""

NO_UPDATES = hashlib.sha256(b"").hexdigest()

FUNCTION_ENDS = tuple(f"\n{chr(code)}" for code in range(33, 127))
"""A reply that began inside a function ends at the first line that begins at column 0."""

SEED_MASK = 0x7FFFFFFFFFFFFFFF
"""vLLM takes signed seeds: these bits of ours."""


def hash_after(before: str, update: Mapping[str, Any]) -> str:
    """The hash of a sequence of updates from the hash of all but its last, and the last one's fields."""
    return hashlib.sha256(f"{before} {json.dumps(update, sort_keys=True)}".encode()).hexdigest()


def hash_of(updates: Iterable[Mapping[str, Any]]) -> str:
    """The hash of a sequence of updates, each given by its fields."""
    found = NO_UPDATES
    for update in updates:
        found = hash_after(found, update)
    return found


def server_urls(text: str) -> tuple[str, ...]:
    """The addresses in a comma-separated list, with their scheme and without a path.

    Raises:
        UserError: there is none, one is no address, holds a user name or a query, or stands there twice.
    """
    found = tuple(_server_url(one.strip()) for one in text.split(",") if one.strip())
    if not found:
        raise UserError("--servers names no server. Give addresses such as http://127.0.0.1:8000, separated by commas.")
    if len(set(found)) < len(found):
        twice = next(one for one in found if found.count(one) > 1)
        raise UserError(f"--servers names {twice} twice. Name every server once.")
    return found


def _server_url(text: str) -> str:
    if "@" in text:  # the value is not named: it may hold a password
        raise UserError(f"--servers must not hold a user name or a password. Put the key into {API_KEY}.")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UserError(f"--servers: {text!r} is no address: {error}. Give something like {_EXAMPLE}.") from error
    path = parts.path.rstrip("/").removesuffix("/v1")
    if parts.scheme not in ("http", "https") or not host or port == 0 or path or parts.query or parts.fragment:
        raise UserError(f"--servers: {text!r} is no address of a server. Give something like {_EXAMPLE}.")
    return f"{parts.scheme}://{parts.netloc}"


_EXAMPLE = "http://127.0.0.1:8000"


def is_loopback(host: str) -> bool:
    """Whether a host name or number is this machine to itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def key_file(port: int) -> Path:
    """Where a server on this machine keeps the key it made, for clients of the same user."""
    return cache_root() / "keys" / str(port)


def client_key(url: str) -> str:
    """The key for a server: the environment's, else the one that a server on this machine left; empty where none is.

    Raises:
        UserError: the key holds characters that no header can carry.
    """
    key = checked_key(os.environ.get(API_KEY, ""))
    parts = urlsplit(url)
    if key or not is_loopback(parts.hostname or ""):
        return key
    try:
        return key_file(parts.port or (443 if parts.scheme == "https" else 80)).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def checked_key(key: str) -> str:
    """A key without the spaces around it.

    Raises:
        UserError: it holds characters that no header can carry.
    """
    key = key.strip()
    if any(not 32 < ord(character) < 127 for character in key):
        raise UserError(f"{API_KEY} holds spaces or characters that no key has. Set it again.")
    return key
