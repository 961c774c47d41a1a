"""One site set over HTTP, on the loopback device: pages for browsers, and a control that needs the token."""

from __future__ import annotations

import hmac
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, urlsplit

from train_adapters.webarena.sites import admin, forum, shop, tracker
from train_adapters.webarena.sites.layout import document, frame, login_page
from train_adapters.webarena.sites.markup import link, tag
from train_adapters.webarena.sites.state import State
from train_adapters.webarena.sites.users import cookie_name, cookie_value, knows, user_of
from train_adapters.webarena.sites.web import Answer, LoginNeeded, Refused, Request, Site, clean, go

HOST = "127.0.0.1"
LARGEST_BODY = 1_000_000
"""Most bytes of a form."""

SITES: Mapping[str, Site] = {module.SITE.name: module.SITE for module in (shop, admin, forum, tracker)}
_LARGEST_DISCARDED = 20 * LARGEST_BODY
_IDLE_S = 60.0
_MOST_FIELDS = 100


class SiteServer(ThreadingHTTPServer):
    """A site set that listens. Several of them in one process have nothing in common.

    Args:
        port: to listen on; 0 for one that the system chooses.
        token: of the control; sessions are signed with it.
        parent: process id without which the server ends; None to go on until it is told.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, token: str, parent: int | None = None) -> None:
        super().__init__((HOST, port), _Handler)
        self.token = token
        self.state = State()
        self._parent = parent

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"

    def service_actions(self) -> None:
        """Called twice a second."""
        if self._parent is not None and os.getppid() != self._parent:
            os._exit(0)  # threads of open connections would hold up an ordinary end

    def handle_error(self, request: object, client_address: object) -> None:
        """Browsers hang up whenever they like; anything else is an error of ours."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    server: SiteServer
    protocol_version = "HTTP/1.1"
    server_version = "sites"
    timeout = _IDLE_S
    wbufsize = 65_536  # the head and the page in one packet
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve("GET")

    def do_HEAD(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def _serve(self, method: str) -> None:
        try:
            path, query, form = self._read(method)
            if path.startswith("/__"):
                self._send(*self._control(method, path))
            else:
                self._send_answer(self._answer(method, path, query, form))
        except Refused as error:
            self._send(error.status, str(error), "text/plain")

    def _read(self, method: str) -> tuple[str, Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
        """Path, parameters of the address, and the form."""
        body = self._body() if method == "POST" else ""
        try:
            target = urlsplit(self.path)
            return target.path, _fields(target.query), _fields(body)
        except ValueError as error:  # too many fields, or brackets where a host would be
            raise Refused(400, "Bad request.") from error

    def _body(self) -> str:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self.close_connection = True
            raise Refused(411, "The length of the body is missing.")
        size = int(length) if len(length) < 10 else _LARGEST_DISCARDED + 1
        if size > LARGEST_BODY:
            self.close_connection = True
            # Who is still sending when the connection is closed sees no answer.
            for place in range(0, size if size <= _LARGEST_DISCARDED else 0, LARGEST_BODY):
                self.rfile.read(min(LARGEST_BODY, size - place))
            raise Refused(413, "The body is too large.")
        return self.rfile.read(int(length)).decode("utf-8", "replace")

    def _control(self, method: str, path: str) -> tuple[int, str, str]:
        """Health for everybody; the rest, for those who have the token, is not there for others."""
        if (method, path) == ("GET", "/__health__"):
            return 200, '{"healthy": true}', "application/json"
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            raise Refused(404, "There is no such page.")
        state = self.server.state
        if (method, path) == ("POST", "/__reset__"):
            state.reset()
            return 200, '{"reset": true}', "application/json"
        if (method, path) == ("GET", "/__state__"):
            with state.use():  # both of the same moment
                found = {"digest": state.digest(), "changes": [asdict(one) for one in state.changes()]}
            return 200, json.dumps(found), "application/json"
        raise Refused(404, "There is no such page.")

    def _answer(
        self, method: str, path: str, query: Mapping[str, Sequence[str]], form: Mapping[str, Sequence[str]]
    ) -> Answer:
        name, _, rest = path.removeprefix("/").partition("/")
        if not name and not rest:
            return Answer(_directory())
        if name not in SITES:
            raise Refused(404, "There is no such page.")
        site, user = SITES[name], user_of(self.server.token, name, self._cookie(cookie_name(name)))
        try:
            with self.server.state.use() as database:
                request = Request(database, f"/{rest}", query, form, user)
                return _account(site, method, request, self.server.token) or _page(site, method, request)
        except LoginNeeded:
            back = f"{path}?{urlsplit(self.path).query}" if method == "GET" else f"/{name}/"
            return go(f"/{name}/login", next=back)
        except Refused as error:
            text = tag("p", str(error), class_="error", role="alert")
            return Answer(frame(site, request, "This did not work", (), text), error.status)

    def _cookie(self, name: str) -> str | None:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(name)
        except CookieError:
            return None
        return found.value if found else None

    def _send_answer(self, answer: Answer) -> None:
        extra = [("Set-Cookie", one) for one in answer.cookies]
        if answer.location is not None:
            extra.append(("Location", quote(answer.location, safe="/?&=%+:~-._")))
        self._send(answer.status, answer.body, "text/html", extra)

    def _send(self, status: int, text: str, kind: str, extra: Sequence[tuple[str, str]] = ()) -> None:
        data = text.encode("utf-8", "replace")
        self.send_response(status)
        safety = (
            ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
        )
        for name, value in (("Content-Type", f"{kind}; charset=utf-8"), *safety, *extra):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _fields(text: str) -> Mapping[str, Sequence[str]]:
    return parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)


def _directory() -> str:
    links = [tag("li", link(site.title, f"/{name}/")) for name, site in SITES.items()]
    return document("Sites", tag("h1", "Sites"), tag("ul", links))


def _page(site: Site, method: str, request: Request) -> Answer:
    found = site.answer(method, request)
    return found if isinstance(found, Answer) else Answer(found)


def _account(site: Site, method: str, request: Request, secret: str) -> Answer | None:
    """Logging in and out, which all sites do alike; None for any other page."""
    following = clean(dict(request.form).get("next", [request.asked("next")])[0])
    inside = following.startswith(f"/{site.name}/") and "\\" not in following
    home = following if inside else f"/{site.name}/"
    cookie = f"{cookie_name(site.name)}={{}}; Path=/{site.name}; HttpOnly; SameSite=Strict"
    if (method, request.path) == ("POST", "/logout"):
        return go(f"/{site.name}/", cookie.format("") + "; Max-Age=0", notice="logout")
    if request.path != "/login":
        return None
    if method == "GET":
        return Answer(login_page(site, request, home))
    user, password = (clean(request.form.get(name, [""])[0]) for name in ("user", "password"))
    if not knows(site.name, user, password):
        return Answer(login_page(site, request, home, wrong=True), 403)
    return go(home, cookie.format(cookie_value(secret, site.name, user)))
