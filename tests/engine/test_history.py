"""The history: exact in the file as in memory, and refused where it cannot be trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eoh_esopt.engine.history import History, load_history
from operators.errors import UserError
from operators.noise import NOISE_VERSION
from operators.records import Update

UPDATE = Update(0, (2**64 - 1, 3), (0.1 + 0.2, -1e-300), (1.0000000000000002, -1.0), 0.03, 0.06)
HISTORY = History("some-model", "ab" * 32, "norms", "exact", "bfloat16", (UPDATE,), "cd" * 32)


def write(folder: Path, text: str) -> Path:
    path = folder / "history.json"
    path.write_text(text)
    return path


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(HISTORY.to_json()), **fields})


def without(field: str) -> str:
    fields = json.loads(HISTORY.to_json())
    del fields[field]
    return json.dumps(fields)


def test_a_history_comes_back_from_its_folder_or_file(tmp_path: Path) -> None:
    """Else what was learnt cannot be made again."""
    path = write(tmp_path, HISTORY.to_json())
    assert load_history(tmp_path) == HISTORY
    assert load_history(path) == HISTORY


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=2), st.integers(0, 2**64 - 1))
def test_numbers_come_back_to_the_last_bit(numbers: list[float], seed: int) -> None:
    """Else a replay ends in other weights than the run."""
    update = Update(1, (seed, 0), (numbers[0], 0.0), (numbers[1], 0.0), abs(numbers[0]), numbers[1])
    fields = json.loads(History("m", "a", "full", "exact", "float32", (update,)).to_json())["updates"][0]
    assert (fields["seeds"], fields["rewards"], fields["weights"]) == ([seed, 0], [numbers[0], 0.0], [numbers[1], 0.0])
    assert (fields["alpha"], fields["sigma"]) == (update.alpha, update.sigma)


def test_a_history_of_another_noise_is_refused(tmp_path: Path) -> None:
    """Else its seeds give other directions, and the weights are noise."""
    write(tmp_path, changed(noise_version=NOISE_VERSION + 1))
    with pytest.raises(UserError, match=f"noise version {NOISE_VERSION + 1}.*Use the release that made it"):
        load_history(tmp_path)


def test_a_history_of_another_format_is_refused(tmp_path: Path) -> None:
    """Else a later release's history is read as if it were ours."""
    write(tmp_path, changed(format=2))
    with pytest.raises(UserError, match="Use the release that made it"):
        load_history(tmp_path)


BAD_UPDATE = {"step": 0, "seeds": [1, 2], "rewards": [1.0, 2.0], "weights": [1.0], "alpha": 1.0, "sigma": 1.0}
DAMAGED = {
    "cut short": HISTORY.to_json()[:-9],
    "empty": "",
    "a list": "[]",
    "a number": "5",
    "no weights": without("base_checksum"),
    "no updates": without("updates"),
    "no format": without("format"),
    "unknown key": changed(mirrored=True),
    "updates are no list": changed(updates=3),
    "an update is no record": changed(updates=["first"]),
    "an update lacks its weights": changed(updates=[{"step": 0}]),
    "an update lacks one weight": changed(updates=[BAD_UPDATE]),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_history_is_refused(tmp_path: Path, text: str) -> None:
    """Else a replay ends in a traceback, or silently in other weights."""
    write(tmp_path, text)
    with pytest.raises(UserError, match=r"is no history.*Restore it from a copy"):
        load_history(tmp_path)


def test_a_missing_history_is_refused_with_what_to_give(tmp_path: Path) -> None:
    """Else the user does not learn which file is meant."""
    for path in (tmp_path, tmp_path / "none", tmp_path / "history.json"):
        with pytest.raises(UserError, match=r"no history at .*Give a run's folder"):
            load_history(path)
