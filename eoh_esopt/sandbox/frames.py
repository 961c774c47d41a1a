"""Messages over pipes: two lengths, a small JSON header, raw bytes. Nothing is ever unpickled.

Frames between the parent and a worker are trusted; a frame from a candidate is not, and `untrusted` reads those.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
from collections.abc import Mapping
from typing import Any

_LENGTHS = struct.Struct("!IQ")
MAX_HEADER = 4096
_PIPE_BYTES = 1 << 20  # the most that Linux grants without privileges


class BadFrame(Exception):
    """The bytes are no frame."""


def pack(header: Mapping[str, object], body: bytes = b"") -> bytes:
    """The frame of a header and a body."""
    return head(header, len(body)) + body


def head(header: Mapping[str, object], body_bytes: int) -> bytes:
    """The frame of a header and a body that follows."""
    text = json.dumps(header).encode()
    return _LENGTHS.pack(len(text), body_bytes) + text


def size(data: bytes | bytearray) -> int | None:
    """Total bytes of the frame that begins with `data`; None while that cannot be told."""
    if len(data) < _LENGTHS.size:
        return None
    header, body = _LENGTHS.unpack_from(data)
    return int(_LENGTHS.size + header + body)


def unpack(data: bytes | bytearray) -> tuple[Any, memoryview]:
    """Header and body of a complete frame of ours; the body is a view of the data."""
    header, _ = _LENGTHS.unpack_from(data)
    split = _LENGTHS.size + header
    return json.loads(data[_LENGTHS.size : split]), memoryview(data)[split:]


def untrusted(data: bytes | memoryview) -> tuple[dict[str, Any], memoryview]:
    """Header and body of bytes a candidate may have written.

    Raises:
        BadFrame: lengths that do not match, a long header, or a header that is no JSON object.
    """
    if len(data) < _LENGTHS.size:
        raise BadFrame("shorter than a frame")
    length, body = _LENGTHS.unpack_from(data)
    if length > MAX_HEADER or _LENGTHS.size + length + body != len(data):
        raise BadFrame("lengths do not match")
    try:
        header = json.loads(bytes(data[_LENGTHS.size : _LENGTHS.size + length]))
    except (ValueError, RecursionError) as error:
        raise BadFrame("header is no JSON") from error
    if not isinstance(header, dict):
        raise BadFrame("header is no object")
    return header, memoryview(data)[_LENGTHS.size + length :]


def widen(pipe: int) -> None:
    """Let a pipe hold more, where the system can do that: large answers then take far fewer turns."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def write(fd: int, data: bytes | memoryview) -> None:
    """Write all of `data`, blocking.

    Raises:
        OSError: the other end is gone.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read(fd: int) -> tuple[Any, memoryview] | None:
    """The next frame of ours, blocking; None when the other end is closed."""
    data = bytearray()
    while (total := size(data)) is None or len(data) < total:
        chunk = os.read(fd, 65536 if total is None else total - len(data))
        if not chunk:
            return None
        data += chunk
    return unpack(data)


class Reader:
    """The frames of ours that come through a pipe in which several may wait.

    Args:
        fd: the pipe's end.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._data = bytearray()

    def receive(self) -> list[tuple[Any, memoryview]]:
        """Read what is there, blocking while there is nothing; the frames that are whole by then.

        Raises:
            EOFError: the other end is closed.
        """
        chunk = os.read(self._fd, 1 << 20)
        if not chunk:
            raise EOFError
        self._data += chunk
        whole = []
        while (total := size(self._data)) is not None and len(self._data) >= total:
            whole.append(unpack(bytes(self._data[:total])))
            del self._data[:total]
        return whole
