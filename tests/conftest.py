"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from eoh_esopt.models.fetch import resolve
from eoh_esopt.models.progress import LineProgress


@pytest.fixture(scope="session")
def small_model() -> Path:
    """The folder of SmolLM2-135M-Instruct, downloaded and converted where the cache has none yet."""
    return resolve("SmolLM2-135M-Instruct", progress=LineProgress())
