"""Updates as plain data, for files and messages. What is at its default is left out: older files read the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from operators.records import Update

_LISTS = ("seeds", "rewards", "weights")


def fields_of(update: Update) -> dict[str, Any]:
    """An update as lists and numbers."""
    fields = {
        "step": update.step,
        **{name: list(getattr(update, name)) for name in _LISTS},
        "alpha": update.alpha,
        "sigma": update.sigma,
    }
    if update.inherited:
        fields["inherited"] = [list(pair) for pair in update.inherited]
    if update.signal is not None:
        fields["signal"] = update.signal
    return fields


def update_of(fields: Mapping[str, Any]) -> Update:
    """An update from its fields; what else stands beside them is left alone.

    Raises:
        KeyError: a field is missing.
        TypeError, ValueError: a field is of another kind, or there are not as many rewards and weights as seeds.
    """
    seeds, rewards, weights = (tuple(fields[name]) for name in _LISTS)
    if not len(seeds) == len(rewards) == len(weights):
        raise ValueError("an update has not as many weights as directions")
    return Update(
        step=fields["step"],
        seeds=seeds,
        rewards=rewards,
        weights=weights,
        alpha=fields["alpha"],
        sigma=fields["sigma"],
        inherited=tuple((seed, coefficient) for seed, coefficient in fields.get("inherited", ())),
        signal=fields.get("signal"),
    )
