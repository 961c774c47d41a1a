"""A probe's answer as people and programs read it: what was measured, what is predicted, and advice in sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

if TYPE_CHECKING:
    from eoh_esopt.engine.config import RunConfig
    from eoh_esopt.experiments.probe_advice import Advice
    from eoh_esopt.experiments.probe_prediction import Change, Prediction, Visibility

Rows = Sequence[Mapping[str, str]]

_SETTINGS = ("sigma", "sigma_final", "alpha", "directions", "samples_per_direction")


def as_json(advice: Advice, facts: Mapping[str, Any]) -> str:
    """Everything, numbers that are not known as null."""
    found = {
        "facts": dict(facts),
        "config": asdict(advice.config),
        "repetitions": advice.repetitions,
        "levels": [_level(advice, row, column) for row, column in _places(advice)],
        "fitted": {
            "harmless_sigmas": advice.parts.harmless,
            "slope_sigmas": advice.parts.slope.sigmas if advice.parts.slope else (),
            "operators": advice.parts.operators,
            "slope_variance": advice.parts.slope.estimate.tolist() if advice.parts.slope else None,
            "damage_per_sigma_squared": advice.parts.kappa.tolist(),
        },
        "as_planned": asdict(advice.as_planned),
        "recommended": _settings(advice.recommended) if advice.recommended else None,
        "if_followed": asdict(advice.if_followed) if advice.if_followed else None,
    }
    return json.dumps(_plain(found), indent=1)


def print_advice(advice: Advice) -> None:
    """Tables and sentences on the terminal."""
    console = Console()
    for title, rows in _tables(advice):
        columns = (Column(name, justify="right") for name in rows[0])
        table = Table(*columns, title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for row in rows:
            table.add_row(*row.values())
        console.print(table, "")
    for line in sentences(advice):
        console.print(line, soft_wrap=True, highlight=False)


def as_markdown(advice: Advice) -> str:
    """The same for a page of text."""
    blocks = []
    for title, rows in _tables(advice):
        lines = [f"**{title}**", "", f"| {' | '.join(rows[0])} |", "|" + "---|" * len(rows[0])]
        blocks.append("\n".join([*lines, *(f"| {' | '.join(row.values())} |" for row in rows)]))
    return "\n\n".join([*blocks, "\n".join(f"- {line}" for line in sentences(advice))])


def _tables(advice: Advice) -> list[tuple[str, Rows]]:
    predictions = [("planned", advice.config, advice.as_planned)]
    if advice.recommended and advice.if_followed:
        predictions.append(("recommended", advice.recommended, advice.if_followed))
    return [
        ("Measured", [_measured(advice, row, column) for row, column in _places(advice)]),
        ("Settings", [_shown_settings(name, config, found) for name, config, found in predictions]),
        (
            f"Predicted for the weights at the end (90 % intervals), and chance to see it in {advice.repetitions} runs",
            [
                _predicted(name, what, change, seen)
                for name, _, found in predictions
                for what, change, seen in (
                    ("reward", found.reward, found.reward_seen),
                    ("valid", found.valid, found.valid_seen),
                )
            ],
        ),
    ]


def _places(advice: Advice) -> list[tuple[int, int]]:
    """Rows (-1 for sigma 0) and columns of the measured levels."""
    return [
        (row, column) for row in range(-1, len(advice.parts.levels)) for column in range(len(advice.parts.operators))
    ]


def _level(advice: Advice, row: int, column: int) -> dict[str, Any]:
    """The figures of one operator at one sigma; those of directions are None at sigma 0."""
    from eoh_esopt.experiments.probe_parts import spread
    from eoh_esopt.experiments.probe_variance import REWARD, VALID

    parts = advice.parts
    base = parts.baseline[column]
    level = base if row < 0 else parts.levels[row][column]
    found: dict[str, Any] = {
        "operator": level.operator,
        "sigma": level.sigma,
        "reward": level.mean[REWARD],
        "reward_error": level.error[REWARD],
        "valid": level.mean[VALID],
        "valid_error": level.error[VALID],
        "noise": math.sqrt(spread(level, base)[REWARD, REWARD]),
    }
    if row >= 0:
        signal, curved = parts.signal(level, column), parts.curvature(level, column)
        found |= {
            "damage": base.mean[REWARD] - level.mean[REWARD],
            "damage_error": math.hypot(base.error[REWARD], level.error[REWARD]),
            "signal_variance": asdict(signal),
            "curvature_variance": asdict(curved),
        }
    return found


def _measured(advice: Advice, row: int, column: int) -> dict[str, str]:
    found = _level(advice, row, column)
    shown = {
        "sigma": f"{found['sigma']:.3g}",
        "operator": found["operator"],
        "reward": f"{_number(found['reward'])} ± {_number(found['reward_error'])}",
        "valid": f"{_number(found['valid'], 2)} ± {_number(found['valid_error'], 2)}",
        "damage": "",
        "noise of one": _number(found["noise"]),
        "signal of a direction": "",
        "curvature": "",
    }
    if row >= 0:
        signal = found["signal_variance"]
        shown["damage"] = f"{_number(found['damage'])} ± {_number(found['damage_error'])}"
        shown["signal of a direction"] = f"{_root(signal['value'])} [{_root(signal['low'])}, {_root(signal['high'])}]"
        shown["curvature"] = _root(found["curvature_variance"]["value"])
    return shown


def _shown_settings(name: str, config: RunConfig, found: Prediction) -> dict[str, str]:
    return {
        "run": name,
        "sigma": f"{config.sigma:.3g} to {config.sigma_final:.3g}",
        "alpha": f"{config.alpha:.3g}",
        "directions x samples": f"{config.directions} x {config.samples_per_direction}",
        "updates": str(len(found.plan.steps)),
        "random walk of a weight": f"{found.plan.alpha * found.plan.walk:.3g}",
    }


def _predicted(name: str, what: str, change: Change, seen: Visibility) -> dict[str, str]:
    return {
        "run": name,
        "of": what,
        "before": _number(change.before),
        "gain": f"{change.gain:+.3f}",
        "walk": f"{-change.walk:+.3f}",
        "net": f"{change.net:+.3f} [{change.low:+.3f}, {change.high:+.3f}]",
        "last sigma": f"{-change.perturbed:+.3f}",
        "power": "-" if seen.power is None else f"{seen.power:.2f} [{seen.power_low:.2f}, {seen.power_high:.2f}]",
        "runs needed": "-" if seen.needed is None else str(seen.needed),
    }


def sentences(advice: Advice) -> list[str]:
    """What to make of it."""
    parts = advice.parts
    lines = []
    silent = [one for row in (parts.baseline, *parts.levels) for one in row if not one.scored]
    if silent:
        where = ", ".join(f"{one.operator} at sigma {one.sigma:g}" for one in silent)
        lines.append(f"No candidate could be rewarded: {where}. A run would skip such updates; try --reward graded.")
    if parts.levels and not parts.harmless:
        lines.append(
            "Every measured sigma does more harm than is allowed, or could not be rewarded: try smaller --sigmas."
        )
    lines.append(_verdict("As planned", advice.as_planned, advice.repetitions))
    if advice.recommended and advice.if_followed:
        given = " ".join(
            f"--{key.replace('_', '-')} {value:.3g}" for key, value in _settings(advice.recommended).items()
        )
        lines.append(f"Recommended: {given}")
        lines.append(_verdict("Recommended", advice.if_followed, advice.repetitions))
    else:
        lines.append("No settings to recommend: no slope was seen that an update could follow.")
    if any(one.within is None for row in parts.levels for one in row):
        lines.append("With one sample a direction the noise is taken from sigma 0 for every sigma.")
    return [*lines, _GUESSES]


_GUESSES = (
    "Guesses: the slope of the first generation holds for the whole run, harm grows with sigma squared, and population "
    "and copies change alike in both arms. Nothing is said of the best objective."
)


def _verdict(name: str, found: Prediction, repetitions: int) -> str:
    parts = [
        f"{what} {change.net:+.3f} (90 % interval {change.low:+.3f} to {change.high:+.3f}), {seen.verdict}"
        for what, change, seen in (
            ("mean reward", found.reward, found.reward_seen),
            ("share of valid candidates", found.valid, found.valid_seen),
        )
    ]
    runs = "one run an arm shows no spread, so nothing can be told" if repetitions < 2 else f"{repetitions} runs an arm"
    return f"{name}, {len(found.plan.steps)} updates: {'; '.join(parts)} ({runs})."


def _settings(config: RunConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in _SETTINGS}


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def _root(value: float) -> str:
    """A variance as a standard deviation; an estimate below 0 is none."""
    return _number(math.sqrt(max(value, 0.0))) if math.isfinite(value) else "-"


def _plain(value: Any) -> Any:
    """For JSON, which knows no NaN and no infinity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
