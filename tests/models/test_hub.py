"""The hub source, against small servers on this machine: nothing waits long, and every refusal says what to do."""

from __future__ import annotations

import hashlib
import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from huggingface_hub import constants

from eoh_esopt.models import hub
from operators.errors import UserError

COMMIT = "0" * 39 + "1"
FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "tokenizer.json": b"{}",
    "original/consolidated.pth": b"!",
}


class FakeHub(http.server.BaseHTTPRequestHandler):
    """Answers for org/tiny (complete), org/gated, org/bare (no weights); everything else is not found."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/":
            return self._answer(200, b"hub")
        if "org/gated" in path:
            return self._answer(401, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"})
        if "org/tiny" not in path and "org/bare" not in path:
            return self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        files = FILES if "org/tiny" in path else {"config.json": b"{}"}
        if "/resolve/" in path:
            return self._file(path.partition(f"/resolve/{COMMIT}/")[2], files)
        if "/tree/" in path:
            listing = [{"type": "file", "path": n, "size": len(b), "oid": _etag(b)} for n, b in files.items()]
            return self._answer(200, json.dumps(listing).encode())
        siblings = [{"rfilename": name} for name in files]
        return self._answer(200, json.dumps({"id": "org/tiny", "sha": COMMIT, "siblings": siblings}).encode())

    def _file(self, name: str, files: dict[str, bytes]) -> None:
        if name not in files:
            return self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})
        return self._answer(200, files[name], {"ETag": f'"{_etag(files[name])}"', "X-Repo-Commit": COMMIT})

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def _etag(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@pytest.fixture
def online(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The hub client with an empty cache of its own and without any offline switch."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    return monkeypatch


@pytest.fixture
def server(online: pytest.MonkeyPatch) -> Iterator[None]:
    """A fake hub that the client takes for the real one."""
    with serving(FakeHub, online):
        yield


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler], online: pytest.MonkeyPatch) -> Iterator[None]:
    """A server on this machine in the place of the hub."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as fake:
        threading.Thread(target=fake.serve_forever, daemon=True).start()
        online.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{fake.server_port}")
        online.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", constants.ENDPOINT + "/{repo_id}/resolve/{revision}/{filename}"
        )
        yield
        fake.shutdown()


def test_a_model_is_downloaded_once_and_found_again_offline(server: None, online: pytest.MonkeyPatch) -> None:
    """Else a downloaded model is fetched again, or is out of reach without network."""
    assert hub.cached_snapshot("org/tiny") is None
    folder = hub.download_snapshot("org/tiny")
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert not (folder / "original").exists()
    online.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert hub.cached_snapshot("org/tiny") == folder


def test_a_gated_model_says_to_accept_and_log_in(server: None) -> None:
    """Else the user of a licensed model sees an HTTP error and not the two steps that mend it."""
    with pytest.raises(UserError, match=r"org/gated is gated: accept its licence .* log in"):
        hub.download_snapshot("org/gated")


def test_an_unknown_hub_model_says_so(server: None) -> None:
    """Else a misspelt hub id looks like a network failure."""
    with pytest.raises(UserError, match="no model org/nothing"):
        hub.download_snapshot("org/nothing")


def test_a_hub_model_without_weights_is_refused(server: None) -> None:
    """Else a folder that cannot be opened is handed to the run."""
    with pytest.raises(UserError, match="lacks the weights"):
        hub.download_snapshot("org/bare")


def test_a_silent_hub_is_given_up_within_seconds(online: pytest.MonkeyPatch) -> None:
    """Else a firewall that swallows packets costs minutes of retries before the other source is tried."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        online.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        begun = time.monotonic()
        with pytest.raises(hub.HubUnavailable, match=r"no answer|timed out"):
            hub.download_snapshot("org/tiny")
        assert time.monotonic() - begun < 5


def test_a_refused_connection_is_one_short_reason(online: pytest.MonkeyPatch) -> None:
    """Else the printed line is a page of retries."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    online.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    with pytest.raises(hub.HubUnavailable) as caught:
        hub.download_snapshot("org/tiny")
    assert "\n" not in str(caught.value)


def test_offline_by_choice_asks_nobody(online: pytest.MonkeyPatch) -> None:
    """Else HF_HUB_OFFLINE is ignored and a private network sees the request."""
    online.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(hub.HubUnavailable, match="HF_HUB_OFFLINE is set"):
        hub.download_snapshot("org/tiny")
