"""Whole tensors again from the pieces that a server's workers hold: for checksums, and to write checkpoints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from eoh_esopt.models.checkpoint import write_adapted
from eoh_esopt.models.digest import digest
from eoh_esopt.models.vllm.served_weights import file_name
from operators.errors import UserError

_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


class Assembly:
    """The checkpoint's tensors that a server holds, all of its workers together.

    Args:
        folder: the base checkpoint.
        facts: what each worker said of its pieces.

    Raises:
        UserError: the workers together do not hold a tensor as a whole, or do not agree which ones are in scope.
    """

    def __init__(self, folder: Path, facts: Sequence[Mapping[str, Any]]) -> None:
        self._folder = folder
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._masters: set[str] = set()
        for one in facts:
            self._shapes |= {name: tuple(shape) for name, shape in one["shapes"].items()}
            self._masters |= set(one["masters"])
        self._dtype = _DTYPES[facts[0]["dtype"]]
        _check_whole(self._shapes, facts)

    @property
    def _tied(self) -> frozenset[str]:
        """A second copy of the embedding that some checkpoints store although the model ties it."""
        config = json.loads((self._folder / "config.json").read_text(encoding="utf-8"))
        return frozenset({"lm_head.weight"} if config.get("tie_word_embeddings") else ()) - set(self._shapes)

    @property
    def parameters(self) -> int:
        """Elements of all served tensors."""
        return sum(math.prod(shape) for shape in self._shapes.values())

    @property
    def scope_elements(self) -> int:
        """Elements of the tensors in scope."""
        return sum(math.prod(self._shapes[name]) for name in self._masters)

    def prepare(self, folder: Path) -> None:
        """Make the files that workers dump their pieces into."""
        for name, shape in self._shapes.items():
            with (folder / file_name(name)).open("wb") as file:
                file.truncate(math.prod(shape) * self._type(name).itemsize)

    def checksum(self, folder: Path) -> str:
        """sha256 of the dumped weights."""
        return digest(self._tensors(folder))

    def save(self, dumped: Path, folder: Path, *, float32: bool) -> None:
        """Write a checkpoint: the dumped weights in the live dtype or float32, the rest as in the base checkpoint."""
        dtype = torch.float32 if float32 else self._dtype
        tensors = {name: values.to(dtype) for name, _, values in self._tensors(dumped)}
        write_adapted(self._folder, folder, tensors, tied=self._tied)

    def _type(self, name: str) -> torch.dtype:
        return torch.float32 if name in self._masters else self._dtype

    def _tensors(self, folder: Path) -> Iterator[tuple[str, tuple[int, ...], torch.Tensor]]:
        for name in sorted(self._shapes):
            shape = self._shapes[name]
            file = str(folder / file_name(name))
            values = torch.from_file(file, shared=False, size=math.prod(shape), dtype=self._type(name))
            yield name, shape, values.reshape(shape)


def _check_whole(shapes: Mapping[str, tuple[int, ...]], facts: Sequence[Mapping[str, Any]]) -> None:
    pieces: dict[str, set[tuple[int, ...]]] = {}
    for one in facts:
        for name, first, run, stride, size in one["pieces"]:
            pieces.setdefault(name, set()).add((first, run, stride, size))
    for name, shape in shapes.items():
        held = sum(size for *_, size in pieces[name])
        if held != math.prod(shape):
            raise UserError(
                f"The servers' workers hold {held} of the {math.prod(shape)} numbers of {name}, so its directions "
                "could not be replayed elsewhere. Use --backend transformers for this architecture."
            )
