"""Probes of a made-up model whose slopes, curvature, damage and noise are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.experiments.probe_record import Cell, Measurement

SIGMAS = (0.03, 0.06)
SMALL = 135_000_000


@dataclass(frozen=True)
class Truth:
    """What a simulated probe is drawn from; variances of u are per sigma^2.

    Attributes:
        slope: variance of a direction's slope, |g|^2.
        shared: correlation of the two operators' slopes.
        curvature: standard deviation of the even part at the largest sigma; it grows with sigma^2.
        damage: of the mean reward at the largest sigma; it grows with sigma^2.
        noise: standard deviation of one candidate's reward.
        reward: mean reward at sigma 0.
    """

    slope: float = 0.5
    shared: float = 0.8
    curvature: float = 0.0
    damage: float = 0.0
    noise: float = 0.12
    reward: float = 0.5


def config(**changes: object) -> RunConfig:
    """The published set-up: 10 updates, 10 directions x 4 samples, sigma 0.06 to 0.02, alpha 0.03."""
    settings = {
        "budget": 440,
        "population": 4,
        "directions": 10,
        "samples_per_direction": 4,
        "scope": "norms",
        "seed": 1,
    }
    return RunConfig("tsp_construct", "simulated", **{**settings, **changes}).resolved(SMALL)  # type: ignore[arg-type]


def simulate(
    truth: Truth, rng: np.random.Generator, *, pairs: int = 16, samples: int = 4, sigmas: tuple[float, ...] = SIGMAS
) -> Measurement:
    """A probe; validity is a linear function of a reward of its own noise, with half its slope."""
    cells = []
    mixing = np.linalg.cholesky([[1, truth.shared], [truth.shared, 1]])
    slopes = np.sqrt(truth.slope) * rng.standard_normal((pairs, 2)) @ mixing.T
    for sigma in (0.0, *sigmas):
        scale = (sigma / max(sigmas)) ** 2
        for index, name in enumerate(("m1", "m2")):
            even = scale * (truth.curvature * rng.standard_normal((pairs, 1, 1)) - truth.damage)
            odd = sigma * slopes[:, index, None, None] * np.array([1.0, -1.0])[None, :, None]
            noise = truth.noise * rng.standard_normal((2, pairs, 2, samples))
            cells.append(Cell(name, sigma, truth.reward + odd + even + noise[0], 0.2 + odd / 2 + noise[1]))
    return Measurement(config(), pairs, samples, {}, tuple(cells))
