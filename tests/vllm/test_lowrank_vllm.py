"""Low-rank noise in vLLM: a population as adapters of one batch, and histories that mean the same everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import families
import numpy as np
import pytest

from eoh_esopt.models.protocol import Request, Sampling
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.selftest import self_test
from eoh_esopt.models.transformers_model import TransformersModel
from operators.records import Direction, Update

PROMPT = "Write a Python function that adds two numbers. " * 12
SIGMA = 5e-3
DIRECTIONS = [Direction(2**64 - 5, SIGMA), Direction(7, SIGMA), Direction(7, -SIGMA)]
UPDATE = Update(0, (3, 2**63 + 4, 5), (1.0, 0.0, 0.5), (1.0, -1.0, 0.2), 5e-2, 1e-3)


@pytest.fixture(scope="module")
def adapted(small_model: Path) -> Iterator[Any]:
    """The small model in vLLM, with low-rank noise."""
    from eoh_esopt.models.vllm.model import VllmModel

    sampling = Sampling(temperature=0.8, max_new_tokens=24)
    sizes: dict[str, Any] = {"max_model_len": 512, "max_batch": 8}
    model = VllmModel(small_model, scope="full", sampling=sampling, dtype="bfloat16", rank=2, **sizes)
    yield model
    model.close()


def requests(*directions: Direction | None, seed: int = 1) -> list[Request]:
    return [Request(PROMPT, "", seed, direction) for direction in directions]


def probe_in_place(model: Any, direction: Direction) -> Any:
    """With the low-rank noise added to the weights themselves."""
    with model._under(direction):
        return model.probe(PROMPT, None)


def test_the_same_matrices_are_moved_as_in_transformers(adapted: Any, small_model: Path) -> None:
    """Else a history means other weights, and what rows run under is not what updates move."""
    scope = get_scope("full", 2)
    other = TransformersModel(small_model, scope=scope, sampling=Sampling(), dtype="bfloat16")
    described, expected = adapted.describe(), other.describe()
    for name in ("scope", "noise", "rank", "scope_elements", "parameters"):
        assert described[name] == expected[name]
    assert set(adapted._facts[0]["masters"]) == {tensor.name for tensor in other.weights.tensors}
    assert adapted.checksum() == other.checksum()


def test_an_adapter_does_what_its_direction_does_to_the_weights(adapted: Any) -> None:
    """Else rewards are measured under other weights than the update assumes."""
    plain = adapted.probe(PROMPT, None)
    for direction in DIRECTIONS:
        by_adapter, in_place = adapted.probe(PROMPT, direction), probe_in_place(adapted, direction)
        error, effect = np.abs(by_adapter - in_place).mean(), np.abs(in_place - plain).mean()
        assert error < 0.25 * effect, (error, effect)
    assert np.array_equal(adapted.probe(PROMPT, None), plain)


def test_adapters_move_the_logits_and_leave_the_weights(adapted: Any) -> None:
    """Else nothing can be learnt, or what is left of a direction is learnt as the model's."""
    before = adapted.checksum()
    assert self_test(adapted, 1e-3, exact=True) > 0
    assert adapted.checksum() == before
    assert not adapted._llm.llm_engine.list_loras()


def test_a_batch_holds_any_directions_and_replies_depend_on_them(adapted: Any) -> None:
    """Else one direction is written after the other, or a reply is written under its neighbour's."""
    asked = requests(*DIRECTIONS, *DIRECTIONS)
    assert adapted.batches([*requests(None), *asked]) == [[0], [1, 2, 3, 4, 5, 6]]
    replies = adapted.generate(asked)
    assert replies[:3] == replies[3:]
    assert len({reply.text for reply in replies}) == 3
    assert adapted.generate(asked) == replies
    assert adapted.generate(requests(*DIRECTIONS[::-1], *DIRECTIONS[::-1])) == replies[2::-1] * 2
    assert adapted.generate(requests(None))[0].text not in {reply.text for reply in replies}


def test_a_low_rank_update_gives_the_same_weights_as_in_transformers(adapted: Any, small_model: Path) -> None:
    """Else what was learnt under vLLM can be used nowhere else. Runs last: it moves the weights for good."""
    scope = get_scope("full", 2)
    other = TransformersModel(small_model, scope=scope, sampling=Sampling(), dtype="bfloat16")
    before = adapted.probe(PROMPT, DIRECTIONS[0])
    adapted.apply(UPDATE)
    other.apply(UPDATE)
    assert adapted.checksum() == other.checksum()
    assert not np.array_equal(adapted.probe(PROMPT, DIRECTIONS[0]), before)


def test_adapters_are_split_with_their_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each GPU of a split model explores with noise of its own, or with that of the wrong rows."""
    from eoh_esopt.models.vllm.model import VllmModel

    cores = min(2, os.cpu_count() or 1)
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "|".join(str(rank % cores) for rank in range(2)))
    folder, sampling = families.build("qwen2.5", tmp_path / "tiny"), Sampling(max_new_tokens=8)
    other = TransformersModel(folder, scope=get_scope("full", 1), sampling=sampling)
    sizes: dict[str, Any] = {"tensor_parallel": 2, "max_model_len": 256, "max_batch": 4}
    model = VllmModel(folder, scope="full", sampling=sampling, rank=1, **sizes)
    try:
        plain, direction = model.probe("Add two numbers.", None), Direction(7, 0.05)
        by_adapter = model.probe("Add two numbers.", direction)
        with model._under(direction):
            in_place = model.probe("Add two numbers.", None)
        assert np.abs(by_adapter - in_place).mean() < 0.1 * np.abs(in_place - plain).mean()
        model.apply(UPDATE)
        other.apply(UPDATE)
        assert model.checksum() == other.checksum()
    finally:
        model.close()
