"""The self-test at the start of every run: a direction changes the logits, and a revert brings back the same bits."""

from __future__ import annotations

import numpy as np

from eoh_esopt.models.protocol import LanguageModel
from operators.errors import UserError
from operators.records import Direction

_PROMPT = "Write a Python function that adds two numbers."
_SEEDS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)


def self_test(model: LanguageModel, sigma: float, *, exact: bool) -> float:
    """Perturb and revert once for each of two directions.

    Args:
        model: the model to test.
        sigma: size of the perturbation, the run's own.
        exact: whether logits must be the same bits after a revert; restore mode `subtract` only comes close.

    Returns:
        The largest absolute change of a logit under the first direction.

    Raises:
        UserError: a direction changes nothing or makes the logits overflow, both directions change the same, or a
            revert does not restore.
    """
    before = model.probe(_PROMPT, None)
    changed = [model.probe(_PROMPT, Direction(seed, sigma)) for seed in _SEEDS]
    after = model.probe(_PROMPT, None)
    if any(np.array_equal(before, logits) for logits in changed):
        raise UserError(
            f"Self-test failed: directions of sigma {sigma:g} do not change the model's logits. "
            "Choose a larger sigma, or another dtype: in bfloat16 a sigma below about 1e-5 is lost to rounding."
        )
    if np.array_equal(changed[0], changed[1]) or not all(bool(np.isfinite(logits).all()) for logits in changed):
        raise UserError(
            f"Self-test failed: under directions of sigma {sigma:g} the model's logits are the same or not finite. "
            "Choose a smaller sigma."
        )
    if exact and not np.array_equal(before, after):
        raise UserError(
            "Self-test failed: the logits differ after a revert. The model's forward pass is not repeatable."
        )
    return float(np.abs(changed[0] - before).max())
