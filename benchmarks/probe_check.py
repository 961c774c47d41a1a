"""Does the prediction of `eoh-esopt probe` hold? Checked on the runs of `benchmarks/learning.py`, without a new run.

The first generation of every run that draws directions (learning or shuffled) is a probe at the run's sigma: ten
directions of four candidates for m1, and ten for m2. From these alone the gain of a whole run is predicted, and
compared with what the weights at the end of each learning run write, frozen and unperturbed.

Unlike a real probe's, these directions have no mirrors, so curvature is counted as slope. And m1 and m2 were given
different directions, so it is not known how much their slopes have in common: predictions are made for one slope of
both, and for unrelated ones.

    python benchmarks/learning.py --out runs/learning
    python -m benchmarks.probe_check --runs runs/learning
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.learning import mutations
from eoh_esopt.engine.config import load_config
from eoh_esopt.engine.events import CONFIG, read_events
from eoh_esopt.experiments.probe_parts import Parts, parts_of
from eoh_esopt.experiments.probe_prediction import planned, predict
from eoh_esopt.experiments.probe_record import Cell, Measurement, Values
from eoh_esopt.experiments.probe_variance import Slope
from operators.rewards import LEVELS

OPERATORS = ("m1", "m2")
ARMS = ("esopt-eoh", "shuffled")
VALID = LEVELS.index("valid")


def main() -> None:
    """Print the prediction beside what happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="folder of benchmarks/learning.py")
    parser.add_argument("--seeds", default="1,2,3", help="comma-separated; default 1,2,3")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    batches = [batch(arguments.runs / f"{arm}-{seed}", name) for name in OPERATORS for arm in ARMS for seed in seeds]
    parts, measurement = first_generations(arguments.runs, seeds)
    plan = planned(measurement.config)
    for name, shared in (("one slope for m1 and m2", 1.0), ("unrelated slopes", 0.0)):
        slope = pooled(batches, measurement, shared)
        found = predict(replace(parts, slope=slope), plan, len(seeds), 0)
        for what, change in (("reward", found.reward), ("valid", found.valid)):
            print(
                f"{name}, {what}: before {change.before:.3f}, predicted {change.net:+.3f} "
                f"[{change.low:+.3f}, {change.high:+.3f}], of which walk {-change.walk:+.3f}; "
                f"runs spread by {change.spread_learning:.3f}"
            )
    base = frozen(arguments.runs / "frozen-base")
    for arm in ARMS:
        gains = np.array([frozen(arguments.runs / f"frozen-{arm}-{seed}") - base for seed in seeds])
        for what, values in zip(("reward", "valid"), gains.T, strict=True):
            by_seed = ", ".join(f"{one:+.3f}" for one in values)
            error = values.std(ddof=1) / len(values) ** 0.5
            print(f"{arm}, {what}: {values.mean():+.3f} +- {error:.3f} ({by_seed})")


def first_generations(runs: Path, seeds: list[int]) -> tuple[Parts, Measurement]:
    """The candidates of all first generations as a probe's, and what is fitted to them."""
    config = load_config(runs / f"esopt-eoh-{seeds[0]}" / CONFIG)
    assert config.sigma is not None
    cells = []
    for operator in OPERATORS:
        at_0 = np.array([one for _, one in levels(runs / "frozen-base", operator)])
        at_sigma = np.concatenate([batch(runs / f"{arm}-{seed}", operator) for arm in ARMS for seed in seeds])
        cells.append(cell(operator, 0.0, at_0.reshape(-1, 2, 1)))
        cells.append(cell(operator, config.sigma, at_sigma.reshape(len(at_sigma) // 2, 2, -1)))
    measurement = Measurement(config, len(cells[1].rewards), config.samples_per_direction, {}, tuple(cells))
    parts = parts_of(measurement, (config.sigma,), most_damage=np.inf)
    straight = [replace(level, even=np.zeros_like(level.even)) for level in parts.levels[0]]  # counted in the slope
    return replace(parts, levels=(tuple(straight),)), measurement


def pooled(batches: list[Values], measurement: Measurement, shared: float) -> Slope:
    """One slope variance for both operators, by one-way analysis of variance within each batch.

    Args:
        batches: rungs, shape (directions, samples) each.
        measurement: for sigma.
        shared: correlation of the operators' slopes.
    """
    sigma, samples = measurement.config.sigma, measurement.samples
    assert sigma is not None
    between, within, freedom = np.zeros((2, 2)), np.zeros((2, 2)), 0
    for rungs in batches:
        one = cell("", sigma, rungs)
        values = np.stack([one.rewards, one.valid], axis=-1)
        means = values.mean(axis=1)
        inside, across = (values - means[:, None]).reshape(-1, 2), means - means.mean(axis=0)
        between += across.T @ across
        within += inside.T @ inside / (len(rungs) * (samples - 1) * len(batches))
        freedom += len(rungs) - 1
    both = np.array([[1.0, shared], [shared, 1.0]])
    return Slope(
        np.kron(both, between / freedom / sigma**2), np.kron(both, within / samples / sigma**2), freedom, (sigma,)
    )


def levels(folder: Path, operator: str) -> Iterator[tuple[int | None, int]]:
    """(direction, rung of the ladder) of an operator's candidates in the first generation."""
    operators = {event["ids"][0]: event["operator"] for event in read_events(folder) if event["event"] == "batch"}
    for one in mutations(folder):
        if one.generation == 0 and operators[one.batch] == operator:
            yield one.direction, one.level


def batch(folder: Path, operator: str) -> Values:
    """Rungs of the first generation's candidates, shape (directions, samples)."""
    by_direction: dict[int | None, list[int]] = {}
    for direction, one in levels(folder, operator):
        by_direction.setdefault(direction, []).append(one)
    return np.array(list(by_direction.values()))


def cell(operator: str, sigma: float, rungs: Values) -> Cell:
    """Graded rewards and validity from rungs of the ladder."""
    return Cell(operator, sigma, rungs / (len(LEVELS) - 1), (rungs >= VALID).astype(float))


def frozen(folder: Path) -> Values:
    """Mean reward and validity of what frozen weights write, averaged over the operators."""
    cells = [cell(name, 0.0, np.array([one for _, one in levels(folder, name)])) for name in OPERATORS]
    return np.array([[one.rewards.mean(), one.valid.mean()] for one in cells]).mean(axis=0)


if __name__ == "__main__":
    main()
