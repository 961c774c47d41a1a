"""How the threads of torch and numba wait for work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
import eoh_esopt.models.weights
print(os.environ["OMP_WAIT_POLICY"], os.environ.get("GOMP_SPINCOUNT"))
"""


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, ["passive", "1000"]),
        ({"OMP_WAIT_POLICY": "active"}, ["active", "None"]),
        ({"OMP_WAIT_POLICY": "passive"}, ["passive", "None"]),
        ({"GOMP_SPINCOUNT": "7"}, ["passive", "7"]),
    ],
)
def test_threads_spin_briefly_unless_the_user_says_otherwise(chosen: dict[str, str], expected: list[str]) -> None:
    """Spinning threads of one pool would keep the cores from the other's, so replies would take ten times as long."""
    settings = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environment = {name: value for name, value in os.environ.items() if name not in settings} | chosen
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


def test_the_policy_is_set_before_torch_is_loaded() -> None:
    """Set afterwards it has no effect, without a word."""
    program = (
        "import sys, eoh_esopt.models; sys.exit('torch' in sys.modules or 'numba.np.ufunc.omppool' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_kernels_take_the_number_of_threads_that_openmp_was_given() -> None:
    """vLLM's workers would go on with one thread after the first direction: slower, and with other rounding."""
    program = (
        "import torch, numpy as np\n"
        "from eoh_esopt.models import kernels\n"
        "from operators.noise import normal_table\n"
        "import numba\n"
        "kernels.fill_noise(np.empty(9, np.float32), np.uint64(1), 0, 9, 9, normal_table())\n"
        "print(numba.get_num_threads(), torch.get_num_threads())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "1"]
