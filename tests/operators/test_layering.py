"""Imports run one way: the core knows no problem, no model and no torch."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from operators import errors

ROOT = Path(errors.__file__).parents[1]
OWN = {"operators", "problems", "eoh_esopt", "train_adapters"}
MAY_NOT_IMPORT = {
    "operators": OWN - {"operators"} | {"torch", "transformers", "numba", "click", "rich"},
    "problems": OWN - {"operators", "problems"} | {"torch", "transformers", "click", "rich"},
    "eoh_esopt": {"train_adapters"},
}


def imported(path: Path) -> set[str]:
    """Top-level packages that a file imports anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("package", MAY_NOT_IMPORT)
def test_imports_run_one_way(package: str) -> None:
    """A core that imports its callers cannot be used without them: agents' trainers would pull in the search."""
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        wrong = imported(path) & MAY_NOT_IMPORT[package]
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"
