"""The history: all that is needed to make a run's weights again from the base model. Seeds and numbers, no weights."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import HISTORY
from operators.errors import UserError
from operators.lowrank import LOWRANK_VERSION
from operators.noise import NOISE_VERSION
from operators.records import Update
from operators.update_fields import fields_of, update_of

FORMAT = 1
_KINDS = (("full", None), ("lowrank", LOWRANK_VERSION))


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
        rank: of low-rank noise; None for full noise.
    """

    model: str
    base_checksum: str
    scope: str
    restore: str
    dtype: str
    updates: tuple[Update, ...] = ()
    final_checksum: str | None = None
    rank: int | None = None

    def to_json(self) -> str:
        """The file's text. Full noise is not named: files of releases that knew no other stay as they are."""
        fields = {**asdict(replace(self, updates=())), "updates": [fields_of(update) for update in self.updates]}
        rank = fields.pop("rank")
        noise = {} if rank is None else {"noise": "lowrank", "lowrank_version": LOWRANK_VERSION, "rank": rank}
        return json.dumps({"format": FORMAT, "noise_version": NOISE_VERSION, **noise, **fields}, indent=1) + "\n"


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
        kind = fields.pop("noise", "full"), fields.pop("lowrank_version", None)
        if kind not in _KINDS:
            raise UserError(
                f"{file} was made with noise {kind[0]!r}, version {kind[1]}, which this release does not know. Use the "
                "release that made it."
            )
        if (type(fields.get("rank")) is int and fields["rank"] >= 1) != (kind[0] == "lowrank"):
            raise ValueError(f"rank {fields.get('rank')!r} does not go with noise {kind[0]!r}")
        updates = tuple(update_of(one) for one in fields.pop("updates"))
        return History(**fields, updates=updates)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file} is no history: {error!r}. Restore it from a copy.") from error
