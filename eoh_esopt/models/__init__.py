"""Models: where they come from, how they reply, and how directions and updates move their weights."""

import os

# OpenMP reads these when torch is loaded, and again for numba. Threads that wait by spinning keep the cores from those
# that work, as soon as there are two pools of them or another job: then replies take ten times as long. Threads that
# sleep at once cost each kernel 30 us to wake them. So they spin for about 20 us, which bridges calls in a row.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

# numba counts cores, and tells OpenMP its number for torch (and vLLM) as well: then both compute on as many threads as
# whoever set this number wanted.
if os.environ.get("OMP_NUM_THREADS"):
    os.environ.setdefault("NUMBA_NUM_THREADS", os.environ["OMP_NUM_THREADS"].partition(",")[0])
