"""A model without weights that opens what the task names, and does something else on the way if it is told to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from eoh_esopt.models.protocol import Reply, Request
from eoh_esopt.testing.scripted_model import ScriptedModel, Writer

_OPEN = re.compile(r"Task: Open the (?:category|board|project) (.+?)(?: of the shop)?\.\n")


def opens(request: Request, number: int) -> str:
    """A click on the link that the task names, then the end; in one case of four the end at once."""
    text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1].text
    task = _OPEN.match(text)
    assert task is not None, text
    link = re.search(rf'<a id="(\d+)"[^>]*>{re.escape(task[1])}', text)
    if "Actions so far" in text or link is None or number % 4 == 0:
        return "exit()"
    return f'do(action="Click", element="{link[1]}")'


def always(request: Request, number: int) -> str:
    """The same without the exception."""
    return opens(request, 1)


class Interrupted(ScriptedModel):
    """Does something before one of its batches.

    Args:
        at: number of that batch, from 1.
        then: what is done.
        write: of the replies.
    """

    def __init__(self, at: int, then: Callable[[], None], write: Writer = always) -> None:
        super().__init__(write)
        self._at, self._then = at, then

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        if len(self.batch_sizes) + 1 == self._at:
            self._then()
        return super().generate(requests)
