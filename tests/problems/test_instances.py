"""Instance sets: drawn bit for bit as they were published, and files of every sort of damage named."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from operators.errors import UserError
from problems import registry
from problems.instances import Origin, Sets, one_stream

SETS = Sets(
    problem="own",
    folder="own_files",
    draw=lambda generator, count, size: generator.random_sample((count, size, 2)),
    published=one_stream(5, ("train", 4, 3), ("val", 4, 2), ("test", 4, 10), ("test", 6, 5)),
    default_size=4,
    default_count={"train": 3, "val": 2, "test": 8},
    seed=70,
)
WHOLE = np.random.RandomState(1).random_sample((7, 4, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of published files as it should be."""
    (tmp_path / "own_files").mkdir()
    np.save(tmp_path / "own_files/train4_dataset.npy", WHOLE)
    return tmp_path


def put(folder: Path, content: bytes, name: str = "train4_dataset.npy") -> None:
    (folder / "own_files" / name).write_bytes(content)


def as_bytes(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def zipped(*arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, *arrays)
    return buffer.getvalue()


def test_sets_are_drawn_one_after_the_other() -> None:
    """Results could not be compared with those on the published instances."""
    generator = np.random.RandomState(5)
    expected = {
        (split, size): generator.random_sample((count, size, 2))
        for split, size, count in (("train", 4, 3), ("val", 4, 2), ("test", 4, 10), ("test", 6, 5))
    }
    for (split, size), whole in expected.items():
        loaded = SETS.load(split, size, len(whole))
        assert loaded.tobytes() == whole.tobytes()
        assert SETS.load(split, size, 1).tobytes() == whole[:1].tobytes()
    assert SETS.published["test", 6] == Origin(5, 5, ((3, 4), (2, 4), (10, 4)))


def test_numbers_that_stand_when_nothing_is_said() -> None:
    """Two commands without options would speak of different sets."""
    assert np.array_equal(SETS.load(), SETS.load("train", 4, 3))
    assert np.array_equal(SETS.load("test"), SETS.load("test", 4, 8))
    assert len(SETS.load("test", 6)) == 5, "no more than were published"
    assert (SETS.sizes("test"), SETS.sizes("train"), SETS.sizes("val")) == ((4, 6), (4,), (4,))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_other_sizes_have_streams_of_their_own(place: int) -> None:
    """Instances to train and to test on would be the same, or change with the sets that come before."""
    split = ("train", "val", "test")[place]
    expected = np.random.RandomState(70 + place).random_sample((20, 9, 2))
    assert np.array_equal(SETS.load(split, 9, 20), expected)
    assert np.array_equal(SETS.load(split, 9), expected[: SETS.default_count[split]])


def built_in() -> Iterator[tuple[str, Sets, str, int]]:
    for name in registry.names():
        sets = registry.get(name).sets
        if sets is not None:
            yield from ((name, sets, split, size) for split, size in sets.published)


def test_a_part_of_a_built_in_set_is_its_beginning() -> None:
    """Reference values would not be found for the first few instances, and two runs would not compare."""
    for name, sets, split, size in built_in():
        count = min(3, sets.published[split, size].count)
        whole = sets.load(split, size, count)
        assert np.array_equal(sets.load(split, size, 1), whole[:1]), (name, split, size)


def test_instances_cannot_be_written_to(folder: Path) -> None:
    """A heuristic could change the instances of those that follow."""
    for loaded in (SETS.load(), SETS.load("train", 9), SETS.load(data=str(folder))):
        with pytest.raises(ValueError, match="read-only"):
            loaded[0] = 0


def test_global_generators_are_left_alone(folder: Path) -> None:
    """Loading a problem would change the random numbers of the program around it."""
    np.random.seed(7)  # noqa: NPY002
    random.seed(7)
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    SETS.load()
    SETS.load("test", 9, 2)
    SETS.load(data=str(folder))
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]


@pytest.mark.parametrize("inside", ["", "own_files"])
def test_the_folder_or_the_one_around_it(folder: Path, inside: str) -> None:
    """The user would have to guess which of two folders is meant."""
    assert np.array_equal(SETS.load(data=str(folder / inside)), WHOLE)
    assert np.array_equal(SETS.load(data=str(folder / inside), n_instances=2), WHOLE[:2])


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<i8", "u1"])
def test_files_of_all_number_types(folder: Path, dtype: str) -> None:
    """A file written on another machine would be refused, or read as other numbers."""
    put(folder, as_bytes((100 * WHOLE).astype(dtype)))
    assert np.array_equal(SETS.load(data=str(folder)), (100 * WHOLE).astype(dtype))


