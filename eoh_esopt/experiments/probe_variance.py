"""What a probe's candidates say: reward noise, slope and curvature of directions, damage of perturbations.

One-way analysis of variance of a random-effects layout, with directions in mirrored pairs. Under theta + sigma * eps_i
and theta - sigma * eps_i a candidate's expected reward is, to second order in sigma,

    R(+-) = R_0 +- sigma * u_i + e_i(sigma),    u_i = g . eps_i,  e_i = sigma^2 / 2 * eps_i' H eps_i

so half the difference of both sides' means measures the slope sigma * u_i, and half their sum the rest. The variance of
u_i over directions is |g|^2 for noise of variance 1: what an update can follow. The variance of e_i only adds to the
spread of the rewards; its mean is the damage of a perturbation. Both carry the sampling noise of their candidates,
whose variance is known from the spread within a side (with one sample a side: from the spread at sigma 0) and is
subtracted.

Validity is measured beside the reward, as a second quantity of the same candidates, and operators beside one another:
a slope is a vector over (operator, quantity), and its variance a matrix, because an update from one operator's rewards
also moves another operator's candidates.
Source: Searle, Casella and McCulloch, "Variance Components", 1992, chapter 3; mirrored directions as in Brockhoff et
al., "Mirrored sampling and sequential selection for evolution strategies", PPSN 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from eoh_esopt.experiments.probe_record import Cell, Values

REWARD, VALID = 0, 1
"""The two quantities of a candidate."""

CONFIDENCE = 0.9
"""Of all intervals."""


@dataclass(frozen=True)
class Level:
    """One operator at one sigma. Quantities are (reward, validity).

    Attributes:
        operator: its name.
        sigma: size of the perturbations, 0 for none.
        mean: shape (2,), over all candidates.
        error: shape (2,), standard error of the mean.
        within: shape (2, 2), covariance of one candidate's quantities within a direction; None where each direction
            has a single candidate.
        odd: shape (P, 2), half the difference of both sides' means of each pair; NaN for a pair that lost a side.
        even: shape (P, 2), half their sum.
        share: variance of `odd` and of `even` that sampling adds, as a multiple of `within`.
    """

    operator: str
    sigma: float
    mean: Values
    error: Values
    within: Values | None
    odd: Values
    even: Values
    share: float

    @property
    def scored(self) -> bool:
        """Whether its candidates have rewards."""
        return bool(np.isfinite(self.mean).all())


def level_of(cell: Cell) -> Level:
    """Means and spreads of a cell."""
    values = np.stack([cell.rewards, cell.valid], axis=-1)  # (P, 2, S, quantities)
    present = np.isfinite(cell.valid)  # where nothing could be rewarded, validity is still known
    kept = np.where(present[..., None], values, 0.0)
    counts = present.sum(axis=2)
    means = kept.sum(axis=2) / np.where(counts, counts, np.nan)[..., None]
    if cell.sigma == 0:
        return _unperturbed(cell, values[present])
    deviations = (values - means[:, :, None])[present]
    freedom = int(np.maximum(counts - 1, 0).sum())
    even, odd = (means[:, 0] + means[:, 1]) / 2, (means[:, 0] - means[:, 1]) / 2
    whole = counts.min(axis=1) > 0
    share = float((1 / counts[whole]).sum(axis=1).mean() / 4) if whole.any() else np.nan
    return Level(
        cell.operator,
        cell.sigma,
        *_mean_and_error(even[whole]),
        deviations.T @ deviations / freedom if freedom else None,
        odd,
        even,
        share,
    )


def _unperturbed(cell: Cell, candidates: Values) -> Level:
    """All candidates stem from the same weights: their spread is noise."""
    nothing = np.full((len(cell.rewards), 2), np.nan)
    within = np.cov(candidates.T).reshape(2, 2) if len(candidates) > 1 else np.full((2, 2), np.nan)
    return Level(cell.operator, 0.0, *_mean_and_error(candidates), within, nothing, nothing, np.nan)


def _mean_and_error(rows: Values) -> tuple[Values, Values]:
    if len(rows) < 2:
        return np.full(2, np.nan), np.full(2, np.nan)
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))


@dataclass(frozen=True)
class Part:
    """A variance component and its interval; the estimate is unbiased, so it may be below 0.

    Attributes:
        value: the component.
        low: lower end of the interval, at least 0.
        high: upper end, at least 0.
    """

    value: float
    low: float
    high: float


def component(contrasts: Values, noise: float, *, centred: bool) -> Part:
    """Variance of contrasts over pairs beyond what sampling adds, with a chi-square interval.

    Args:
        contrasts: shape (P,); NaN where a pair is missing.
        noise: variance that sampling adds to each.
        centred: whether their expectation is known to be 0, as that of half a difference is.
    """
    rows = contrasts[np.isfinite(contrasts)]
    freedom = len(rows) - (not centred)
    if freedom < 1 or not np.isfinite(noise):
        return Part(np.nan, np.nan, np.nan)
    squares = float(((rows - (0.0 if centred else rows.mean())) ** 2).sum())
    tail = (1 - CONFIDENCE) / 2
    low, high = (max(squares / float(stats.chi2.ppf(q, freedom)) - noise, 0.0) for q in (1 - tail, tail))
    return Part(squares / freedom - noise, low, high)


@dataclass(frozen=True)
class Slope:
    """Variance of the slopes of directions, over columns (operator, quantity): operator-major, reward before validity.

    Attributes:
        moments: shape (n, n), mean product of the measured slopes.
        noise: shape (n, n), what sampling adds to it.
        pairs: how many directions it is a mean over.
        sigmas: those it was measured at.
    """

    moments: Values
    noise: Values
    pairs: int
    sigmas: tuple[float, ...]

    @property
    def estimate(self) -> Values:
        """Shape (n, n), unbiased."""
        return self.moments - self.noise

    def draws(self, count: int, rng: np.random.Generator) -> Values:
        """Shape (count, n, n): values that the true variance may have, given what was measured.

        Measured slopes are taken for normal, so that their moments follow Wishart's law; the inverse Wishart with
        P + n - 1 degrees of freedom makes the interval of every single component the chi-square one of `component`.
        """
        n = len(self.moments)
        roots, axes = np.linalg.eigh(self.moments)
        factor = axes * np.sqrt(np.maximum(roots, 0.0))
        law = stats.invwishart(df=self.pairs + n - 1, scale=self.pairs * np.eye(n))
        free = np.asarray(law.rvs(size=count, random_state=rng)).reshape(count, n, n)
        drawn: Values = factor @ free @ factor.T - self.noise
        return drawn


def slope_of(levels: Sequence[Sequence[Level]], within: Sequence[Sequence[Values]]) -> Slope | None:
    """Slopes from several sigmas at once, each fitted by least squares through 0: u = sum sigma c / sum sigma^2.

    Args:
        levels: for each sigma, the operators' levels in the same order.
        within: the same for the noise of one candidate, shape (2, 2) each.

    Returns:
        None where fewer than two pairs are whole.
    """
    squares = sum(row[0].sigma ** 2 for row in levels)
    weighted = [row[0].sigma * np.concatenate([one.odd for one in row], axis=1) for row in levels]
    fits: Values = np.sum(weighted, axis=0) / squares
    whole = fits[np.isfinite(fits).all(axis=1)]
    if len(whole) < 2:
        return None
    noise = np.zeros((whole.shape[1], whole.shape[1]))
    for row, spreads in zip(levels, within, strict=True):
        for index, (one, spread) in enumerate(zip(row, spreads, strict=True)):
            block = slice(2 * index, 2 * index + 2)
            noise[block, block] += one.sigma**2 * one.share * spread / squares**2
    return Slope(whole.T @ whole / len(whole), noise, len(whole), tuple(row[0].sigma for row in levels))
