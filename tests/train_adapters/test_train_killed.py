"""Real processes, really killed: a resumed training ends in the weights of one that nobody killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from killed_training import MOMENTS
from training_cases import OneDirection, drawn, of_kind, train

from eoh_esopt.engine.events import EVENTS, HISTORY

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def killed(folder: Path, moment: str) -> None:
    """Train in another process until it kills itself."""
    paths = os.pathsep.join(map(str, (ROOT, HERE)))
    done = subprocess.run(
        [sys.executable, str(HERE / "killed_training.py"), str(folder), moment],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_training_ends_in_the_same_weights(tmp_path: Path, moment: str) -> None:
    """Else a power cut costs the training, or the resumed one is another one."""
    folder = tmp_path / "killed"
    killed(folder, moment)
    assert not of_kind(folder, "end")
    if moment == "checkpoint":
        assert (folder / f".{HISTORY}.part").exists(), "a half-made checkpoint lies beside the whole one"
    if moment == "log":
        assert not (folder / EVENTS).read_bytes().endswith(b"\n")
    before = len(of_kind(folder, "episodes"))
    assert before > 0
    fresh, model = OneDirection(drawn), OneDirection(drawn)
    resumed, whole = train(folder, model=fresh), train(tmp_path / "whole", model=model)
    for name in ("weights_after", "ledger", "evaluations"):
        assert resumed[name] == whole[name]
    assert (folder / HISTORY).read_text() == (tmp_path / "whole" / HISTORY).read_text()
    assert len(fresh.requests) < len(model.requests), "what the log holds is not played again"
