"""A browser's worker, with all that it has started, is ended and started anew after so many episodes."""

from __future__ import annotations

import time

from web_processes import alive, children

from train_adapters.webarena.browser.client import Browser, BrowserOptions
from train_adapters.webarena.installed import BROWSERS, chromium, python_of


def test_nothing_of_a_browser_outlives_its_episodes() -> None:
    """Playwright keeps a little of every wait for a page until it ends: a long training would fill the memory."""
    browser = Browser(python_of(BROWSERS), BrowserOptions(chromium(), episodes=2))
    pids, started = [], []
    try:
        for _ in range(5):
            browser.call("open", url="data:text/html,<p>A page</p>")
            worker, main = browser.pids
            assert worker is not None
            assert main is not None
            pids.append((worker, main))
            started.append(children(worker))
            browser.call("finish")
    finally:
        browser.close()
    assert pids[0] == pids[1]
    assert pids[2] == pids[3]
    workers, mains = zip(*pids, strict=True)
    assert len(set(workers)) == len(set(mains)) == 3
    assert all(main in family for main, family in zip(mains, started, strict=True)), "Chromium is among them"
    until = time.monotonic() + 20
    while any(map(alive, set.union(*started))) and time.monotonic() < until:
        time.sleep(0.2)
    assert not [pid for pid in set.union(*started) if alive(pid)]
