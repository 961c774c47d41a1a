"""Processes that are spawned without the user's script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import multiprocessing
import os
from eoh_esopt.models.vllm.spawning import script_left_out

with open("runs", "a") as file:
    file.write("once\\n")
with script_left_out():
    process = multiprocessing.get_context("spawn").Process(target=os.mkdir, args=("made",))
    process.start()
process.join()
assert process.exitcode == 0, process.exitcode
assert os.path.samefile(__file__, "script.py")
"""


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    """EoH 0.1's examples have no guard: each of vLLM's processes would begin the search again, and end in an error."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs").read_text() == "once\n"
    assert (tmp_path / "made").is_dir()
