"""Replay of a history in another restore mode than it was made in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from models.families import build

from eoh_esopt.engine.history import History
from eoh_esopt.engine.replay import replay_history
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.transformers_model import TransformersModel
from operators.errors import UserError
from operators.records import Direction, Update

WEIGHTS = (-1.2, 0.0, 1.2)
UPDATES = tuple(Update(step, (3 * step, 7, 2**60), WEIGHTS, WEIGHTS, 0.02, 0.01) for step in range(2))
MODES = ("exact", "residual", "host")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("llama-3.1", tmp_path_factory.mktemp("modes") / "tiny")


def made(folder: Path, restore: str) -> History:
    """A history as a run in that mode leaves it."""
    sampling = Sampling(max_new_tokens=1)
    model = TransformersModel(folder, scope=SCOPES["full"], sampling=sampling, restore=restore)
    history = History("tiny", model.checksum(), "full", model.describe()["restore"], model.describe()["dtype"], UPDATES)
    for update in UPDATES:
        before, after = model.probe("x", None), model.probe("x", Direction(update.step, 0.02))
        assert (before != after).any()
        model.apply(update)
    return replace(history, final_checksum=model.checksum())


@pytest.mark.parametrize("restore", MODES)
def test_modes_that_lose_nothing_replay_each_other(restore: str, tiny: Path) -> None:
    """A history from a machine with little memory would be worth nothing elsewhere."""
    history = made(tiny, restore)
    assert history.restore == restore
    for other in MODES:
        adapted = replay_history(replace(history, restore=other), str(tiny), lambda updates: updates)
        assert (adapted.checksum, adapted.verdict) == (history.final_checksum, "The weights equal the run's.")


@pytest.mark.parametrize("restore", MODES)
def test_a_damaged_history_is_refused_in_modes_that_lose_nothing(restore: str, tiny: Path) -> None:
    """Other weights would pass as drift where nothing can drift."""
    history = replace(made(tiny, "exact"), restore=restore, final_checksum="0" * 64)
    with pytest.raises(UserError, match=r"Replay gave weights .* the history or the model is damaged"):
        replay_history(history, str(tiny), lambda updates: updates)
