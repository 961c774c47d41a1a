"""Models that tell what directions cost them apart from what writing does."""

from __future__ import annotations

from pathlib import Path

import pytest
from families import build
from served_cases import DIRECTIONS, Servers, impatient, opened, requests, servers

from eoh_esopt.models.cassette import Cassette, CassetteModel
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.stopwatch import stopwatch_of
from eoh_esopt.models.transformers_model import TransformersModel
from operators.records import Direction

__all__ = ["impatient", "servers"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random checkpoint."""
    return build("llama-3.1", tmp_path_factory.mktemp("llama"))


@pytest.mark.parametrize("scope", SCOPES)
def test_directions_are_timed_in_both_scopes(folder: Path, scope: str, tmp_path: Path) -> None:
    """Else the ledger says that learning costs nothing but its updates."""
    inner = TransformersModel(folder, scope=SCOPES[scope], sampling=Sampling(max_new_tokens=2))
    model = CassetteModel(inner, Cassette(tmp_path / "replies.jsonl", recording=True), {})
    watch = stopwatch_of(model)
    assert watch is not None
    assert (watch.perturb, watch.restore) == (0, 0)
    before = inner.checksum()
    model.generate(requests([Direction(1, 0.5)], each=2))
    assert watch.perturb > 0
    assert watch.restore > 0
    assert inner.checksum() == before
    assert stopwatch_of(model) is watch


def test_the_time_of_servers_is_their_mean(servers: Servers) -> None:
    """Else two servers that perturb side by side seem to take longer than the run did."""
    with opened(*servers) as model:
        model.generate(requests([None]))
        assert (model.stopwatch.perturb, model.stopwatch.restore) == (0, 0)
        model.generate(requests([*DIRECTIONS]))
        each = [replica.stopwatch for replica in model._fleet.replicas]
        assert sum(one.perturb > 0 for one in each) >= 1
        assert model.stopwatch.perturb == pytest.approx(sum(one.perturb for one in each) / 3)
        assert model.stopwatch.restore == pytest.approx(sum(one.restore for one in each) / 3)
