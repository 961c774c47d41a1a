"""All that a prediction needs of a probe's measurement, at any sigma between those that were measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eoh_esopt.experiments.probe_record import Measurement, Values
from eoh_esopt.experiments.probe_variance import REWARD, VALID, Level, Part, Slope, component, level_of, slope_of


@dataclass(frozen=True)
class Parts:
    """Levels by sigma, and what is fitted over them. Quantities are (reward, validity).

    Attributes:
        operators: names of those that learn.
        baseline: their levels at sigma 0.
        levels: at the other sigmas, ascending; one row a sigma, one level an operator.
        harmless: sigmas whose damage is within what is allowed.
        slope: variance of slopes, from the harmless sigmas (from the smallest where none is); None where none was
            seen.
        kappa: shape (2,), mean damage at sigma divided by sigma^2, at least 0.
        kappa_error: shape (2,), its standard error.
        ceiling: highest possible reward; infinite where there is none.
        needs_valid: whether a batch without a valid candidate makes no update.
    """

    operators: tuple[str, ...]
    baseline: tuple[Level, ...]
    levels: tuple[tuple[Level, ...], ...]
    harmless: tuple[float, ...]
    slope: Slope | None
    kappa: Values
    kappa_error: Values
    ceiling: float
    needs_valid: bool

    @property
    def sigmas(self) -> Values:
        """The measured sizes of perturbations, ascending."""
        return np.array([row[0].sigma for row in self.levels])

    @property
    def before(self) -> Values:
        """Shape (2,), mean of reward and validity with the weights as they are."""
        means: Values = np.mean([one.mean for one in self.baseline], axis=0)
        return means

    def steepness(self, quantity: int) -> float:
        """Standard deviation over directions of the slope of a quantity, averaged over the operators: |g|."""
        if self.slope is None:
            return 0.0
        own = slice(quantity, None, 2)
        return math.sqrt(max(float(self.slope.estimate[own, own].mean()), 0.0))

    def damage(self, index: int) -> tuple[Values, Values]:
        """Mean and standard error, shape (2,) each, of what the perturbations of one row cost."""
        return damage(self.baseline, self.levels[index])

    def noise(self, sigma: float) -> Values:
        """Shape (operators, 2, 2), covariance of one candidate's quantities."""
        return np.stack([self._between(sigma, index) for index in range(len(self.operators))])

    def _between(self, sigma: float, index: int) -> Values:
        """The noise of one operator, in a straight line between sigmas."""
        rows = self._noises[:, index].reshape(-1, 4).T
        return np.array([self._straight(sigma, values) for values in rows]).reshape(2, 2)

    def _straight(self, sigma: float, values: Values) -> float:
        """A value at sigma, in a straight line between those at 0 and at the measured sigmas; 0 where none is known."""
        good = np.isfinite(values)
        return float(np.interp(sigma, np.array([0.0, *self.sigmas])[good], values[good])) if good.any() else 0.0

    @cached_property
    def _noises(self) -> Values:
        """Shape (1 + sigmas, operators, 2, 2), sigma 0 first."""
        rows = (self.baseline, *self.levels)
        return np.array([[spread(one, base) for one, base in zip(row, self.baseline, strict=True)] for row in rows])

    @cached_property
    def _curvatures(self) -> Values:
        """Shape (1 + sigmas, operators), at least 0; sigma 0 first."""
        rows = [[self.curvature(one, index).value for index, one in enumerate(row)] for row in self.levels]
        return np.maximum([[0.0] * len(self.operators), *rows], 0.0)

    def _column(self, index: int) -> tuple[Level, ...]:
        return (self.baseline[index], *(row[index] for row in self.levels))

    def rest(self, operator: str, sigma: float, samples: int) -> float:
        """Variance of a direction's mean reward that no update can use: curvature and sampling noise."""
        index = self.operators.index(operator)
        return (
            self._straight(sigma, self._curvatures[:, index])
            + float(self.noise(sigma)[index, REWARD, REWARD]) / samples
        )

    def signal(self, level: Level, index: int) -> Part:
        """Variance of one level's directions that an update can follow: sigma^2 |g|^2."""
        noise = float(spread(level, self.baseline[index])[REWARD, REWARD]) * level.share
        return component(level.odd[:, REWARD], noise, centred=True)

    def curvature(self, level: Level, index: int) -> Part:
        """Variance of one level's directions that has the same sign on both sides."""
        noise = float(spread(level, self.baseline[index])[REWARD, REWARD]) * level.share
        return component(level.even[:, REWARD], noise, centred=False)

    def chance(self, operator: str, sigma: float, candidates: int) -> float:
        """Chance that a batch can be rewarded at all: that one of its candidates is valid, where that is needed."""
        if not self.needs_valid:
            return 1.0
        column = self._column(self.operators.index(operator))
        valid = np.interp(sigma, [one.sigma for one in column], [np.nan_to_num(one.mean[VALID]) for one in column])
        return float(1 - (1 - valid) ** candidates)


