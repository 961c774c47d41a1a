"""The page that shows the two lines."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "plug-in.md"
DIFFS = re.findall(r"```diff\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_there_is_one_for_each_host() -> None:
    """Without it a host's users would find no example."""
    assert len(DIFFS) == 3


@pytest.mark.parametrize("number", range(3))
def test_a_script_changes_by_four_lines_at_most_and_stays_a_script(number: int) -> None:
    """Without it the page would promise two lines and ask for more, or show what does not run."""
    lines = DIFFS[number].splitlines()
    assert sum(line[:1] in "+-" for line in lines if line) <= 4
    after = "\n".join(line[1:] for line in lines if line[:1] != "-")
    calls = [node for node in ast.walk(ast.parse(after)) if isinstance(node, ast.Call)]
    assert any(isinstance(call.func, ast.Name) and call.func.id == "attach" for call in calls)
