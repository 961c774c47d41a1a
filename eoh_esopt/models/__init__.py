"""Models: where they come from, how they reply, and how directions and updates move their weights."""

import os

# OpenMP reads it when torch is loaded, and again for numba. Threads that wait by spinning keep the cores from those
# that work, as soon as there are two pools of them or another job: then replies take ten times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
