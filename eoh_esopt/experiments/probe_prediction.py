"""What a run is predicted to learn, from what a probe measured: arithmetic only.

**Gain of one update.** theta moves by alpha / G * sum_i z_i eps_i, with z-scores z_i of the directions' mean rewards
R_i = R_0 + sigma * g.eps_i + e_i + noise. Some quantity y with slope h (the reward itself, an operator's validity)
changes by alpha / G * sum_i z_i h.eps_i. To first order h.eps_i is sigma * g.h / s^2 * (R_i - R_0) plus what is
uncorrelated with R_i, where s^2 = sigma^2 g.g + var(e) + w / S is the variance of R_i, w that of one candidate and S
the samples of a direction. Hence the expected change

    alpha * c(G) * sigma * g.h / s,    c(G) = E[standard deviation of G normals, ddof 0] < 1,

which for y = R and large G is alpha * s_g^2 / (sigma * s) with the between-direction variance s_g^2 = sigma^2 g.g. It
is smallest where sampling noise rules, grows with sigma, and levels out at alpha * |g|. g.h is the covariance of slopes
that `probe_variance` estimates. An update that a batch without a valid candidate prevents counts by its chance.

**Harm of the random walk.** The part of an update that is no signal moves every weight by alpha / sqrt(G) (root mean
square), T of them by alpha * sqrt(sum 1 / G_t). A perturbation of size sigma costs d(sigma) on average, taken as
kappa * sigma^2; so the walk costs kappa * alpha^2 * sum 1 / G_t.

**Spread between runs.** Sampling of the candidates that are compared, and the walk's accidental part along the slope,
alpha * |h| * sqrt(sum 1 / G_t).

What is a guess: that the slope of the first generation holds along the whole run (it flattens near a ceiling, and can
only be capped there), that harm is quadratic, and that what else changes in a search (population, copies) is the same
in both arms. It says nothing of the best objective, which is an extreme of candidates and not a mean.
The chance to see a difference is that of a two-sided t-test, see `power`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.methods import sigma_schedule
from eoh_esopt.experiments.power import power, repetitions_needed
from eoh_esopt.experiments.probe_parts import Parts
from eoh_esopt.experiments.probe_record import Values
from eoh_esopt.experiments.probe_variance import CONFIDENCE, REWARD, VALID

POWER = 0.8
"""Chance that a difference needs to be called visible."""
_DRAWS = 2000
_FAR = 20.0
"""An effect, in standard deviations, that nobody can miss."""


@dataclass(frozen=True)
class Step:
    """One planned update: whose candidates it learns from, under how many directions of which size."""

    operator: str
    sigma: float
    directions: int


@dataclass(frozen=True)
class Plan:
    """The updates of a run.

    Attributes:
        steps: in order.
        alpha: learning rate.
        samples: candidates under each direction.
        compared: candidates of the last generation that are compared between arms.
    """

    steps: tuple[Step, ...]
    alpha: float
    samples: int
    compared: int

    @property
    def walk(self) -> float:
        """How far the updates' random part moves a weight, root mean square; in units of alpha."""
        return math.sqrt(sum(1 / step.directions for step in self.steps))

    @property
    def last_sigma(self) -> float:
        """Size of the last perturbations."""
        return self.steps[-1].sigma if self.steps else 0.0


@dataclass(frozen=True)
class Change:
    """What becomes of one quantity, reward or validity, averaged over the operators that learn.

    Attributes:
        before: with the weights as they are.
        gain: by the slope, not beyond the ceiling.
        walk: lost by the random walk.
        net: gain minus walk, as seen without perturbation.
        low: lower end of the interval of `net`.
        high: upper end.
        perturbed: lost by the last perturbations while the search lasts.
        spread_frozen: standard deviation between runs of the frozen arm.
        spread_learning: of the arm that learns.
    """

    before: float
    gain: float
    walk: float
    net: float
    low: float
    high: float
    perturbed: float
    spread_frozen: float
    spread_learning: float


@dataclass(frozen=True)
class Visibility:
    """Whether the arms' last candidates would differ, two-sided t-test over the repetitions.

    Attributes:
        power: chance of a significant difference if it is as predicted; None with one repetition.
        power_low: the same at the lower end of the interval.
        power_high: at the upper end.
        needed: repetitions of each arm for a chance of `POWER`; None where there is no gain, or too small a one.
        verdict: "visible", "perhaps visible" or "not visible".
    """

    power: float | None
    power_low: float | None
    power_high: float | None
    needed: int | None
    verdict: str


@dataclass(frozen=True)
class Prediction:
    """What one run is predicted to do."""

    plan: Plan
    reward: Change
    valid: Change
    reward_seen: Visibility
    valid_seen: Visibility


