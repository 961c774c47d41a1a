"""Adapted weights as a folder that others load: checkpoint and model card, whole or not there at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eoh_esopt.engine.history import History, history_file
from eoh_esopt.engine.replay import Adapted
from eoh_esopt.models.cache import sha256_of
from eoh_esopt.models.card import SEARCH, Card, base_of, describe_search, describe_training, purpose_of
from operators.errors import UserError

CARD = "README.md"


def check_free(out: Path, option: str) -> None:
    """Refuse a folder that cannot take a checkpoint, before minutes are spent on one.

    Args:
        out: the folder to be.
        option: how the user gave it, for the message.

    Raises:
        UserError: it is not empty, no folder, or cannot be written to.
    """
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UserError(f"{out} is not empty. Choose another {option}.")
        nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    except OSError as error:
        raise UserError(f"Cannot save to {out}: {error.strerror}. Choose another {option}.") from error
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        raise UserError(f"Cannot save to {out}: {nearest} cannot be written to. Choose another {option}.")


def export(
    adapted: Adapted,
    history: History,
    source: Path,
    out: Path,
    *,
    base: str,
    name: str,
    command: str,
    float32: bool = False,
) -> None:
    """Write adapted weights and their model card.

    Args:
        adapted: the weights.
        history: what they were made by.
        source: the run's folder, or the history file.
        out: the folder to be; it appears when everything in it is written.
        base: the base model as the user named it.
        name: what the card calls the model.
        command: what the card says it was made with.
        float32: write float32 instead of the run's dtype.

    Raises:
        UserError: the folder cannot be written.
    """
    run = history_file(source).parent
    purpose = purpose_of(run)
    try:
        with _complete_or_nothing(out) as folder:
            adapted.model.save(folder, float32=float32)
            card = Card(
                name=name,
                base=base_of(base, adapted.model.folder),
                base_checksum=history.base_checksum,
                checksum=adapted.checksum,
                history=sha256_of(history_file(source)),
                verdict=adapted.verdict,
                scope=history.scope,
                restore=history.restore,
                dtype="float32" if float32 else adapted.model.describe()["dtype"],
                updates=history.updates,
                command=command,
                search=describe_search(run) if purpose == SEARCH else describe_training(run),
                files={path.name: sha256_of(path) for path in sorted(folder.glob("*.safetensors"))},
                rank=history.rank,
                purpose=purpose,
            )
            (folder / CARD).write_text(card.text(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"Cannot save to {out}: {error.strerror or error}. Choose another folder.") from error


@contextmanager
def _complete_or_nothing(out: Path) -> Iterator[Path]:
    """An empty folder beside `out` that takes its place at the end; after an error nothing is left of it."""
    target = out.resolve()
    folder = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    folder.mkdir(parents=True)
    try:
        yield folder
        folder.replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
