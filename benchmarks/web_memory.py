"""Memory of the web adapter over many episodes: two browsers on the local sites, played by a script.

    python -m benchmarks.web_memory [--episodes 200] [--browsers 2] [--every 20]

Printed is the proportional set size of this process and of all that it started (pages that processes share are counted
once), after every so many episodes. Needs scripts/setup_web.sh; reads /proc, so Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from train_adapters.webarena.actions import Action
from train_adapters.webarena.adapter import WebAdapter, make_adapter
from train_adapters.webarena.environment import WebEnvironment

_LINK = re.compile(r'<a id="(\d+)"')
_STEPS = 4


async def episode(adapter: WebAdapter, number: int) -> None:
    """Follow some links, each time another one of the page."""
    tasks = adapter.tasks("train")
    environment = adapter.environment(tasks[number % len(tasks)])
    assert isinstance(environment, WebEnvironment)
    try:
        await environment.reset()
        for step in range(_STEPS):
            links = _LINK.findall("\n".join(environment.observe().page.lines))
            await environment.step(Action("Click", links[(number + 3 * step) % len(links)]))
    finally:
        await environment.close()


async def some(adapter: WebAdapter, numbers: range) -> None:
    """Episodes, as many at once as there are browsers."""
    places = asyncio.Semaphore(adapter.side_by_side)

    async def one(number: int) -> None:
        async with places:
            await episode(adapter, number)

    await asyncio.gather(*map(one, numbers))


def descendants(pid: int) -> Iterator[int]:
    """A process, and all that it has started."""
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):  # each thread has those that it started
        for child in thread.read_text().split():
            yield from descendants(int(child))


def megabytes() -> tuple[float, float]:
    """Of this process, and of those that it has started."""
    own = sum_of([os.getpid()])
    return own, sum_of(list(descendants(os.getpid()))[1:])


def sum_of(pids: list[int]) -> float:
    """Proportional set size in MB; processes that have ended meanwhile count for nothing."""
    kilobytes = 0
    for pid in pids:
        try:
            found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
        except (FileNotFoundError, ProcessLookupError):
            continue
        kilobytes += int(found[1]) if found else 0
    return kilobytes / 1024


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--browsers", type=int, default=2)
    parser.add_argument("--every", type=int, default=20)
    options = parser.parse_args()
    adapter = make_adapter("local", browsers=options.browsers)
    print("episodes  seconds  own MB  browsers and sites MB")
    began = time.monotonic()
    for first in range(0, options.episodes, options.every):
        asyncio.run(some(adapter, range(first, first + options.every)))
        own, others = megabytes()
        print(f"{first + options.every:8}  {time.monotonic() - began:7.0f}  {own:6.0f}  {others:21.0f}", flush=True)
    adapter.close()


if __name__ == "__main__":
    main()
