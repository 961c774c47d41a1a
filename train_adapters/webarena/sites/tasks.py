"""The tasks of the local sites, in the form of WebArena's configuration.

Right answers are looked up in the pristine database when the tasks are made, so they cannot go stale. What is added to
WebArena's form: `name`, `split`, `mutates` (its solution changes a site), `difficulty`, `minimum_actions` (of the
shortest known way, the exit with it), and the check `state_match` that `checks` describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from train_adapters.webarena.sites import tasks_admin, tasks_forum, tasks_shop, tasks_tracker
from train_adapters.webarena.sites.state import pristine
from train_adapters.webarena.sites.template import Seed, Template

TEMPLATES: tuple[Template, ...] = (
    *tasks_shop.TEMPLATES,
    *tasks_admin.TEMPLATES,
    *tasks_forum.TEMPLATES,
    *tasks_tracker.TEMPLATES,
)
"""Add templates at the end of the last list: the ids of the tasks follow this order."""

_PER_TEMPLATE = 10
"""Ids that each template has for its tasks."""


def site_tasks(split: str | None = None) -> list[dict[str, Any]]:
    """The tasks of a split, or all of them; no template has tasks in two splits.

    Args:
        split: train, val or test; None for all.
    """
    return [dict(task) for task in _all() if split in (None, task["split"])]


@lru_cache(maxsize=1)
def _all() -> Sequence[dict[str, Any]]:
    seed = Seed(pristine())
    return [
        _task(seed, template, number, place)
        for number, template in enumerate(TEMPLATES)
        for place in range(len(template.values))
    ]


def _task(seed: Seed, template: Template, number: int, place: int) -> dict[str, Any]:
    values = template.values[place]
    intent = template.text
    for name, value in values.items():
        intent = intent.replace(f"{{{{{name}}}}}", str(value))
    part = {"reference_answers": None, "reference_url": "", "program_html": [], **template.check(seed, **values)}
    return {
        "task_id": number * _PER_TEMPLATE + place,
        "name": f"{template.name}-{place + 1}",
        "split": template.split,
        "sites": list(template.sites),
        "start_url": template.start,
        "require_login": True,
        "storage_state": f"./.auth/{'.'.join(template.sites)}_state.json",
        "geolocation": None,
        "intent_template": template.text,
        "intent_template_id": number,
        "instantiation_dict": dict(values),
        "intent": intent,
        "require_reset": template.mutates,
        "mutates": template.mutates,
        "difficulty": template.difficulty,
        "minimum_actions": template.actions,
        "eval": part,
    }
