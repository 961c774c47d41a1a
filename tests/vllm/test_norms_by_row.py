"""Scope `norms` in vLLM: replies of one batch under directions of their own, as transformers writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import families
import numpy as np
import pytest

from eoh_esopt.models.protocol import Reply, Request, Sampling
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.selftest import self_test
from eoh_esopt.models.transformers_model import TransformersModel
from operators.records import Direction, Update

PROMPT = "Tell me something about short tours that few people know. " * 12
SIGMA = 0.06
DIRECTIONS = [Direction(2**64 - 5, SIGMA), Direction(7, SIGMA), Direction(7, -SIGMA)]
MIXED = [DIRECTIONS[0], None, *DIRECTIONS[1:], None, DIRECTIONS[0]]
UPDATE = Update(0, (3, 2**63 + 4, 5), (1.0, 0.0, 0.5), (1.0, -1.0, 0.2), 5e-2, 1e-3)
GREEDY = Sampling(temperature=0.0, max_new_tokens=40)


@pytest.fixture(scope="module")
def by_row(small_model: Path) -> Iterator[Any]:
    """The small model in vLLM, scope norms, greedy in float32."""
    from eoh_esopt.models.vllm.model import VllmModel

    sizes: dict[str, Any] = {"max_model_len": 512, "max_batch": 8}
    model = VllmModel(small_model, scope="norms", sampling=GREEDY, dtype="float32", **sizes)
    yield model
    model.close()


def requests(*directions: Direction | None, prompt: str = PROMPT) -> list[Request]:
    return [Request(prompt, "", 1, direction) for direction in directions]


def alone(model: Any, direction: Direction | None, prompt: str = PROMPT) -> Reply:
    """The reply with the gains themselves set to the direction."""
    with model._under(direction):
        [reply] = model.generate(requests(None, prompt=prompt))
    found: Reply = reply
    return found


def test_a_batch_holds_any_directions(by_row: Any) -> None:
    """Directions would be written one after the other, at a fraction of the speed."""
    assert by_row.describe()["by_row"]
    assert by_row.batches(requests(*MIXED)) == [list(range(6))]
    assert by_row.batches(requests(*MIXED * 2)) == [list(range(8)), list(range(8, 12))]


def test_replies_by_row_are_those_of_one_direction_at_a_time(by_row: Any) -> None:
    """Rewards would be measured under other gains than updates move. Equal prompts also share no cache by mistake."""
    replies = by_row.generate(requests(*MIXED))
    assert replies == [alone(by_row, direction) for direction in MIXED]
    assert len({reply.text for reply in replies}) == 4
    assert by_row.generate(requests(*MIXED[::-1])) == replies[::-1]


def test_replies_by_row_are_those_of_transformers(by_row: Any, small_model: Path) -> None:
    """A search under vLLM would learn from other directions than the same one in transformers."""
    other = TransformersModel(small_model, scope=get_scope("norms"), sampling=GREEDY, dtype="float32")
    assert by_row.generate(requests(*MIXED)) == other.generate(requests(*MIXED))


def test_a_direction_meets_no_cache_of_another(by_row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two equal prompts would be read under the first one's direction."""
    cached: list[int] = []
    write = by_row._write

    def watched(*arguments: Any) -> Any:
        outputs = write(*arguments)
        cached.extend(one.num_cached_tokens or 0 for one in outputs)
        return outputs

    monkeypatch.setattr(by_row, "_write", watched)
    by_row.generate(requests(None, *DIRECTIONS))
    assert cached == [0] * 4
    by_row.generate(requests(*DIRECTIONS[:1] * 2))
    assert cached[4] == 0 < cached[5], "the cache is in use, so keeping directions apart in it is no idle care"


def test_directions_leave_nothing_behind(by_row: Any) -> None:
    """What is left of a direction would be learnt as the model's."""
    before, checksum = by_row.probe(PROMPT, None), by_row.checksum()
    by_row.generate(requests(*DIRECTIONS))
    assert np.array_equal(by_row.probe(PROMPT, None), before)
    assert self_test(by_row, SIGMA, exact=True) > 0
    assert by_row.checksum() == checksum


