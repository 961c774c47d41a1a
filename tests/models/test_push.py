"""Pushing to the hub, against a small server on this machine: what arrives, and refusals that say what to do."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import test_hub
from huggingface_hub import constants

from eoh_esopt.models.push import check_push, push
from operators.errors import UserError

online = test_hub.online
TOKEN = "hf_of_the_tests"


class Received:
    """What the fake hub was sent."""

    def __init__(self) -> None:
        self.repositories: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}


class FakeHub(test_hub.FakeHub):
    """Takes models of the user `me`; knows one token."""

    received = Received()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/api/whoami-v2":
            return self._answer(200 if self._known() else 401, b'{"name": "me", "type": "user"}')
        if path.startswith("/api/models/me/"):
            return self._answer(200, b'{"id": "me/adapted", "sha": "0", "siblings": []}')
        return super().do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._known():
            return self._answer(401, b"{}")
        if self.path == "/api/repos/create":
            return self._create(json.loads(body))
        if "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            files = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return self._json({"files": files})
        if "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.received.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            return self._json({"commitUrl": f"{constants.ENDPOINT}/me/adapted/commit/1", "commitOid": "1"})
        return self._json({})

    def _create(self, asked: dict[str, Any]) -> None:
        self.received.repositories.append(asked)
        if asked.get("organization") == "other":
            return self._answer(403, b'{"error": "not yours"}')
        return self._json({"url": f"{constants.ENDPOINT}/me/adapted", "name": "me/adapted", "id": "1"})

    def _known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _json(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def received(online: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Received]:
    """A fake hub that the client takes for the real one, and its token."""
    online.setenv("HF_TOKEN", TOKEN)
    online.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    online.setattr(FakeHub, "received", Received())
    with test_hub.serving(FakeHub, online):
        yield FakeHub.received


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What an export looks like, in small."""
    out = tmp_path / "adapted"
    out.mkdir()
    for name, content in (("README.md", "# a card"), ("config.json", "{}"), ("model.safetensors", "weights")):
        (out / name).write_text(content)
    return out


def test_everything_arrives_in_a_private_repository(received: Received, folder: Path) -> None:
    """Weights that are public by surprise cannot be called back."""
    check_push("me/adapted")
    assert push(folder, "me/adapted").endswith("/me/adapted")
    assert received.files == {path.name: path.read_bytes() for path in folder.iterdir()}
    [repository] = received.repositories
    assert repository.get("visibility") == "private" or repository.get("private")  # by version of the client


def test_without_a_token_the_user_hears_how_to_log_in(received: Received, online: pytest.MonkeyPatch) -> None:
    """Else the refusal comes after minutes of replay, as an HTTP error."""
    online.delenv("HF_TOKEN")
    online.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    with pytest.raises(UserError, match=r"no token\. Log in with `hf auth login`, or set HF_TOKEN"):
        check_push("me/adapted")
    online.setenv("HF_TOKEN", "hf_expired")
    with pytest.raises(UserError, match=r"refuses the token .*hf auth login"):
        check_push("me/adapted")


def test_a_repository_of_others_is_refused_in_one_sentence(received: Received, folder: Path) -> None:
    """The folder is written by then: the user must hear that, and how to go on."""
    with pytest.raises(UserError, match=r"adapted is written, but .* hf upload other/adapted") as refused:
        push(folder, "other/adapted")
    assert "\n" not in str(refused.value)
    assert folder.exists()


@pytest.mark.parametrize("name", ["adapted", "a/b/c", "me/", "-me/x", "me/../x"])
def test_impossible_names_are_refused(name: str) -> None:
    """A typing error must not be found by the hub after the export."""
    with pytest.raises(UserError, match=r"no hub repository\. Give it as ORG/NAME"):
        check_push(name)


def test_offline_nothing_is_asked(online: pytest.MonkeyPatch) -> None:
    """A private network must not see the request, and the user not wait for it."""
    online.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match=r"HF_HUB_OFFLINE is set\. Leave out --push"):
        check_push("me/adapted")
