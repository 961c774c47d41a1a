"""A user's own problem as a file: the one of docs/problems.md, and what a mistake in it makes of it."""

from __future__ import annotations

from pathlib import Path

BIN_PACKING = '''\
"""Online bin packing: choose a bin for each item as it comes."""

import numpy as np

from problems import InvalidSolution, Problem, as_matrix


class OnlineBinPacking(Problem):
    """Items come one by one and go at once into a bin. Score the bins with room: the item goes to the best one."""

    measure = "bins"
    template = \'\'\'
        import numpy as np

        def score_bins(item, room):
            """Take the fullest bin.

            item: size of the item. room: 1-D array, the room left in each bin that can take it, at most 150.
            Returns a 1-D array of the same length; the item goes to the bin with the highest value.
            """
            return -room
    \'\'\'

    def __init__(self):
        self.instances = list(np.random.default_rng(1).integers(20, 101, size=(5, 120)))

    def solve(self, items, score_bins):
        room, bins = np.full(len(items), 150), []
        for item in items:
            fits = np.flatnonzero(room >= item)
            values = as_matrix(score_bins(int(item), room[fits]), fits.shape, "score_bins")
            bins.append(fits[np.argmax(values)])
            room[bins[-1]] -= item
        return bins

    def score(self, items, bins):
        if bins.shape != items.shape or bins.dtype != int or bins.min() < 0 or bins.max() >= len(items):
            raise InvalidSolution("every item needs a bin from 0 to the number of items - 1")
        load = np.bincount(bins, weights=items)
        if load.max() > 150:
            raise InvalidSolution("a bin holds more than 150")
        return np.count_nonzero(load)
'''

FULLEST = "def score_bins(item, room):\n    return -room\n"
"""The heuristic of its template."""

RULES = BIN_PACKING[BIN_PACKING.index("        if bins.shape") : BIN_PACKING.index("        return np.count_nonzero")]
"""The lines of its score that check."""


def changed(*changes: tuple[str, str]) -> str:
    """Bin packing with pieces of its source replaced; each has to occur exactly once."""
    source = BIN_PACKING
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def put(folder: Path, source: str = BIN_PACKING, name: str = "my_problem.py") -> str:
    """Write the file; returns its path."""
    path = folder / name
    path.write_text(source, encoding="utf-8")
    return str(path)
