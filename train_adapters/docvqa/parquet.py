"""The public data set as its Parquet files are published (`lmms-lab/DocVQA`), made a folder of rows and pictures.

Its splits are made anew, by document: of the documents in an order drawn from a fixed seed a tenth is learnt from, the
next tenth validates, the rest tests. Files of its test split have no answers and are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eoh_esopt.models.cache import cache_root
from operators.errors import UserError

_SEED = 20260627
_ROWS = 64  # in memory at a time, with their pictures
_COLUMNS = ("questionId", "question", "answers", "image", "ucsf_document_id")
_PAGES = "pages"


def as_rows(folder: Path) -> Path:
    """A folder of rows as `rows.read_split` reads them.

    Args:
        folder: of rows already, or with Parquet files anywhere in it.

    Returns:
        The same folder, or one in the cache that was made from the Parquet files, now or before.

    Raises:
        UserError: a file cannot be read or lacks a column, or pyarrow is missing.
    """
    files = [path for path in sorted(folder.rglob("*.parquet")) if not path.name.startswith("test")]
    if not files or (folder / "train.jsonl").exists() or any(folder.glob("train*.json")):
        return folder
    made = cache_root() / "docvqa" / f"parquet-{_hash(folder, files)}"
    if not made.exists():
        temporary = made.with_name(f"{made.name}.{os.getpid()}.part")
        try:
            _write(temporary, files)
            temporary.replace(made)  # whole or not at all; another process may have been faster
        except OSError as error:
            if not made.exists():
                raise UserError(f"Cannot write {made}: {error.strerror}. Make room, or set EOH_ESOPT_CACHE.") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return made


def _hash(folder: Path, files: Sequence[Path]) -> str:
    """Of what the files are, without reading gigabytes."""
    facts = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(json.dumps([_SEED, facts]).encode()).hexdigest()[:24]


def _write(folder: Path, files: Sequence[Path]) -> None:
    (folder / _PAGES).mkdir(parents=True)
    documents: dict[str, list[str]] = {}
    for path in files:
        for row in _rows(path):
            picture = _picture(row, path)
            page = f"{_PAGES}/{hashlib.sha256(picture).hexdigest()[:24]}.png"
            (folder / page).write_bytes(picture)
            fields = {"id": row["questionId"], "doc_id": row["ucsf_document_id"], "image": page}
            fields |= {"question": row["question"], "answers": row["answers"]}
            documents.setdefault(row["ucsf_document_id"], []).append(json.dumps(fields) + "\n")
    for split, names in _splits(sorted(documents)).items():
        (folder / f"{split}.jsonl").write_text("".join(line for name in names for line in documents[name]))


def _picture(row: Mapping[str, Any], path: Path) -> bytes:
    """The bytes of the page."""
    image = row["image"]
    picture = image.get("bytes") if isinstance(image, Mapping) else None
    if not isinstance(picture, bytes) or not picture:
        raise UserError(f"{path}: question {row['questionId']!r} has no picture. Fetch the files with their pictures.")
    return picture


def _splits(names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Documents by split."""
    shuffled = random.Random(_SEED).sample(names, len(names))
    tenth = max(1, len(names) // 10)
    return {"train": shuffled[:tenth], "val": shuffled[tenth : 2 * tenth], "test": shuffled[2 * tenth :]}


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise UserError("Parquet files need pyarrow. Install it with: pip install 'eoh-esopt[agents]'") from error
    try:
        with ParquetFile(path) as file:
            missing = [name for name in _COLUMNS if name not in file.schema_arrow.names]
            if missing:
                raise UserError(
                    f"{path} has no column {missing[0]!r}. Give the files of lmms-lab/DocVQA, or JSON rows."
                )
            for batch in file.iter_batches(_ROWS, columns=list(_COLUMNS)):
                yield from batch.to_pylist()
    except ArrowException as error:
        raise UserError(f"Cannot read {path}: {error}. Fetch the file again.") from error
