"""One search on two backends: where generation is deterministic, the whole history is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SETTINGS = {
    "dtype": "float32",
    "scope": "full",
    "temperature": 0,
    "budget": 14,
    "population": 1,
    "directions": 6,
    "max-new-tokens": 60,
    "seed": 3,
    "sigma": 0.006,
    "sigma-final": 0.006,
    "alpha": 0.01,
}


def search(backend: str, model: Path, out: Path) -> tuple[dict[str, Any], list[str]]:
    """The history and the replies of a run in a process of its own."""
    settings = {**SETTINGS, "backend": backend, "model": model, "out": out}
    options = [str(part) for name, value in settings.items() for part in (f"--{name}", value)]
    command = [sys.executable, "-m", "eoh_esopt", "run", "tsp_construct", *options]
    environment = {**os.environ, "CI": "true", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    replies = [one["text"] for event in events if event["event"] == "replies" for one in event["candidates"]]
    return json.loads((out / "history.json").read_text()), replies


def test_a_greedy_search_writes_the_same_history_on_both_backends(small_model: Path, tmp_path: Path) -> None:
    """Results could not be moved between a laptop and a server, and neither would check the other."""
    (one, first), (two, second) = (search(name, small_model, tmp_path / name) for name in ("transformers", "vllm"))
    assert first == second
    assert len(first) == 15
    assert one["updates"] == two["updates"] != []
    assert one["final_checksum"] == two["final_checksum"] != one["base_checksum"]