def parts_of(measurement: Measurement, sigmas: tuple[float, ...], most_damage: float) -> Parts:
    """Fit what a prediction needs.

    Args:
        measurement: with all cells of these sigmas.
        sigmas: ascending, without 0.
        most_damage: damage that is allowed, in standard deviations of one candidate's reward.
    """
    config = measurement.config
    names = tuple(dict.fromkeys(cell.operator for cell in measurement.cells))
    rows = [tuple(_level(measurement, name, sigma) for name in names) for sigma in (0.0, *sigmas)]
    baseline, levels = rows[0], tuple(rows[1:])
    scored = [row for row in levels if all(one.scored for one in (*row, *baseline))]
    unit = math.sqrt(np.mean([one.within[REWARD, REWARD] for one in baseline if one.within is not None]))
    good = [row for row in scored if damage(baseline, row)[0][REWARD] <= most_damage * unit]
    fitted = good or scored[:1]
    within = [[spread(one, base) for one, base in zip(row, baseline, strict=True)] for row in fitted]
    kappa, error = _kappa(baseline, fitted)
    return Parts(
        operators=names,
        baseline=baseline,
        levels=levels,
        harmless=tuple(row[0].sigma for row in good),
        slope=slope_of(fitted, within) if fitted else None,
        kappa=kappa,
        kappa_error=error,
        ceiling=1.0 if config.reward == "graded" else math.inf,
        needs_valid=config.reward != "graded",
    )


def spread(level: Level, baseline: Level) -> Values:
    """Covariance of one candidate's quantities; that of sigma 0 where each direction has a single candidate."""
    found = baseline.within if level.within is None else level.within
    assert found is not None
    return found


def damage(baseline: tuple[Level, ...], row: tuple[Level, ...]) -> tuple[Values, Values]:
    """What perturbations cost on average, and its standard error; mean over the operators, shape (2,) each."""
    lost = np.mean([base.mean - one.mean for base, one in zip(baseline, row, strict=True)], axis=0)
    return lost, np.hypot(_error(baseline), _error(row))


def _kappa(baseline: tuple[Level, ...], rows: list[tuple[Level, ...]]) -> tuple[Values, Values]:
    """Least squares through 0 of damage = kappa * sigma^2, and its standard error."""
    if not rows:
        return np.zeros(2), np.zeros(2)
    squares = np.array([row[0].sigma ** 2 for row in rows])[:, None]
    weights = squares / (squares**2).sum(axis=0)
    lost = np.array([damage(baseline, row)[0] for row in rows])
    own = sum((weight * _error(row)) ** 2 for weight, row in zip(weights, rows, strict=True))
    shared = (weights.sum(axis=0) * _error(baseline)) ** 2  # the error at sigma 0 is in every damage
    return np.maximum((weights * lost).sum(axis=0), 0.0), np.sqrt(own + shared)


def _error(row: tuple[Level, ...]) -> Values:
    """Standard error of the mean over the operators, shape (2,)."""
    found: Values = np.sqrt(np.sum([one.error**2 for one in row], axis=0)) / len(row)
    return found


def _level(measurement: Measurement, operator: str, sigma: float) -> Level:
    cell = measurement.cell(operator, sigma)
    assert cell is not None
    return level_of(cell)
