"""What a probe advises: the planned run and a better one, each with what is predicted of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.experiments.probe_parts import Parts, parts_of
from eoh_esopt.experiments.probe_prediction import Prediction, linear_gain, planned, predict
from eoh_esopt.experiments.probe_record import Measurement
from eoh_esopt.experiments.probe_variance import REWARD

MOST_DAMAGE = 0.5
"""Damage that is allowed, in standard deviations of one candidate's reward."""

LEAST_DIRECTIONS = 4
"""Fewer make z-scores that say next to nothing."""

REACH = 2.0
"""How far along the slope advice goes, in standard deviations of directions at the largest harmless sigma."""


@dataclass(frozen=True)
class Advice:
    """What a probe answers.

    Attributes:
        parts: what was measured.
        config: the planned run, every default filled in.
        as_planned: what is predicted of it.
        recommended: the run with the best settings; None where no slope was seen or every sigma does harm.
        if_followed: what is predicted of that.
        repetitions: runs of each arm.
    """

    parts: Parts
    config: RunConfig
    as_planned: Prediction
    recommended: RunConfig | None
    if_followed: Prediction | None
    repetitions: int


def advise(
    measurement: Measurement, sigmas: tuple[float, ...], repetitions: int, most_damage: float = MOST_DAMAGE
) -> Advice:
    """Predict the planned run, look for better settings, and predict those.

    Args:
        measurement: with the cells of these sigmas; its `config` is the planned run.
        sigmas: ascending, without 0.
        repetitions: runs of each arm, at least 1.
        most_damage: damage that is allowed, in standard deviations of one candidate's reward.
    """
    config = measurement.config
    parts = parts_of(measurement, sigmas, most_damage)
    better = recommend(parts, config)
    followed = None if better is None else predict(parts, planned(better), repetitions, config.seed)
    return Advice(
        parts, config, predict(parts, planned(config), repetitions, config.seed), better, followed, repetitions
    )


def recommend(parts: Parts, config: RunConfig) -> RunConfig | None:
    """The settings with the best prediction of the reward; None where no slope was seen.

    Sigma is one of the measured ones that do no more than the harm that is allowed, and falls to the same share of
    itself as in `config`. The learning batch stays as large as it is and is split into directions and samples in every
    way that leaves `LEAST_DIRECTIONS`. Alpha maximises gain minus walk, within what was measured: the random walk
    moves a weight no further than the largest harmless sigma does, and the way along the slope is no longer than that
    of a direction `REACH` standard deviations up, where the straight line was seen to hold. Of all these the one with
    the highest net gain, less one standard deviation of what the walk does to it by accident.
    """
    assert config.sigma
    assert config.sigma_final is not None
    if parts.slope is None or not parts.harmless:
        return None
    steepness = parts.steepness(REWARD)
    best: tuple[float, RunConfig] | None = None
    for sigma in parts.harmless:
        for directions, samples in splits(config.learning_batch):
            trial = replace(config, directions=directions, samples_per_direction=samples, alpha=1.0)
            trial = replace(trial, sigma=sigma, sigma_final=sigma * config.sigma_final / config.sigma)
            plan = planned(trial)
            unit = float(linear_gain(parts, plan, parts.slope.estimate)[REWARD])
            if unit <= 0 or steepness == 0:
                continue
            harm = parts.kappa[REWARD] * plan.walk**2
            reach = min(max(parts.harmless) / plan.walk, REACH * max(parts.harmless) * steepness / unit)
            alpha = _rounded_down(min(unit / (2 * harm), reach) if harm > 0 else reach)
            sure = unit * alpha - harm * alpha**2 - alpha * steepness * plan.walk
            if best is None or sure > best[0]:
                best = sure, replace(trial, alpha=alpha)
    return best[1] if best else None


def splits(batch: int) -> Sequence[tuple[int, int]]:
    """(directions, samples) whose product is the batch, with the most samples first."""
    found = [(g, batch // g) for g in range(min(LEAST_DIRECTIONS, batch), batch + 1) if batch % g == 0]
    return found or [(batch, 1)]


def _rounded_down(value: float) -> float:
    """To two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / unit + 1e-9) * unit
