"""Runs that the tests of the report read; made once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from report_runs import Maker, prose


@pytest.fixture(scope="session")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Maker]:
    """Makes further runs."""
    with ExitStack() as sandboxes:
        yield Maker(tmp_path_factory.mktemp("made"), sandboxes)


@pytest.fixture(scope="session")
def one_run(maker: Maker) -> Path:
    """A finished run of tsp_construct that learnt."""
    return maker.run("alone/one")


@pytest.fixture(scope="session")
def many_runs(maker: Maker) -> Path:
    """A folder with two arms on tsp_construct, one of them with an unfinished run, and one on kp_construct."""
    for seed in (1, 2, 3):
        maker.run(f"many/esopt-{seed}", seed=seed)
    for seed in (1, 2):
        maker.run(f"many/eoh-{seed}", seed=seed, method="eoh")
    maker.unfinished("many/eoh-3", seed=3, method="eoh")
    for seed in (1, 2):
        maker.run(f"many/kp-{seed}", "kp_construct", seed=seed)
    return maker.folder / "many"


@pytest.fixture(scope="session")
def barren_run(maker: Maker) -> Path:
    """A run whose model wrote no program."""
    return maker.run("barren/one", write=prose)
