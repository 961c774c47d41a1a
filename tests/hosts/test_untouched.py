"""Borrowed names and global state are given back."""

from __future__ import annotations

import multiprocessing
import random
import warnings
from types import ModuleType

import numpy as np
import pytest

from eoh_esopt.hosts.untouched import swapped, untouched


def test_names_are_given_back_also_after_an_error() -> None:
    """Without it a search that fails leaves the host's module changed for all that come after it."""
    module = ModuleType("host")
    vars(module).update(first=1, second=2)
    seen: list[object] = []

    def fail() -> None:
        with swapped(module, first=10, second=20):
            seen.extend((module.first, module.second))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [10, 20]
    assert (module.first, module.second) == (1, 2)


def test_names_that_are_not_there_are_not_made_up() -> None:
    """Without it a host that has moved a class would be patched where nobody looks."""
    module = ModuleType("host")
    with pytest.raises(AttributeError), swapped(module, missing=1):
        pass
    assert not hasattr(module, "missing")


def test_global_state_is_as_before() -> None:
    """Without it a search would silence the user's warnings, or change the random numbers after it."""
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - what hosts use
    expected = random.random(), np.random.rand()  # noqa: NPY002
    filters, method = list(warnings.filters), multiprocessing.get_start_method(allow_none=True)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    with untouched():
        random.seed(9)
        np.random.seed(9)  # noqa: NPY002
        warnings.filterwarnings("ignore")
        multiprocessing.set_start_method("spawn", force=True)
    assert (random.random(), np.random.rand()) == expected  # noqa: NPY002
    assert list(warnings.filters) == filters
    assert multiprocessing.get_start_method(allow_none=True) == method
