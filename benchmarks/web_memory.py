"""Memory of the web adapter over many episodes: browsers on the local sites, played by a script.

    python -m benchmarks.web_memory [--episodes 600] [--browsers 2] [--every 20]

Printed is the memory of this process and of all that it has started, by part, after every so many episodes, and at the
end how it moved over the second half: what leaks goes on rising. Counted are pages that belong to a process (heap,
stack, shared memory), those that processes share once. Pages of programs and libraries are left out: the system shares
them with whatever else runs the same files, so that a process's part of them moves when others begin or end. Needs
scripts/setup_web.sh; reads /proc, so Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import sqrt
from pathlib import Path
from statistics import linear_regression, variance

from train_adapters.webarena.actions import Action
from train_adapters.webarena.adapter import WebAdapter, make_adapter
from train_adapters.webarena.environment import WebEnvironment

PARTS = ("trainer", "workers", "drivers", "chromium", "sites")
"""A browser's worker is Python with BrowserGym and Playwright; Playwright's driver is a program of Node's."""
_MARKS = {"workers": "worker.py", "drivers": "run-driver", "sites": "webarena.sites"}
_MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)")
_LINK = re.compile(r'<a id="(\d+)"')
_STEPS = 4
_ENDED = (FileNotFoundError, ProcessLookupError)


async def episode(adapter: WebAdapter, number: int) -> None:
    """Follow some links, each time another one of the page, and be judged."""
    tasks = adapter.tasks("train")
    task = tasks[number % len(tasks)]
    environment = adapter.environment(task)
    assert isinstance(environment, WebEnvironment)
    try:
        await environment.reset()
        for step in range(_STEPS):
            adapter.prompt(task, environment.observe())
            links = _LINK.findall("\n".join(environment.observe().page.lines))
            await environment.step(Action("Click", links[(number + 3 * step) % len(links)]))
        await adapter.score(task, environment)
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
    """A process, and all that it has started; those that end meanwhile may be among them or not."""
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):  # each thread has those that it started
        with suppress(*_ENDED):
            for child in thread.read_text().split():
                yield from descendants(int(child))


def part_of(pid: int) -> str:
    """Which of `PARTS` a process belongs to."""
    if pid == os.getpid():
        return "trainer"
    command = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return next((part for part, mark in _MARKS.items() if mark in command), "chromium")


def sample() -> dict[str, float]:
    """Memory of each part in MB; processes that have ended meanwhile count for nothing."""
    found = dict.fromkeys(PARTS, 0.0)
    for pid in descendants(os.getpid()):
        with suppress(*_ENDED):
            found[part_of(pid)] += own_kilobytes(Path(f"/proc/{pid}/smaps").read_text(errors="replace")) / 1024
    return found


def own_kilobytes(smaps: str) -> int:
    """Proportional set size of the mappings that are not of a file on disk.

    Args:
        smaps: the mappings of a process, each a line with its range and its file, and lines of figures.
    """
    total, counts = 0, False
    for line in smaps.splitlines():
        if mapping := _MAPPING.match(line):
            counts = not mapping[1].startswith("/") or mapping[1].endswith(" (deleted)")  # shared memory of Chromium's
        elif counts and line.startswith("Pss:"):
            total += int(line.split()[1])
    return total


def per_hundred(episodes: Sequence[int], megabytes: Sequence[float]) -> str:
    """Slope of the line of least squares, in MB for a hundred episodes, and its standard error."""
    slope, at_first = linear_regression(episodes, megabytes)
    errors = sum((y - at_first - slope * x) ** 2 for x, y in zip(episodes, megabytes, strict=True))
    spread = variance(episodes) * (len(episodes) - 1)
    return f"{100 * slope:+.1f}±{100 * sqrt(errors / (len(episodes) - 2) / spread):.1f}"


def row(*values: object) -> str:
    return "".join(f"{value:>11}" for value in values)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=600)
    parser.add_argument("--browsers", type=int, default=2)
    parser.add_argument("--every", type=int, default=20, help="episodes between two lines; at least six lines")
    options = parser.parse_args()
    adapter = make_adapter("local", browsers=options.browsers)
    print(row("episodes", "seconds", *PARTS, "all"))
    began = time.monotonic()
    samples: dict[int, dict[str, float]] = {}
    for first in range(0, options.episodes, options.every):
        asyncio.run(some(adapter, range(first, first + options.every)))
        found = samples[first + options.every] = sample()
        seconds = time.monotonic() - began
        print(row(first + options.every, f"{seconds:.0f}", *(f"{one:.0f}" for one in with_sum(found))), flush=True)
    adapter.close()
    late = {number: with_sum(found) for number, found in samples.items() if number > options.episodes / 2}
    columns = list(zip(*late.values(), strict=True))
    print("Over the second half, in MB:")
    print(row("most", "", *(f"{max(one):.0f}" for one in columns)))
    print(row("per 100", "episodes", *(per_hundred(list(late), one) for one in columns)))


def with_sum(found: Mapping[str, float]) -> list[float]:
    return [*found.values(), sum(found.values())]


if __name__ == "__main__":
    main()
