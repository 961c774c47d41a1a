"""Models: where they come from, how they reply, and how directions and updates move their weights."""

import os

# OpenMP reads it when torch is loaded, and again for numba. Threads that wait by spinning keep the cores from those
# that work, as soon as there are two pools of them or another job: then replies take ten times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# numba counts cores, and tells OpenMP its number for torch (and vLLM) as well: then both compute on as many threads as
# whoever set this number wanted.
if os.environ.get("OMP_NUM_THREADS"):
    os.environ.setdefault("NUMBA_NUM_THREADS", os.environ["OMP_NUM_THREADS"].partition(",")[0])