def planned(config: RunConfig) -> Plan:
    """The updates of a run with these settings, every default filled in; a batch cut short has fewer directions."""
    assert config.alpha is not None
    learning = ("i1",) if config.samples else ("m1", "m2")
    sigma, samples = sigma_schedule(config, config.generations), config.samples_per_direction
    steps, left = [], config.budget
    for generation in range(config.generations):
        for name, wanted in config.plan:
            count, left = min(wanted, left), max(left - wanted, 0)
            directions = -(-count // samples)
            if name in learning and directions > 1 and sigma(generation) > 0:  # else the update is skipped
                steps.append(Step(name, sigma(generation), directions))
    return Plan(tuple(steps), config.alpha, samples, len(learning) * config.learning_batch)


def predict(parts: Parts, plan: Plan, repetitions: int, seed: int) -> Prediction:
    """Change of the mean reward and of validity over a run, and whether it would be seen.

    Args:
        parts: what was measured.
        plan: the run.
        repetitions: runs of each arm.
        seed: of the draws behind the interval.
    """
    rng = np.random.default_rng([seed, 0x70726F6265])
    point, drawn = np.zeros(2), np.zeros((_DRAWS, 2))
    if parts.slope is not None:
        point = linear_gain(parts, plan, parts.slope.estimate)
        drawn = linear_gain(parts, plan, parts.slope.draws(_DRAWS, rng))
    reward, valid = (_change(parts, plan, one, float(point[one]), drawn[:, one], rng) for one in (REWARD, VALID))
    return Prediction(plan, reward, valid, _seen(reward, repetitions), _seen(valid, repetitions))


def _change(parts: Parts, plan: Plan, quantity: int, gain: float, drawn: Values, rng: np.random.Generator) -> Change:
    """One quantity's change, from its linear gain and draws of it."""
    before = float(parts.before[quantity])
    room = (1 if quantity == VALID else parts.ceiling) - before if math.isfinite(before) else math.inf
    kappa, kappa_error = parts.kappa[quantity], parts.kappa_error[quantity]
    walked = (plan.alpha * plan.walk) ** 2
    noise = math.sqrt(max(parts.noise(0.0)[:, quantity, quantity].mean(), 0.0) / plan.compared)
    gain, walk = min(gain, room), kappa * walked
    walks = np.maximum(kappa + kappa_error * rng.standard_normal(len(drawn)), 0.0) * walked
    low, high = np.quantile(np.minimum(drawn, room) - walks, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    spread = math.hypot(noise, plan.alpha * parts.steepness(quantity) * plan.walk)
    return Change(before, gain, walk, gain - walk, low, high, kappa * plan.last_sigma**2, noise, spread)


def linear_gain(parts: Parts, plan: Plan, slope: Values) -> Values:
    """Gain of all updates by the slope, without any ceiling, averaged over the operators.

    Args:
        slope: shape (..., n, n), variance of the slopes.

    Returns:
        Shape (..., 2): of reward and validity.
    """
    names = parts.operators
    total = np.zeros((*slope.shape[:-2], 2))
    for step in plan.steps:
        column = 2 * names.index(step.operator) + REWARD
        row = slope[..., column, :].copy()
        row[..., column] = np.maximum(row[..., column], 0.0)  # a variance
        spread = step.sigma**2 * row[..., column] + parts.rest(step.operator, step.sigma, plan.samples)
        unit = np.divide(step.sigma, np.sqrt(spread), out=np.zeros_like(spread), where=spread > 0)
        chance = parts.chance(step.operator, step.sigma, step.directions * plan.samples)
        by_quantity = np.stack([row[..., quantity::2].mean(axis=-1) for quantity in (REWARD, VALID)], axis=-1)
        total += plan.alpha * shrinkage(step.directions) * chance * unit[..., None] * by_quantity
    return total


def shrinkage(count: int) -> float:
    """Expected standard deviation, ddof 0, of `count` standard normals: what z-scores divide by, on average."""
    return math.sqrt(2 / count) * math.exp(special.gammaln(count / 2) - special.gammaln((count - 1) / 2))


def _seen(change: Change, repetitions: int) -> Visibility:
    """Whether the last candidates of the search would differ between the arms."""
    spread = math.sqrt((change.spread_frozen**2 + change.spread_learning**2) / 2)
    expected, low, high = (one - change.perturbed for one in (change.net, change.low, change.high))
    effect = min(expected / spread, _FAR) if spread else math.copysign(_FAR, expected)
    needed = repetitions_needed(effect, paired=False, wanted=POWER, alternative="two-sided") if effect > 0 else None
    if repetitions < 2:
        return Visibility(None, None, None, needed, "not visible")
    found = [_chance(one, spread, repetitions) for one in (expected, low, high)]
    verdict = "visible" if min(found[:2]) >= POWER else "perhaps visible" if found[0] >= POWER else "not visible"
    return Visibility(found[0], found[1], found[2], needed, verdict)


def _chance(difference: float, spread: float, repetitions: int) -> float:
    """Chance that the test calls the arms different; 0 for a loss."""
    if not difference > 0:
        return 0.0
    effect = min(difference / spread, _FAR) if spread else _FAR
    found = power(effect, repetitions, paired=False, alternative="two-sided")
    return found if math.isfinite(found) else 1.0  # scipy gives NaN far beyond the limit
