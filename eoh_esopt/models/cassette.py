"""Recorded replies: a file with one reply a line, filled while a model writes and played back without one.

What is looked up is the request as a whole: the weights, the prompt, the seed, the direction and the sampling. So a
recording never answers for another model, another seed or other settings than it was made with.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from typing import Any

from numpy import float32
from numpy.typing import NDArray

from eoh_esopt.models import chat
from eoh_esopt.models.endpoint import PartialReplies
from eoh_esopt.models.protocol import LanguageModel, Reply, Request
from eoh_esopt.models.stopwatch import Stopwatch, stopwatch_of
from operators.errors import UserError
from operators.records import Direction, Update
from operators.update_fields import fields_of


class Cassette:
    """A file of recorded replies. It is made when the first reply is recorded.

    Several runs may record into one file: each line is appended under a lock.

    Args:
        path: the file.
        recording: whether replies may be added; else the file must be there.

    Raises:
        UserError: the file is missing, damaged, or cannot be read or written. A last line that was cut short is no
            damage: it is left out.
    """

    def __init__(self, path: Path, *, recording: bool) -> None:
        self.path = path
        self.recording = recording
        recorded = _read(path)
        if recorded is None and not recording:
            raise UserError(f"There is no cassette at {path}. Give one that was recorded, or --base-url to record it.")
        self._replies = recorded or {}
        if recording:
            _check_writable(path, new=recorded is None)

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, key: str) -> Reply | None:
        """The reply recorded for a key."""
        return self._replies.get(key)

    def record(self, replies: Mapping[str, Reply]) -> None:
        """Add replies by their keys, and force them to disk. A key that is there keeps its reply.

        Raises:
            UserError: the disk is full or was taken away.
        """
        new = {key: reply for key, reply in replies.items() if key not in self._replies}
        if not new:
            return
        lines = b"".join(json.dumps({"key": key, **asdict(reply)}).encode() + b"\n" for key, reply in new.items())
        try:
            with self.path.open("ab+", buffering=0) as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                _mend_end(stream)
                while lines:
                    lines = lines[stream.write(lines) :]
                os.fsync(stream.fileno())
        except OSError as error:
            raise UserError(
                f"Cannot write to {self.path}: {error.strerror}. Make room; a run goes on with --resume."
            ) from error
        self._replies |= new


class CassetteModel:
    """A model whose replies are recorded, and played back where they were recorded before.

    Args:
        inner: writes what was not recorded, and holds the weights.
        cassette: the recording.
        settings: what else decides a reply, such as the sampling.
    """

    def __init__(self, inner: LanguageModel, cassette: Cassette, settings: Mapping[str, Any]) -> None:
        self._inner = inner
        self._cassette = cassette
        self._settings = dict(settings)
        self._weights: str | None = None

    @property
    def parameters(self) -> int | None:
        """How many weights the model has."""
        return self._inner.parameters

    @property
    def stopwatch(self) -> Stopwatch | None:
        """The model's own."""
        return stopwatch_of(self._inner)

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """As the model would split them."""
        return self._inner.batches(requests)

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """The replies to one batch: recorded ones, and new ones, which are recorded.

        Raises:
            UserError: a reply was not recorded and there is nothing to ask for it.
            PartialReplies: as the model raises it; what did come is recorded.
        """
        keys = [self._key(request) for request in requests]
        missing = [i for i, key in enumerate(keys) if self._cassette.get(key) is None]
        if missing and not self._cassette.recording:
            raise UserError(self._not_recorded(missing[0], requests))
        fresh: dict[str, Reply] = {}
        if missing:
            try:
                written = self._inner.generate([requests[i] for i in missing])
            except PartialReplies as error:
                self._cassette.record({keys[missing[i]]: reply for i, reply in error.received.items()})
                raise
            fresh = {keys[i]: reply for i, reply in zip(missing, written, strict=True)}
            self._cassette.record(fresh)
        return [self._cassette.get(key) or fresh[key] for key in keys]

    def probe(self, prompt: str, direction: Direction | None) -> NDArray[float32]:
        """As the model answers."""
        return self._inner.probe(prompt, direction)

    def apply(self, update: Update) -> None:
        """Move the model's weights: what was recorded under others is not played back any more."""
        weights = self._state()
        self._inner.apply(update)
        self._weights = _digest([weights, fields_of(update)])

    def checksum(self) -> str:
        """The model's own."""
        return self._inner.checksum()

    def drift(self) -> float:
        """The model's own."""
        return self._inner.drift()

    def save(self, folder: Path, *, float32: bool = False) -> None:
        """As the model saves itself."""
        self._inner.save(folder, float32=float32)

    def describe(self) -> dict[str, Any]:
        """The model's own description, and the cassette."""
        return {**self._inner.describe(), "cassette": str(self._cassette.path)}

    def close(self) -> None:
        """Close the model; the cassette is closed after every batch."""
        self._inner.close()

    def _state(self) -> str:
        """What stands for the weights: their checksum at first, then the updates since. Hashing them takes long."""
        if self._weights is None:
            self._weights = self._inner.checksum()
        return self._weights

    def _key(self, request: Request) -> str:
        direction = (request.direction.seed, request.direction.sigma) if request.direction else None
        asked: list[Any] = [chat.as_json(request.prompt), request.prefill, request.seed, direction]
        ends = {"stop": request.stop, "new_tokens": request.new_tokens}
        if request.stop or request.new_tokens:  # the keys of other requests stay what they were
            asked.append(ends)
        return _digest([self._state(), asked, self._settings])

    def _not_recorded(self, missing: int, requests: Sequence[Request]) -> str:
        request = requests[missing]
        words = " ".join(chat.words(request.prompt).split())
        return (
            f"{self._cassette.path} holds no reply to request {missing + 1} of {len(requests)} of this batch (seed "
            f"{request.seed}, prompt {words[:60]!r}...): it was recorded with another model, other settings or for "
            "fewer candidates. Give --base-url to record it."
        )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _check_writable(path: Path, *, new: bool) -> None:
    """See that replies can be recorded, before a model is loaded or asked."""
    place, what = (path.absolute().parent, "no folder") if new else (path, "no file")
    if not os.access(place, os.W_OK) or (new and not place.is_dir()):
        raise UserError(
            f"Cannot record to {path}: {place} is {what} that can be written to. Choose another --cassette."
        )


