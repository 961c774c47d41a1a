"""Momentum on the ES gradient, written in seeds: no buffer of weights, so a history stays seeds and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from operators.errors import UserError
from operators.records import Update

Momentum = Callable[[Sequence[Update], Update], Update]
"""Takes the updates made so far, oldest first, and the new one; returns the one to apply in its place."""

SMALLEST_SHARE = 0.01
"""A gradient whose share has decayed below this is left out: it costs as much noise as a fresh one."""


def momentum(beta: float) -> Momentum:
    """Heavy-ball momentum: m_t = beta * m_(t-1) + g_t is applied, where g_t is what the new update alone would apply.

    m_t is the sum of beta**k * g_(t-k), and each g is a sum over seeds; so the update inherits the seeds of earlier
    ones with decayed coefficients, back to the last k with beta**k of at least `SMALLEST_SHARE`. A constant gradient
    is applied 1 / (1 - beta) times as strongly, up to what is cut off, so alpha should be smaller by as much. The
    noise to regenerate grows as 1 + log(0.01) / log(beta): 7 times for beta 0.5, 44 times for 0.9. Skipped updates
    are no steps: nothing is applied and nothing decays.
    Source: Polyak, "Some methods of speeding up the convergence of iteration methods", 1964.

    Args:
        beta: share of the last step that is kept, in [0, 1); 0 returns updates as they are.

    Raises:
        UserError: beta is out of its range.
    """
    if not 0 <= beta < 1:
        raise UserError(f"momentum must lie in [0, 1), not {beta}.")

    def accumulate(earlier: Sequence[Update], update: Update) -> Update:
        inherited: list[tuple[int, float]] = []
        share = beta
        for past in reversed(earlier):
            if share < SMALLEST_SHARE:
                break
            inherited += zip(past.seeds, (share * one for one in past.own_coefficients), strict=True)
            share *= beta
        return replace(update, inherited=tuple(inherited))

    return accumulate
