"""Real vLLM on the CPU. Without it these tests are skipped: scripts/test.sh runs them in an environment of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_FOUND = find_spec("vllm")
INSTALLED = _FOUND is not None and _FOUND.origin is not None  # this folder alone also answers to the name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is in this folder where there is no vLLM."""
    if not INSTALLED:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="vLLM is not installed here: see scripts/test_vllm.sh"))


os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "0-1" if (os.cpu_count() or 1) > 1 else "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def served(small_model: Path) -> Iterator[Any]:
    """The small model in vLLM, scope full."""
    from eoh_esopt.models.protocol import Sampling
    from eoh_esopt.models.vllm.model import VllmModel

    sampling = Sampling(temperature=0.8, max_new_tokens=24)
    model = VllmModel(small_model, scope="full", sampling=sampling, dtype="bfloat16", max_model_len=1024, max_batch=8)
    yield model
    model.close()
