"""The real sandbox on a small problem, for the tests of the search."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec

SMALL_TSP = ProblemSpec("problems.tsp_construct:TspConstruct", {"n_instances": 4, "size": 12})


@pytest.fixture(scope="session")
def evaluator() -> Iterator[Evaluator]:
    """Two workers."""
    with Evaluator(SMALL_TSP, workers=2, limits=Limits(wall_s=10)) as two:
        yield two


@pytest.fixture(scope="session")
def lone_evaluator() -> Iterator[Evaluator]:
    """One worker."""
    with Evaluator(SMALL_TSP, workers=1, limits=Limits(wall_s=10)) as one:
        yield one
