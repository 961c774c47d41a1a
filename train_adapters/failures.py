"""Episodes that were left out of the rewards, counted by where they were played and by what went wrong.

Failures that are nobody's fault but fall more often on one arm of a comparison than on another change its result, so
they are shown beside every mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from train_adapters.adapter import Episode

Failures = Mapping[str, Mapping[str, int]]
"""By group of the tasks: `episodes`, how many there were, and by cause how many of them do not count."""

EPISODES = "episodes"


def failures_of(episodes: Iterable[Episode], before: Failures | None = None) -> Failures:
    """The table of some episodes; those of tasks without a group are not in it.

    Args:
        episodes: in any order.
        before: a table that they are added to.
    """
    found = {group: dict(counts) for group, counts in (before or {}).items()}
    for episode in episodes:
        if not episode.group:
            continue
        counts = found.setdefault(episode.group, {EPISODES: 0})
        counts[EPISODES] += 1
        if not episode.ending.counts:
            cause = episode.reason.partition(":")[0] or episode.ending.value
            counts[cause] = counts.get(cause, 0) + 1
    return {group: found[group] for group in sorted(found)}


def failure_lines(failures: Failures) -> Iterator[tuple[str, str]]:
    """Each group, and what is to be said of it."""
    for group, counts in failures.items():
        causes = {cause: count for cause, count in counts.items() if cause != EPISODES}
        left_out, every = sum(causes.values()), counts[EPISODES]
        said = ", ".join(f"{count} {cause}" for cause, count in sorted(causes.items()))
        yield group, f"{left_out} of {every} left out ({left_out / every:.0%})" + (f": {said}" if said else "")