def test_npz_files(folder: Path) -> None:
    """The published bin packing instances could not be read."""
    put(folder, zipped(WHOLE[::-1]), "val4_dataset.npz")
    assert np.array_equal(SETS.load("val", data=str(folder)), WHOLE[::-1])
    put(folder, as_bytes(WHOLE), "val4_dataset.npy")
    assert np.array_equal(SETS.load("val", data=str(folder)), WHOLE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "Train"}, "Unknown split 'Train' of own. Choose one of: train, val, test"),
        ({"size": 0}, "size of own must be a whole number of at least 1, not 0"),
        ({"size": 4.0}, "size of own .* not 4.0"),
        ({"size": True}, "size of own .* not True"),
        ({"n_instances": -1}, "n_instances of own .* not -1"),
        ({"n_instances": "3"}, "n_instances of own .* not '3'"),
        ({"n_instances": 4}, "own has 3 instances in train4, not 4"),
        ({"split": "test", "n_instances": 11}, "own has 10 instances in test4, not 11"),
        ({"data": "/no/such/folder"}, "The data folder /no/such/folder does not exist. Give"),
        ({"data": __file__}, "does not exist"),
        ({"data": ""}, r"holds no train4_dataset\.npy"),
    ],
)
def test_impossible_selections_are_named(arguments: dict[str, Any], message: str) -> None:
    """A user would get a numpy traceback for a typing error, or other instances than asked for."""
    with pytest.raises(UserError, match=message):
        SETS.load(**arguments)


def test_what_a_folder_lacks_is_named(folder: Path) -> None:
    """The user would not learn which file is missing, or be given fewer instances without a word."""
    with pytest.raises(UserError, match=rf"{folder} holds no val4_dataset\.npy of own.*in own_files/"):
        SETS.load("val", data=str(folder))
    with pytest.raises(UserError, match=r"train5_dataset\.npy"):
        SETS.load("train", 5, data=str(folder))
    with pytest.raises(UserError, match="own has 7 instances in train4, not 8"):
        SETS.load(data=str(folder), n_instances=8)


class Unpickled:
    """Says so when it is."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("the file was unpickled",)


NAN = WHOLE.copy()
NAN[6, 3, 1] = np.nan


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Cannot read .*train4_dataset.npy.*Restore the file"),
        (b"<html>404</html>", "Cannot read .*Restore"),
        (b"\x93NUMPY\x01\x00", "Cannot read .*Restore"),
        (as_bytes(WHOLE)[:-1], "Cannot read .*Restore"),
        (as_bytes(WHOLE)[:40], "Cannot read .*Restore"),
        (as_bytes(WHOLE).replace(b"(7, 4, 2)", b"(7, 4,-2)"), "Cannot read|holds"),
        (as_bytes(WHOLE).replace(b"(7, 4, 2), ", b"(7**30,4,2)"), "Cannot read"),
        (zipped(WHOLE)[:-30], "Cannot read .*Restore"),
        (zipped(WHOLE)[:100], "Cannot read .*Restore"),
        (zipped(), "Cannot read .*Restore"),
        (as_bytes(np.array([Unpickled()]), allow_pickle=True), "Cannot read .*[Oo]bject arrays"),
        (zipped(np.array([Unpickled()])), "Cannot read .*[Oo]bject arrays"),
        (as_bytes(WHOLE[:, :3]), r"float64 of shape \(7, 3, 2\), own needs \(instances, 4, 2\)"),
        (as_bytes(WHOLE[0]), r"shape \(4, 2\)"),
        (as_bytes(WHOLE[:, :, :, None]), r"shape \(7, 4, 2, 1\)"),
        (as_bytes(np.float64(1)), r"shape \(\)"),
        (as_bytes(WHOLE[:0]), r"shape \(0, 4, 2\)"),
        (as_bytes(WHOLE.astype(str)), "holds <U"),
        (as_bytes(WHOLE > 0), "holds bool"),
        (as_bytes(WHOLE * 1j), "holds complex128"),
        (as_bytes(NAN), "values that are NaN or infinite"),
        (as_bytes(np.full_like(WHOLE, np.inf)), "NaN or infinite"),
    ],
)
def test_damaged_files_are_named(folder: Path, content: bytes, message: str) -> None:
    """The user would get a traceback of numpy, or a search on instances that are none."""
    put(folder, content)
    with pytest.raises(UserError, match=message):
        SETS.load(data=str(folder))


@given(st.sampled_from(["npy", "npz"]), st.data())
def test_any_damage_is_named(tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject) -> None:
    """One flipped byte in a file would end in an error that does not name the file."""
    content = bytearray(as_bytes(WHOLE) if kind == "npy" else zipped(WHOLE))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=3)):
        content[place] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    for name in ("npy", "npz"):
        (folder / f"train4_dataset.{name}").unlink(missing_ok=True)
    (folder / f"train4_dataset.{kind}").write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        loaded: NDArray[Any] = SETS.load(data=str(folder))
    except UserError:
        return
    assert loaded.shape[1:] == WHOLE.shape[1:]
    assert np.isfinite(loaded).all()
