"""Real processes, really killed around a revision of the skill: the resumed training ends as one that nobody killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from killed_skill_training import SKILL_MOMENTS
from skill_cases import co_evolving, scripted
from training_cases import OneDirection, of_kind, train

from eoh_esopt.engine.events import HISTORY

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("skills") / "whole"
    return folder, train(folder, co_evolving(), OneDirection(scripted()))


@pytest.mark.parametrize("moment", SKILL_MOMENTS)
def test_a_killed_training_ends_in_the_same_weights_and_skill(
    tmp_path: Path, whole: tuple[Path, dict[str, Any]], moment: str
) -> None:
    """Else a power cut during a revision costs the training, or makes it another one."""
    folder = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, str(HERE / "killed_skill_training.py"), str(folder), moment],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, HERE)))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not of_kind(folder, "skill_verdict")
    resumed = train(folder, co_evolving(), OneDirection(scripted()))
    original, summary = whole
    for name in ("weights_after", "ledger", "evaluations", "skill"):
        assert resumed[name] == summary[name]
    assert summary["skill"] is not None
    assert (folder / HISTORY).read_text() == (original / HISTORY).read_text()
    for path in (original / "skills").rglob("*"):
        assert path.is_dir() or path.read_bytes() == (folder / path.relative_to(original)).read_bytes()
