"""Whole searches in processes of their own, as a user starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GREEDY = {
    "dtype": "float32",
    "temperature": 0,
    "budget": 8,
    "population": 1,
    "directions": 6,
    "max-new-tokens": 60,
    "seed": 3,
}
"""Settings of a short search without chance in its replies."""


def call(*arguments: object) -> str:
    """The standard output of a command."""
    command = [sys.executable, "-m", "eoh_esopt", *map(str, arguments)]
    environment = {**os.environ, "CI": "true", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def search(settings: Mapping[str, Any], backend: str, model: Path, out: Path) -> tuple[dict[str, Any], list[str]]:
    """The history and the replies of a run."""
    named = {**settings, "backend": backend, "model": model, "out": out}
    call("run", "tsp_construct", *(part for name, value in named.items() for part in (f"--{name}", value)))
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    replies = [one["text"] for event in events if event["event"] == "replies" for one in event["candidates"]]
    return json.loads((out / "history.json").read_text()), replies
