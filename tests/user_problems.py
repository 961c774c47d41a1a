"""A user's own problem as a file: the one of docs/problems.md, and what a mistake in it makes of it."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs/problems.md"
BIN_PACKING = DOCS.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]

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
