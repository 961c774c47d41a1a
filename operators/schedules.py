"""Schedules of sigma over the steps of a run: functions from a step 0..steps-1 to a size of perturbation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

Schedule = Callable[[int], float]


def constant(sigma: float) -> Schedule:
    """The same sigma at every step."""
    return lambda step: sigma


def linear(first: float, last: float, steps: int) -> Schedule:
    """A straight line from `first` at step 0 to `last` at step steps-1."""
    return lambda step: last + (first - last) * (1 - _progress(step, steps))


def cosine(first: float, last: float, steps: int) -> Schedule:
    """Half a cosine from `first` at step 0 to `last` at step steps-1, both exact.

    The paper divides by T; the released code by T-1, so that the end points are met. This is the latter.
    With one step (or none) it is `first`.
    """

    def schedule(step: int) -> float:
        progress = _progress(step, steps)
        if progress in (0.0, 1.0):
            return last if progress else first
        return last + (first - last) * (1 + math.cos(math.pi * progress)) / 2

    return schedule


def warm_up(schedule: Schedule, steps: int) -> Schedule:
    """Hold the schedule's first value for `steps` steps, then run it from its beginning."""
    return lambda step: schedule(max(0, step - steps))


SCHEDULES: Mapping[str, Callable[[float, float, int], Schedule]] = {
    "cosine": cosine,
    "linear": linear,
    "constant": lambda first, last, steps: constant(first),
}
"""By the names that users give. Each takes the first sigma, the last one and the number of steps."""


def _progress(step: int, steps: int) -> float:
    return min(max(step / (steps - 1), 0.0), 1.0) if steps > 1 else 0.0
