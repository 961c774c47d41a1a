"""One search on two backends: where generation is deterministic, the whole history is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from searches import GREEDY, call, search

SMALL_STEPS = {"sigma": 0.006, "sigma-final": 0.006, "alpha": 0.01}
CASES = {
    "full": {"scope": "full", "budget": 14, **SMALL_STEPS},
    "lowrank": {"noise": "lowrank", **SMALL_STEPS},
    "norms": {"scope": "norms"},
}


@pytest.mark.parametrize("kind", CASES)
def test_a_greedy_search_writes_the_same_history_on_both_backends(kind: str, small_model: Path, tmp_path: Path) -> None:
    """Results could not be moved between a laptop and a server, and neither would check the other."""
    settings: dict[str, Any] = {**GREEDY, **CASES[kind]}
    runs = [search(settings, name, small_model, tmp_path / name) for name in ("transformers", "vllm")]
    (one, first), (two, second) = runs
    assert first == second
    assert len(first) == settings["budget"] + 1
    assert one["updates"] == two["updates"] != []
    assert one["final_checksum"] == two["final_checksum"] != one["base_checksum"]
    assert "The weights equal the run's." in call("replay", tmp_path / "vllm")
