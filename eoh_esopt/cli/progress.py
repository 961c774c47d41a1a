"""Progress of long work, on the terminal only: outputs that go elsewhere stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

_One = TypeVar("_One")


def followed(what: str, total: int, parts: Iterable[_One]) -> Iterator[_One]:
    """The same parts, with a bar that moves as they come."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        yield from progress.track(parts, total=total, description=what)
