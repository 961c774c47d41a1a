"""The user's end of a site set: start its process, reset it, ask for its state, end it."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from train_adapters.webarena.sites.addresses import addresses, filled
from train_adapters.webarena.sites.users import SITES, TASK_USER, cookie_name, cookie_value

_START_S = 30.0
_CALL_S = 30.0
_REDIRECTS = 5
_HOST = "127.0.0.1"


class SiteDown(Exception):
    """The site set is gone, did not start, or does not answer in time."""


class SiteSet:
    """A running site set; `SiteSet.start()` makes one. Several are independent of each other.

    Attributes:
        token: of the control and of the sessions' signatures; nothing for a browser.
        url: its address.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, token: str | None = None) -> SiteSet:
        """Start a process, on a port that the system chooses. It ends with this one, however that ends.

        Args:
            token: drawn where it is None.

        Raises:
            SiteDown: it did not start.
        """
        sites = cls(token or secrets.token_hex(16))
        sites._begin(0)
        return sites

    @property
    def urls(self) -> dict[str, str]:
        """Addresses of the sites by placeholder."""
        return addresses(self.url)

    @property
    def pid(self) -> int:
        """Of the process.

        Raises:
            SiteDown: it is closed.
        """
        if self._process is None:
            raise SiteDown("the site set is closed")
        return self._process.pid

    def fill(self, text: str) -> str:
        """A text of a task with addresses in the place of placeholders."""
        return filled(text, self.urls)

    def reset(self) -> None:
        """Bring the pristine state back.

        Raises:
            SiteDown: it does not answer.
        """
        self._control("POST", "/__reset__")

    def state(self) -> dict[str, Any]:
        """What has changed.

        Returns:
            `digest`, a hash of the whole content, and `changes`, for each row that differs from the pristine state its
            `table` and the row `before` and `after`, by column; None for a row that was not there.

        Raises:
            SiteDown: it does not answer.
        """
        return dict(json.loads(self._control("GET", "/__state__")))

    def healthy(self) -> bool:
        """Whether it answers."""
        try:
            self._control("GET", "/__health__")
        except SiteDown:
            return False
        return True

    def restart(self) -> None:
        """End the process if it is there, and start it again: same address and token, pristine state.

        Raises:
            SiteDown: it did not start.
        """
        port = urlsplit(self.url).port or 0
        self.close()
        self._begin(port)

    def close(self) -> None:
        """End the process. Calling it again does nothing."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def __enter__(self) -> SiteSet:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def storage_state(self, sites: Iterable[str] = SITES) -> dict[str, Any]:
        """Playwright's storage state with the task user of each site logged in. Resets and restarts do not end it."""
        cookies = [
            {
                "name": cookie_name(site),
                "value": cookie_value(self.token, site, TASK_USER[site]),
                "domain": _HOST,
                "path": f"/{site}",
                "expires": -1,
                "httpOnly": True,
                "secure": False,
                "sameSite": "Strict",
            }
            for site in sites
        ]
        return {"cookies": cookies, "origins": []}

    def page(self, url: str) -> str:
        """The HTML of an address as the task users see it.

        Raises:
            ValueError: the address is not one of this site set.
            SiteDown: it does not answer.
        """
        cookies = "; ".join(f"{one['name']}={one['value']}" for one in self.storage_state()["cookies"])
        for _ in range(_REDIRECTS):
            if urlsplit(url)[:2] != urlsplit(self.url)[:2]:
                raise ValueError(f"{url} is not part of {self.url}")
            answer = self._call("GET", url, {"Cookie": cookies})
            if answer.location is None:
                return answer.text
            url = urljoin(url, answer.location)
        raise ValueError(f"{url} redirects for ever")

    def _control(self, method: str, path: str) -> str:
        answer = self._call(method, self.url + path, {"Authorization": f"Bearer {self.token}", "Content-Length": "0"})
        if answer.status != 200:
            raise SiteDown(f"{self.url} answers with status {answer.status}; it is another program's by now")
        return answer.text

    def _call(self, method: str, url: str, headers: Mapping[str, str]) -> _Answer:
        target = urlsplit(url)
        connection = http.client.HTTPConnection(_HOST, target.port or 80, timeout=_CALL_S)
        try:
            path = f"{target.path or '/'}?{target.query}" if target.query else target.path or "/"
            connection.request(method, path, headers=dict(headers))
            answer = connection.getresponse()
            return _Answer(answer.status, answer.getheader("Location"), answer.read().decode())
        except (OSError, http.client.HTTPException) as error:
            raise SiteDown(f"{self.url} does not answer: {error or type(error).__name__}") from error
        finally:
            connection.close()

    def _begin(self, port: int) -> None:
        command = [sys.executable, "-m", "train_adapters.webarena.sites"]
        path = os.pathsep.join(os.path.abspath(one) for one in sys.path)
        self._process = subprocess.Popen(
            [*command, "--port", str(port), "--parent", str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # The command lines of processes are for everybody to read; their environment is not.
            env={**os.environ, "PYTHONPATH": path, "SITES_TOKEN": self.token},
            start_new_session=True,  # an interrupt at the terminal is for the program that uses the sites
        )
        try:
            self.url = str(json.loads(self._first_line())["url"])
        except (ValueError, KeyError) as error:
            self.close()
            raise SiteDown(f"the site set did not start within {_START_S:g} s on port {port}") from error

    def _first_line(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        line, until = b"", time.monotonic() + _START_S
        waiting = selectors.DefaultSelector()
        waiting.register(self._process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n") and (left := until - time.monotonic()) > 0:
            if waiting.select(left):
                part = os.read(self._process.stdout.fileno(), 65_536)
                if not part:
                    break
                line += part
        return line


class _Answer:
    def __init__(self, status: int, location: str | None, text: str) -> None:
        self.status, self.location, self.text = status, location, text
