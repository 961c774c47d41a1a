"""The published split of WebArena: 165 tasks of WebArena-Lite to test on, the other 647 to learn from and to validate.

A task of WebArena-Lite is a task of WebArena's 812 with a corrected check; `old_task_id` says which one, and none of
those is learnt from. The rest is put in an order that mixes the sites, and its first tenth validates.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from operators.errors import UserError

SEED = 20260605
"""Of the published order."""
_SHARE_TO_VALIDATE = 0.1

_PUBLISHED = {
    "train": "c0a433f7ca57809442f97c1042f4d4154fd2cb26bd049e805ab567d28058c271",
    "val": "5b772371a33363601a6fe094208b39ad732c1824e3cebdb09fe02f3d9e12f49b",
    "test": "79e446fc5738d4a616d5b11f5d804e7d339c8b1932b9f09627394a0977bc7642",
}
"""SHA-256 of the published lists of ids (of the test split: of the old ids), as compact JSON."""

Configs = Sequence[Mapping[str, Any]]


def published_splits(every: Configs, lite: Configs) -> dict[str, list[Mapping[str, Any]]]:
    """The configurations by split, in the published order.

    Args:
        every: WebArena's 812 configurations.
        lite: WebArena-Lite's 165.

    Raises:
        UserError: these are not the configurations that the published lists were made from.
    """
    known = {config["old_task_id"] for config in lite}
    left = [config for config in sorted(every, key=lambda one: int(one["task_id"])) if config["task_id"] not in known]
    ordered = mixed(left, SEED)
    first = round(_SHARE_TO_VALIDATE * len(ordered))
    found = {
        "train": ordered[first:],
        "val": ordered[:first],
        "test": sorted(lite, key=lambda one: int(one["task_id"])),
    }
    for split, configs in found.items():
        name = "old_task_id" if split == "test" else "task_id"
        if (digest := digest_of([int(config[name]) for config in configs])) != _PUBLISHED[split]:
            raise UserError(
                f"The {split} split of these configurations has hash {digest[:12]}, the published one "
                f"{_PUBLISHED[split][:12]}: they are others than WebArena's 812 and WebArena-Lite's 165. "
                "Take them from the packages that scripts/setup_web.sh installs."
            )
    return found


def mixed(configs: Configs, seed: int) -> list[Mapping[str, Any]]:
    """An order in which the sites take turns.

    Tasks with the same list of sites are shuffled; then the lists of sites take turns, shuffled before each round, and
    each gives its last task, until it has none.
    """
    stream = random.Random(seed)
    strata: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for config in configs:
        strata.setdefault(tuple(config["sites"]), []).append(config)
    for stratum in strata.values():
        stream.shuffle(stratum)
    turns, ordered = list(strata), []
    stream.shuffle(turns)
    while turns:
        ordered += [strata[sites].pop() for sites in turns]
        turns = [sites for sites in turns if strata[sites]]
        stream.shuffle(turns)
    return ordered


def digest_of(ids: Sequence[int]) -> str:
    """SHA-256 of a list of ids."""
    return hashlib.sha256(json.dumps(list(ids), separators=(",", ":")).encode()).hexdigest()
