"""A trajectory as people and language models read it: Markdown with fixed headings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from train_adapters.trajectories import Step, Trajectory

_RUN = re.compile("`{3,}")


def markdown(trajectory: Trajectory, outcome: str) -> str:
    """A trajectory as text.

    Args:
        trajectory: what was said.
        outcome: SUCCEED or FAILED.
    """
    return "\n".join([*_head(trajectory, outcome), *_turns(trajectory)]) + "\n"


def clipped(text: str, most: int) -> str:
    """A text of at most `most` characters and a line that says what was left out: its beginning and its end."""
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}\n[... {len(text) - most} characters left out ...]\n{text[head - most :]}"


def _head(one: Trajectory, outcome: str) -> Iterator[str]:
    yield f"# Trajectory of task {one.task}"
    yield ""
    yield "## Outcome"
    yield ""
    yield f"- outcome: {outcome}"
    yield f"- reward: {one.reward}"
    yield f"- ending: {one.ending.value}" + (f" ({one.reason})" if one.reason else "")
    yield f"- generation {one.generation}, candidate {one.candidate}, sample {one.sample}"


def _turns(one: Trajectory) -> Iterator[str]:
    for number, step in enumerate(one.steps, 1):
        yield f"\n## Turn {number}"
        yield from _shown(step)
        yield "\n### Reply\n"
        yield fenced(step.reply)


def _shown(step: Step) -> Iterator[str]:
    for turn in step.shown:
        yield f"\n### Shown ({turn.role})\n"
        yield fenced(turn.text)


def fenced(text: str) -> str:
    """A text between fences longer than any within it: nothing in it can end it."""
    fence = "`" * max(3, *(len(run) + 1 for run in _RUN.findall(text)), 0)
    return f"{fence}\n{text}\n{fence}"
