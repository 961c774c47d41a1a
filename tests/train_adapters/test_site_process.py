"""The process of a site set: its start, its ends, and what is there after each of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from web_client import WebClient
from web_oracles import Step

from train_adapters.webarena.sites import SiteDown, SiteSet
from train_adapters.webarena.sites.state import digest as content_digest
from train_adapters.webarena.sites.state import pristine

COMMAND = [sys.executable, "-m", "train_adapters.webarena.sites"]


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_kill_and_restart_lose_nothing_but_the_state() -> None:
    """After a crash the next episode must find pristine sites at the same addresses, and its user still logged in."""
    with SiteSet.start() as sites:
        urls, storage, digest = sites.urls, sites.storage_state(["forum"]), sites.state()["digest"]
        assert digest == content_digest(pristine())  # the same content in every process
        client = WebClient(storage)
        client.open(f"{urls['__FORUM__']}/board/books")
        client.do(Step("Click", "Subscribe"))
        assert len(sites.state()["changes"]) == 1
        os.kill(sites.pid, signal.SIGKILL)
        assert wait_until(lambda: not sites.healthy())
        for call in (sites.state, sites.reset, lambda: sites.page(urls["__SHOP__"])):
            with pytest.raises(SiteDown):
                call()
        sites.restart()
        assert sites.urls == urls
        assert sites.state() == {"digest": digest, "changes": []}
        client.open(f"{urls['__FORUM__']}/settings")
        assert "Logged in as emma_w" in client.page.text


def test_restart_works_on_a_process_that_still_runs_or_is_stopped() -> None:
    """A process that hangs must not hold up the training for longer than it takes to replace it."""
    with SiteSet.start() as sites:
        first = sites.pid
        os.kill(first, signal.SIGSTOP)
        sites.restart()
        assert sites.pid != first
        assert sites.healthy()


def test_close_ends_the_process_and_may_be_called_again() -> None:
    """Processes must not be left behind, whatever cleans up twice."""
    sites = SiteSet.start()
    process = sites.pid
    sites.close()
    sites.close()
    assert not sites.healthy()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    with pytest.raises(SiteDown):
        _ = sites.pid


def test_ends_with_its_parent() -> None:
    """A trainer that is killed must not leave its sites behind."""
    program = (
        "from train_adapters.webarena.sites import SiteSet; import time;"
        "sites = SiteSet.start('known'); print(sites.url, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        sites = SiteSet("known")
        sites.url = parent.stdout.readline().strip()
        assert sites.healthy()
        parent.kill()
        parent.wait()
        assert wait_until(lambda: not sites.healthy())


def test_site_sets_are_apart() -> None:
    """Workers side by side must not share a port, a state or a login."""
    with SiteSet.start() as one, SiteSet.start() as other:
        assert one.url != other.url
        assert one.token != other.token
        client = WebClient(one.storage_state())
        client.open(f"{one.url}/tracker/issue/3")
        client.do(Step("Click", "Close Issue"))
        assert [change["table"] for change in one.state()["changes"]] == ["issues"]
        assert other.state()["changes"] == []
        stranger = SiteSet(one.token)
        stranger.url = other.url
        with pytest.raises(SiteDown, match="404"):
            stranger.state()


def test_command_prints_its_addresses() -> None:
    """People who start the sites by hand need addresses and token; a second start on a port must say why not."""
    process = subprocess.Popen([*COMMAND, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        shown = json.loads(process.stdout.readline())
        sites = SiteSet(shown["token"])
        sites.url = shown["url"]
        assert sites.state()["changes"] == []
        assert shown["urls"] == sites.urls
        port = shown["url"].rpartition(":")[2]
        again = subprocess.run([*COMMAND, "--port", port], capture_output=True, text=True, timeout=60)
        assert again.returncode == 2
        assert "Choose another" in again.stderr
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_start_that_fails_says_so() -> None:
    """A port that another program took in the meantime is a site that is down, not a wrong address."""
    with SiteSet.start() as sites, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        sites.url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SiteDown, match="did not start"):
            sites.restart()


def test_pages_of_other_addresses_are_not_fetched() -> None:
    """An agent that left the sites must not make the checks load pages of the world."""
    with SiteSet.start() as sites:
        for url in ("http://example.com/", "file:///etc/passwd", "about:blank", "http://127.0.0.1:1/shop/", ""):
            with pytest.raises(ValueError, match="not part of"):
                sites.page(url)


def test_token_is_not_on_the_command_line() -> None:
    """Command lines are readable for everybody on the machine, an agent's tools with them."""
    with SiteSet.start() as sites, open(f"/proc/{sites.pid}/cmdline") as line:
        assert sites.token not in line.read()