def test_a_direction_does_to_logits_what_it_does_to_the_gains(by_row: Any) -> None:
    """Replies of a few tokens could be equal by chance."""
    plain = by_row.probe(PROMPT, None)
    for direction in DIRECTIONS:
        rows = by_row.probe(PROMPT, direction)
        with by_row._under(direction):
            gains = by_row.probe(PROMPT, None)
        assert np.abs(rows - gains).max() < 0.01 * np.abs(gains - plain).max()


def test_a_batch_that_is_broken_off_leaves_no_request(by_row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies of a batch that was given up would run on beside the next one's, and count as its forward passes."""
    replies = by_row.generate(requests(*MIXED))
    monkeypatch.setattr(by_row._llm, "wait_for_completion", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        by_row.generate(requests(*MIXED))
    monkeypatch.undo()
    assert by_row.generate(requests(*MIXED)) == replies


def test_where_hooks_do_not_run_directions_take_turns(by_row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under CUDA graphs every reply would be the unperturbed model's, and nothing would say so."""
    replies = by_row.generate(requests(*MIXED))
    call = by_row._llm.collective_rpc

    def graphs(method: str, *arguments: Any, **named: Any) -> Any:
        if method in ("es_open_rows", "es_report_rows"):
            return [{"steps": 0, "missed": []}]
        return call(method, *arguments, **named)

    monkeypatch.setattr(by_row._llm, "collective_rpc", graphs)
    with pytest.raises(RuntimeError, match="0 of at least"):
        by_row.generate(requests(*MIXED))
    with pytest.warns(UserWarning, match="one direction at a time: its layers were hooked in 0 of at least 2"):
        monkeypatch.setattr(by_row, "_gains_by_row", by_row._rows_work())
    batches = by_row.batches(requests(*MIXED))
    assert batches == [[0], [1], [2], [3], [4], [5]]
    assert [by_row.generate([requests(*MIXED)[i] for i in batch])[0] for batch in batches] == replies


def test_an_update_gives_the_same_weights_as_in_transformers(by_row: Any, small_model: Path) -> None:
    """What was learnt by row could be used nowhere else. Runs last on this engine: it moves the weights for good."""
    other = TransformersModel(small_model, scope=get_scope("norms"), sampling=GREEDY, dtype="float32")
    before = by_row.probe(PROMPT, DIRECTIONS[0])
    by_row.apply(UPDATE)
    other.apply(UPDATE)
    assert by_row.checksum() == other.checksum()
    assert not np.array_equal(by_row.probe(PROMPT, DIRECTIONS[0]), before)
    assert by_row.generate(requests(*MIXED)) == other.generate(requests(*MIXED))


def test_every_part_of_a_split_model_scales_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each device of a split model would run under other gains. This family also has norms of single heads."""
    from eoh_esopt.models.vllm.model import VllmModel

    cores = min(2, os.cpu_count() or 1)
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "|".join(str(rank % cores) for rank in range(2)))
    folder = families.build("qwen3", tmp_path / "tiny")
    other = TransformersModel(folder, scope=get_scope("norms"), sampling=GREEDY, dtype="float32")
    sizes: dict[str, Any] = {"tensor_parallel": 2, "max_model_len": 256, "max_batch": 8}
    model = VllmModel(folder, scope="norms", sampling=GREEDY, dtype="float32", **sizes)
    try:
        assert model.describe()["by_row"]
        prompt = "Add two numbers."
        replies = model.generate(requests(*MIXED, prompt=prompt))
        assert replies == [alone(model, direction, prompt) for direction in MIXED]
        assert len({reply.text for reply in replies}) == 4
        model.apply(UPDATE)
        other.apply(UPDATE)
        assert model.checksum() == other.checksum()
    finally:
        model.close()
