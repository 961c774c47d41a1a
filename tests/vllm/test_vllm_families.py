"""vLLM on tiny checkpoints of the families, also split over two processes: one history on every backend."""

from __future__ import annotations

import os
from pathlib import Path

import families
import numpy as np
import pytest

from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.transformers_model import TransformersModel
from operators.records import Direction, Update

UPDATE = Update(0, (3, 2**63 + 4, 5), (1.0, 0.0, 0.5), (1.0, -1.0, 0.2), 5e-2, 1e-3)
PROMPT = "Write a function that adds two numbers."
CASES = [
    ("llama-3.1", "bfloat16", 1, "full"),
    ("llama-3.1", "bfloat16", 2, "full"),
    ("qwen2.5", "float32", 2, "full"),
    ("qwen3", "bfloat16", 1, "norms"),
]


@pytest.mark.parametrize(("family", "dtype", "split", "scope"), CASES)
def test_weights_and_updates_are_those_of_transformers(
    family: str, dtype: str, split: int, scope: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A history made under vLLM, fused or split over devices, would replay to other weights elsewhere."""
    from eoh_esopt.models.vllm.model import VllmModel

    cores = min(2, os.cpu_count() or 1)
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "|".join(str(rank % cores) for rank in range(split)))
    folder = families.build(family, tmp_path / family)
    sampling = Sampling(temperature=0.0, max_new_tokens=8)
    other = TransformersModel(folder, scope=get_scope(scope), sampling=sampling, dtype=dtype)
    model = VllmModel(
        folder, scope=scope, sampling=sampling, dtype=dtype, max_model_len=256, tensor_parallel=split, max_batch=4
    )
    try:
        assert model.describe()["scope_elements"] == other.weights.elements
        assert model.checksum() == other.checksum()
        before = model.probe(PROMPT, None)
        assert not np.array_equal(before, model.probe(PROMPT, Direction(5, 1e-2)))
        assert np.array_equal(before, model.probe(PROMPT, None))
        model.apply(UPDATE)
        other.apply(UPDATE)
        assert model.checksum() == other.checksum()
        model.save(tmp_path / "adapted", float32=True)
    finally:
        model.close()
    again = TransformersModel(tmp_path / "adapted", scope=get_scope(scope), sampling=sampling, dtype="float32")
    live = {name: value.float() for name, value in other._model.named_parameters()} | other.weights.snapshot()
    for name, value in again._model.named_parameters():
        assert np.array_equal(value.detach().numpy(), live[name].detach().numpy()), name
