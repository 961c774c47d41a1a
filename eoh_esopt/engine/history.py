"""The history: all that is needed to make a run's weights again from the base model. Seeds and numbers, no weights."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import HISTORY
from operators.errors import UserError
from operators.noise import NOISE_VERSION
from operators.records import Update

FORMAT = 1


@dataclass(frozen=True)
class History:
    """The updates of a run and the weights they start from.

    Attributes:
        model: the model as the user named it.
        base_checksum: sha256 of the true weights before the first update.
        scope: which weights the directions move.
        restore: restore mode of the run.
        dtype: of the live weights.
        updates: in the order they were applied.
        final_checksum: sha256 of the true weights after the last update; None while the run goes on.
    """

    model: str
    base_checksum: str
    scope: str
    restore: str
    dtype: str
    updates: tuple[Update, ...] = ()
    final_checksum: str | None = None

    def to_json(self) -> str:
        """The file's text."""
        return json.dumps({"format": FORMAT, "noise_version": NOISE_VERSION, **asdict(self)}, indent=1) + "\n"


def history_file(path: Path) -> Path:
    """The history in a run's folder, or the path itself."""
    return path / HISTORY if path.is_dir() else path


def load_history(path: Path) -> History:
    """Read a history file, or the one in a run's folder.

    Raises:
        UserError: there is none, it is damaged, or it was made under another definition of the noise.
    """
    file = history_file(path)
    if not file.is_file():
        raise UserError(f"There is no history at {file}. Give a run's folder or its {HISTORY}.")
    try:
        fields: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if fields.pop("format") != FORMAT or fields["noise_version"] != NOISE_VERSION:
            raise UserError(
                f"{file} was made with noise version {fields.get('noise_version')}, and this release has version "
                f"{NOISE_VERSION}: its weights cannot be made again here. Use the release that made it."
            )
        del fields["noise_version"]
        updates = tuple(
            Update(
                step=one["step"],
                seeds=tuple(one["seeds"]),
                rewards=tuple(one["rewards"]),
                weights=tuple(one["weights"]),
                alpha=one["alpha"],
                sigma=one["sigma"],
            )
            for one in fields.pop("updates")
        )
        if any(not len(one.seeds) == len(one.rewards) == len(one.weights) for one in updates):
            raise ValueError("an update has not as many weights as directions")
        return History(**fields, updates=updates)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file} is no history: {error!r}. Restore it from a copy.") from error
