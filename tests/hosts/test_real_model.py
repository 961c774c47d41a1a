"""Searches of real hosts with the real small model, whose weights really move."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_runs import find, run

from eoh_esopt.engine.history import load_history
from eoh_esopt.engine.replay import replay_history

SEARCHES = {
    "eoh02": {"problem": "Tour", "eoh": {"pop_size": 2, "n_pop": 3}, "reward": "graded"},
    "eoh01": {"paras": {"ec_pop_size": 2, "ec_n_pop": 3}, "reward": "paper"},
}


@pytest.mark.model
@pytest.mark.parametrize("name", ["eoh02", "eoh01"])
def test_small_model_learns_in_a_search_of_three_generations(name: str, small_model: Path, tmp_path: Path) -> None:
    """Without it everything could work with a scripted model, and nothing with one that has weights."""
    search = dict(SEARCHES[name])
    asked = {
        "model": str(small_model),
        "schedule": "paper",
        "scope": "norms",
        "directions": 4,
        "max_new_tokens": 56,
        "reward": search.pop("reward"),
    }
    ended = run(find(name), tmp_path, one={**search, "attach": asked})["one"]
    assert ended.result["error"] == ""
    assert ended.generations == 3
    history = load_history(ended.folder / "results" / "esopt")
    assert len(history.updates) >= 2
    assert all(any(update.weights) for update in history.updates)
    assert history.final_checksum != history.base_checksum
    directions = {one["direction"] for event in ended.events("replies") for one in event["candidates"]}
    assert {seed for update in history.updates for seed in update.seeds} <= directions
    assert replay_history(history, str(small_model), list).verdict == "The weights equal the run's."
