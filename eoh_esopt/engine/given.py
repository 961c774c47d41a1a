"""Programs that a run starts from in place of an i1 batch: tried before the model is loaded, kept in its folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from eoh_esopt.engine import events
from eoh_esopt.engine.ahead import Evaluates
from eoh_esopt.engine.config import RunConfig
from operators.errors import UserError
from operators.task import SeedHeuristic


def check_given(
    given: Sequence[SeedHeuristic], config: RunConfig, evaluator: Evaluates, notify: Callable[[str], None]
) -> None:
    """Try the programs, and say how many of them are valid.

    Raises:
        UserError: none is.
    """
    if not given:
        return
    outcomes = dict(evaluator.evaluate([one.code for one in given]))
    causes = Counter(outcome.status.value for outcome in outcomes.values())
    told = ", ".join(f"{count} {cause}" for cause, count in causes.most_common())
    if not any(outcome.valid for outcome in outcomes.values()):
        raise UserError(
            f"None of the {len(given)} programs of {config.init_from} is valid for {config.problem}: {told}. The first "
            f"fails by {outcomes[0].detail or outcomes[0].status.value}. Give a population of the same problem."
        )
    notify(f"Starting from the {len(given)} programs of {config.init_from}: {told}.")


def keep_given(given: Sequence[SeedHeuristic], out: Path) -> None:
    """Write the programs to a run's folder."""
    if given:
        events.write_atomically(out / events.GIVEN, json.dumps([asdict(one) for one in given], indent=1) + "\n")


def given_programs(config: RunConfig, out: Path) -> tuple[SeedHeuristic, ...]:
    """The programs that a run began with, as its folder keeps them; none where it has an i1 batch.

    Raises:
        UserError: their file is missing or damaged.
    """
    if config.init_from is None:
        return ()
    path = out / events.GIVEN
    try:
        return tuple(SeedHeuristic(**one) for one in json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"Cannot read {path}, the programs that the run began with: {error}. Restore it.") from error
