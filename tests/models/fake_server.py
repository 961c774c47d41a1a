"""A tiny chat server in this process that behaves as it is told: well, badly or not at all."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Body = dict[str, Any]
Writer = Callable[[Body], str]


class Asked(NamedTuple):
    """One request as it came."""

    path: str
    body: Body
    authorization: str


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: FakeServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            number = len(self.server.asked)
            self.server.asked.append(Asked(self.path, body, self.headers.get("Authorization", "")))
        script = self.server.script
        behaviour = script[min(number, len(script) - 1)]
        if self.path != "/v1/chat/completions":
            behaviour = fails(404, "no such path")
        behaviour(self, body)

    def do_GET(self) -> None:
        names = self.server.models
        if self.path != "/v1/models" or names is None:
            self.send(404, b"{}")
        else:
            self.answer({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})

    def answer(self, value: Any, status: int = 200, **headers: str) -> None:
        self.send(status, json.dumps(value).encode(), **headers)

    def send(self, status: int, content: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: tests read what was asked."""


Behaviour = Callable[[Handler, Body], None]


class FakeServer(ThreadingHTTPServer):
    """Serves on a free port of this machine until its block ends.

    Args:
        script: what to do with the first request, the second and so on; the last holds for all others.
        models: names to list; None to have no list.
        port: to serve on; 0 for any that is free.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, *script: Behaviour, models: Sequence[str] | None = ("small", "large"), port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.script = script
        self.models = models
        self.asked: list[Asked] = []
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""

    def __enter__(self) -> FakeServer:
        self.thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.closing.set()
        self.shutdown()
        self.thread.join()
        self.server_close()


def completion(content: Any, finish: str = "stop", **message: Any) -> Body:
    """A whole answer around a message's content."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return {
        "id": "a",
        "object": "chat.completion",
        "created": 1,
        "model": "small",
        "choices": [choice],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def echo(body: Body) -> str:
    """A reply that shows what was asked."""
    return f"{body['messages'][-1]['content']}/{body.get('seed')}"


def says(write: Writer = echo) -> Behaviour:
    """Answer as asked."""
    return lambda handler, body: handler.answer(completion(write(body)))


def answers(value: Any) -> Behaviour:
    """Answer with this JSON."""
    return lambda handler, body: handler.answer(value)


def sends(content: bytes, kind: str = "application/json") -> Behaviour:
    """Answer with these bytes."""
    return lambda handler, body: handler.send(200, content, kind)


def fails(status: int, message: str = "it is so", code: str | None = None, **headers: str) -> Behaviour:
    """Answer with an error."""
    error = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return lambda handler, body: handler.answer(error, status, **headers)


def refuses(*names: str, message: str = "Unrecognized request argument supplied: {}") -> Behaviour:
    """Answer only requests without some settings."""

    def behave(handler: Handler, body: Body) -> None:
        named = [name for name in names if name in body]
        (fails(400, message.format(named[0])) if named else says())(handler, body)

    return behave


def is_silent(handler: Handler, body: Body) -> None:
    """Take the request and never answer."""
    handler.server.closing.wait()
    handler.close_connection = True


def drips(handler: Handler, body: Body) -> None:
    """Begin an answer and keep the line alive for ever, as proxies do."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not handler.server.closing.wait(0.05):
        handler.wfile.write(b" ")
    handler.close_connection = True


def hangs_up(handler: Handler, body: Body) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def breaks_off(handler: Handler, body: Body) -> None:
    """Promise more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


def writes(body: Body) -> str:
    """A heuristic for round trips, a failing one or prose: which one depends on the prompt and the seed."""
    asked = f"{body['messages'][0]['content']}/{body['seed']}"
    number = int.from_bytes(hashlib.blake2b(asked.encode(), digest_size=4).digest(), "little")
    score = f"distance_matrix[current_node][unvisited_nodes] - {number % 97 / 100} * distance_matrix[destination_node]"
    choice = "unknown_name" if number % 7 == 0 else f"unvisited_nodes[np.argmin({score}[unvisited_nodes])]"
    head = "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):"
    code = f"```python\nimport numpy as np\n\n{head}\n    return {choice}\n```"
    return "I would rather not." if number % 5 == 0 else f"{{Look back a little.}}\n{code}\n"
