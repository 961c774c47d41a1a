"""A site that is made up for a test: real HTTP on this machine, as slow or as broken as the test wants it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes:
        method: GET or POST.
        path: with what follows a question mark.
        form: fields that were sent.
        cookies: as the browser sends them.
        authorization: the header; empty where there is none.
        body: what was sent.
    """

    method: str
    path: str
    form: Mapping[str, str]
    cookies: str
    authorization: str
    body: str


@dataclass(frozen=True)
class Answer:
    """What is sent back.

    Attributes:
        body: HTML, or what `kind` says.
        status: of the answer.
        location: where the browser is sent instead; empty for nowhere.
        cookie: to be kept; empty for none.
        after: seconds before anything is sent.
        kind: of the body.
        attached: whether the browser is to save it rather than show it.
        kept: whether the browser may keep it, to show it again.
    """

    body: str = ""
    status: int = 200
    location: str = ""
    cookie: str = ""
    after: float = 0.0
    kind: str = "text/html"
    attached: bool = False
    kept: bool = True


Pages = Callable[[Asked], Answer]


@dataclass
class Site:
    """A site that runs.

    Attributes:
        url: of it.
        asked: all requests so far.
    """

    url: str
    asked: list[Asked] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def paths(self, method: str = "GET") -> list[str]:
        """What was asked for."""
        return [one.path for one in self.asked if one.method == method and one.path != "/favicon.ico"]


@contextmanager
def site(pages: Pages) -> Iterator[Site]:
    """A site that answers with these pages until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            form = {name: values[-1] for name, values in parse_qs(sent, keep_blank_values=True).items()}
            head = self.headers
            asked = Asked(method, self.path, form, head.get("Cookie", ""), head.get("Authorization", ""), sent)
            running.asked.append(asked)
            answer = pages(asked)
            if answer.after and running.ended.wait(answer.after):
                return  # nobody waits any more
            body = answer.body.encode()
            self.send_response(302 if answer.location else answer.status)
            attached = "attachment; filename=a.txt" if answer.attached else ""
            heads = {"Location": answer.location, "Set-Cookie": answer.cookie, "Content-Disposition": attached}
            heads["Cache-Control"] = "" if answer.kept else "no-store"
            for name, value in heads.items():
                if value:
                    self.send_header(name, value)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *parts: object) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *parts: object) -> None:
            """A browser that has gone away is no error."""

    server = Server(("127.0.0.1", 0), Handler)
    running = Site(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield running
    finally:
        running.ended.set()
        server.shutdown()
        server.server_close()


NEVER = 3600.0
"""Seconds after which no test waits any more."""


def path_of(asked: Asked) -> str:
    """Without what follows a question mark."""
    return urlsplit(asked.path).path