def _read(path: Path) -> dict[str, Reply] | None:
    """What the file holds; None where there is none."""
    replies: dict[str, Reply] = {}
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH)
            lines = stream.read().split(b"\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}. Choose another --cassette.") from error
    for number, line in enumerate(lines, 1):
        try:
            key, reply = _parse(line)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if number == len(lines):
                break
            raise UserError(f"{path}, line {number}, is damaged ({error!r}). Restore the file from a copy.") from error
        replies.setdefault(key, reply)
    return replies


def _parse(line: bytes) -> tuple[str, Reply]:
    fields = json.loads(line)
    reply = Reply(fields["text"], fields["prompt_tokens"], fields["new_tokens"], fields["truncated"])
    kinds = [type(one) for one in (fields["key"], *asdict(reply).values())]
    if kinds != [str, str, int, int, bool]:
        raise ValueError("a field of another kind")
    return fields["key"], reply


def _mend_end(stream: FileIO) -> None:
    """Let the next line begin at the start of one: a last line that was cut short is removed."""
    end = stream.seek(0, os.SEEK_END)
    if end == 0:
        return
    stream.seek(end - 1)
    if stream.read(1) == b"\n":
        return
    stream.seek(0)
    content = stream.readall()
    whole = content.rfind(b"\n") + 1
    try:
        _parse(content[whole:])
    except (ValueError, KeyError, TypeError, RecursionError):
        stream.truncate(whole)
    else:  # only its line end is missing, as some editors leave it
        stream.write(b"\n")
