"""What an episode is played on: the sites behind a browser, and whoever judges what was done there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from train_adapters.adapter import AgentTask
from train_adapters.webarena.browser.client import Browser


@dataclass(frozen=True)
class Opening:
    """How an episode begins, as the browser's worker takes it.

    Attributes:
        url: of the first page.
        seed: of what the page draws.
        miniwob: whether it is a page of MiniWoB++.
        storage_state: cookies and local storage of who is logged in, as Playwright has them.
        har: file for the network trace; None for no trace.
        names: what the agent sees in place of addresses, which differ from browser to browser and from run to run: with
            them in the prompt, directions would differ by more than their weights.
    """

    url: str
    seed: int = 0
    miniwob: bool = False
    storage_state: Mapping[str, Any] | None = None
    har: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Of the worker's command `open`."""
        return {name: value for name, value in asdict(self).items() if name != "names"} | {"sites": list(self.names)}

    def named(self, text: str) -> str:
        """A text with names in place of addresses."""
        for address, name in self.names.items():
            text = text.replace(address, name)
        return text


@dataclass(frozen=True)
class Ended:
    """What is judged.

    Attributes:
        answer: message of `exit`; None where the agent did not end the episode itself.
        url: of the last page.
        reward: what the page itself has given.
    """

    answer: str | None
    url: str
    reward: float


class Stage(Protocol):
    """The sites behind one browser; used for one episode at a time. Its methods block."""

    @property
    def untouched(self) -> bool:
        """Whether every episode begins on sites that no other has changed, so that it may be begun anew."""
        ...

    def prepare(self, task: AgentTask, browser: Browser) -> Opening:
        """Get the sites ready for an episode in a browser.

        Raises:
            InfraFailed: they are not to be had.
        """
        ...

    def judge(self, task: AgentTask, ended: Ended, browser: Browser) -> float:
        """What the episode was worth.

        Raises:
            Exception: it cannot be told; the episode is left out of the rewards.
        """
        ...

    def note_changes(self) -> None:
        """The episode has changed the sites, or may have."""
        ...

    def close(self) -> None:
        """Let go of the sites."""
        ...


class Source(Protocol):
    """Where tasks come from."""

    @property
    def tasks(self) -> Mapping[str, Sequence[AgentTask]]:
        """By split, in their order. A payload has `intent`, and `sites`, a list of names."""
        ...

    @property
    def advice(self) -> str:
        """What the agent is told about answers, besides the rules; may be empty."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for people at the start."""
        ...

    def stage(self, number: int) -> Stage:
        """What the browser of that number plays on, from 0."""
        ...
