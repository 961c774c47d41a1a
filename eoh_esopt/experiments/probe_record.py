"""What a probe measured, as it is kept in a file: rewards and validity of every candidate, one cell after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import write_atomically
from eoh_esopt.models.protocol import Sampling
from operators.errors import UserError

Values = NDArray[np.float64]

_FORMAT = "eoh-esopt probe 1"
_MEASURED = (
    *("problem", "data", "model", "backend", "method", "seed", "scope", "noise", "rank", "dtype"),
    *("reward", "prefill", "sampling", "timeout"),
)
"""Settings that a measurement depends on; all others only matter to what is predicted from it."""

_DEFAULTS = ("reward", "prefill", "rank")
"""Those of them that take the measurement's value where nothing is said."""


@dataclass(frozen=True)
class Cell:
    """The candidates of one operator at one sigma. Arrays have the shape (pairs, 2, samples), NaN where one was lost.

    Attributes:
        operator: name of the operator that asked for them.
        sigma: size of the perturbations; 0 for the weights as they are, where pairs and sides only count candidates.
        rewards: of each candidate; all NaN where the batch gives no signal.
        valid: 1 for a candidate that solved every instance, else 0.
        no_signal: why there are no rewards; empty where there are.
    """

    operator: str
    sigma: float
    rewards: Values
    valid: Values
    no_signal: str = ""


@dataclass(frozen=True)
class Measurement:
    """Everything a probe has measured so far.

    Attributes:
        config: settings with the defaults that depend on the model filled in.
        pairs: directions of each sigma, each with its mirror.
        samples: candidates of each operator under each direction.
        facts: model, machine and checksum of the weights.
        cells: those that are done.
    """

    config: RunConfig
    pairs: int
    samples: int
    facts: Mapping[str, Any]
    cells: tuple[Cell, ...] = ()

    def cell(self, operator: str, sigma: float) -> Cell | None:
        """The cell, if it is done."""
        return next((one for one in self.cells if (one.operator, one.sigma) == (operator, sigma)), None)

    def with_cell(self, cell: Cell) -> Measurement:
        """The same with one more cell."""
        return replace(self, cells=(*self.cells, cell))


def write_measurement(path: Path, measurement: Measurement) -> None:
    """Keep a measurement, whole or not at all.

    Raises:
        UserError: the file cannot be written.
    """
    found = {
        "format": _FORMAT,
        "config": asdict(measurement.config),
        "pairs": measurement.pairs,
        "samples": measurement.samples,
        "facts": dict(measurement.facts),
        "cells": [_plain(cell) for cell in measurement.cells],
    }
    write_atomically(path, json.dumps(found) + "\n")


def read_measurement(path: Path) -> Measurement:
    """Read a measurement back.

    Raises:
        UserError: the file cannot be read, or is none that a probe wrote.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != _FORMAT:
            raise ValueError(f"format {found['format']!r} instead of {_FORMAT!r}")
        config = found["config"]
        pairs, samples = int(found["pairs"]), int(found["samples"])
        return Measurement(
            RunConfig(**{**config, "sampling": Sampling(**config["sampling"])}),
            pairs,
            samples,
            found["facts"],
            tuple(_cell(one, (pairs, 2, samples)) for one in found["cells"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} holds no measurement of a probe: {error}. Give another --out.") from error


def check_same(path: Path, kept: Measurement, config: RunConfig, pairs: int, samples: int) -> None:
    """Refuse to go on with a measurement that was made with other settings.

    Args:
        config: what is asked for now; settings that are None there are taken from the file.

    Raises:
        UserError: a setting differs.
    """
    settings = [(name, getattr(kept.config, name), getattr(config, name)) for name in _MEASURED]
    counts = [("pairs", kept.pairs, pairs), ("probe-samples", kept.samples, samples)]
    for name, before, now in [*settings, *counts]:
        if before != now and not (now is None and name in _DEFAULTS):
            raise UserError(
                f"{path} was measured with {name} {before!r}, and {now!r} is asked for. "
                "Put it back, or give another --out."
            )


def settled(kept: RunConfig, config: RunConfig) -> RunConfig:
    """The settings asked for now, with the defaults that depended on the model as the measurement has them."""
    scope_defaults = config.resolved(None)
    return replace(scope_defaults, reward=kept.reward, prefill=kept.prefill)


def _plain(cell: Cell) -> dict[str, Any]:
    return {
        "operator": cell.operator,
        "sigma": cell.sigma,
        "rewards": _without_nan(cell.rewards),
        "valid": _without_nan(cell.valid),
        "no_signal": cell.no_signal,
    }


def _without_nan(values: Values) -> list[float | None]:
    return [None if np.isnan(one) else float(one) for one in values.ravel()]


def _cell(found: Mapping[str, Any], shape: tuple[int, int, int]) -> Cell:
    rewards, valid = (np.array(found[name], dtype=np.float64).reshape(shape) for name in ("rewards", "valid"))
    return Cell(str(found["operator"]), float(found["sigma"]), rewards, valid, str(found["no_signal"]))
