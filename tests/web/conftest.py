"""Real headless Chromium. Without it these tests are skipped: scripts/test_web.sh makes what they need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from operators.errors import UserError
from train_adapters.webarena.adapter import WebAdapter, make_adapter
from train_adapters.webarena.installed import BROWSERS, SCORER, chromium, python_of


def _missing() -> str:
    try:
        for which in (BROWSERS, SCORER):
            python_of(which)
        chromium()
    except UserError as error:
        return str(error)
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is in this folder where there is no browser."""
    missing = _missing()
    for item in items:
        if missing and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"{missing} See scripts/test_web.sh"))


@pytest.fixture(scope="module")
def local() -> Iterator[WebAdapter]:
    """The local sites, in two browsers that show the accessibility tree."""
    adapter = make_adapter("local", browsers=2, view="axtree")
    yield adapter
    adapter.close()
