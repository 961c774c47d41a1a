"""Instance sets: drawn from documented seeds, or read from a folder of published files.

The published sets come from numpy's legacy generator: one stream a problem, drawn from set after set. `Sets` writes
down the order, so every set is drawn again bit for bit. Sizes nobody published are drawn from streams of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from operators.errors import UserError

SPLITS = ("train", "val", "test")

Draw = Callable[[np.random.RandomState, int, int], NDArray[Any]]
"""(generator, number of instances, size) -> their raw data, one instance a row."""


@dataclass(frozen=True)
class Origin:
    """Where in its stream a published set lies.

    Attributes:
        seed: of the stream.
        count: instances of the whole set.
        before: (number of instances, size) of each set that is drawn from the stream first.
    """

    seed: int
    count: int
    before: tuple[tuple[int, int], ...] = ()


def one_stream(seed: int, *sets: tuple[str, int, int]) -> dict[tuple[str, int], Origin]:
    """Origins of sets that were drawn one after the other.

    Args:
        seed: of the stream.
        sets: (split, size, number of instances) in the order they were drawn.
    """
    drawn = [(count, size) for _, size, count in sets]
    return {(split, size): Origin(seed, count, tuple(drawn[:place])) for place, (split, size, count) in enumerate(sets)}


@dataclass(frozen=True)
class Sets:
    """All instance sets of one problem.

    Attributes:
        problem: its name, for messages.
        folder: name of the folder that published files lie in; files are `{split}{size}_dataset.npy` or `.npz`.
        draw: how instances are drawn.
        published: origin of each published set, by (split, size).
        default_size: the size that stands when none is given.
        default_count: how many instances are taken when the number is not given, by split.
        seed: of the streams of sizes nobody published: `seed`, `seed` + 1, `seed` + 2 for train, val and test.
    """

    problem: str
    folder: str
    draw: Draw
    published: Mapping[tuple[str, int], Origin]
    default_size: int
    default_count: Mapping[str, int]
    seed: int

    def sizes(self, split: str) -> tuple[int, ...]:
        """The published sizes of a split, ascending."""
        return tuple(sorted(size for name, size in self.published if name == split))

    def load(
        self, split: str = "train", size: int | None = None, n_instances: int | None = None, data: str | None = None
    ) -> NDArray[Any]:
        """The first `n_instances` of a set, read-only.

        Args:
            split: "train", "val" or "test".
            size: of each instance; the default size when None.
            n_instances: how many; when None, the whole set of a folder, else the split's default.
            data: folder of published files, or the folder around it; None to draw the instances.

        Raises:
            UserError: a value is out of range, or the folder, its file or the file's content cannot be used.
        """
        size = self.default_size if size is None else size
        if split not in SPLITS:
            raise UserError(f"Unknown split {split!r} of {self.problem}. Choose one of: {', '.join(SPLITS)}.")
        for what, value in (("size", size), ("n_instances", n_instances)):
            if value is not None and (type(value) is not int or value < 1):
                raise UserError(f"{what} of {self.problem} must be a whole number of at least 1, not {value!r}.")
        raw = self._drawn(split, size, n_instances) if data is None else self._read(Path(data), split, size)
        if n_instances is not None and n_instances > len(raw):
            raise UserError(f"{self.problem} has {len(raw)} instances in {split}{size}, not {n_instances}.")
        raw = raw[:n_instances].copy()
        raw.flags.writeable = False
        return raw

    def _drawn(self, split: str, size: int, n_instances: int | None) -> NDArray[Any]:
        wanted = self.default_count[split] if n_instances is None else n_instances
        origin = self.published.get((split, size))
        if origin is None:
            return self.draw(np.random.RandomState(self.seed + SPLITS.index(split)), wanted, size)
        generator = np.random.RandomState(origin.seed)
        for count, earlier in origin.before:
            self.draw(generator, count, earlier)
        return self.draw(generator, min(wanted, origin.count), size)

    def _read(self, folder: Path, split: str, size: int) -> NDArray[Any]:
        if not folder.is_dir():
            raise UserError(f"The data folder {folder} does not exist. Give the folder of the published files.")
        stem = f"{split}{size}_dataset"
        places = [place / f"{stem}{ending}" for place in (folder, folder / self.folder) for ending in (".npy", ".npz")]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            raise UserError(f"{folder} holds no {stem}.npy of {self.problem} (looked in it and in {self.folder}/).")
        try:
            loaded = np.load(path, allow_pickle=False)
            raw = loaded if isinstance(loaded, np.ndarray) else loaded[loaded.files[0]]
        except Exception as error:  # a damaged file makes numpy and zipfile raise all sorts of errors
            raise UserError(f"Cannot read {path}: {error}. Restore the file from a copy.") from error
        self._check(raw, path, size)
        return raw

    def _check(self, raw: NDArray[Any], path: Path, size: int) -> None:
        model = self.draw(np.random.RandomState(0), 1, size)
        if raw.shape[1:] != model.shape[1:] or not len(raw) or raw.dtype.kind not in "iuf":
            expected = ", ".join(map(str, ("instances", *model.shape[1:])))
            raise UserError(f"{path} holds {raw.dtype} of shape {raw.shape}, {self.problem} needs ({expected}).")
        if not np.isfinite(raw).all():
            raise UserError(f"{path} holds values that are NaN or infinite. Restore the file from a copy.")
