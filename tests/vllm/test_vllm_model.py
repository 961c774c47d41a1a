"""The in-process vLLM backend on real weights: directions, restore, updates, caches, checkpoints, histories."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eoh_esopt.models import chat
from eoh_esopt.models.protocol import Request, Sampling
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.selftest import self_test
from eoh_esopt.models.transformers_model import TransformersModel
from operators.errors import UserError
from operators.records import Direction, Update

PROMPT = "Write a Python function that adds two numbers. " * 12
DIRECTION = Direction(2**64 - 5, 1e-2)
UPDATE = Update(0, (3, 2**63 + 4, 5), (1.0, 0.0, 0.5), (1.0, -1.0, 0.2), 5e-2, 1e-3)


def requests(*seeds: int, direction: Direction | None = None, prefill: str = "") -> list[Request]:
    return [Request(PROMPT, prefill, seed, direction) for seed in seeds]


def test_all_weights_are_covered_and_the_hash_is_that_of_transformers(served: Any, small_model: Path) -> None:
    """A packed layer would be missed without a word, and histories could not be compared."""
    other = TransformersModel(small_model, scope=get_scope("full"), sampling=Sampling(), dtype="bfloat16")
    described = served.describe()
    assert described["parameters"] == described["scope_elements"] == other.parameters
    assert served.checksum() == other.checksum()


def test_directions_move_the_logits_and_a_revert_brings_back_the_same_bits(served: Any) -> None:
    """Nothing could be learnt, or what is left of a direction would be learnt as the model's."""
    before = served.checksum()
    assert self_test(served, 1e-3, exact=True) > 0
    assert served.checksum() == before


def test_replies_depend_on_their_seed_and_direction_alone(served: Any) -> None:
    """A resumed run would differ from an uninterrupted one, and a stale cache would hide a direction."""
    plain = served.generate(requests(1, 2, 1))
    assert plain[0] == plain[2] != plain[1]
    assert served.generate(requests(1, 2, 1)) == plain
    moved = served.generate(requests(1, 2, direction=DIRECTION))
    assert moved != plain[:2]
    assert served.generate(requests(1, 2, 1)) == plain
    assert served.generate(requests(1, 2, direction=DIRECTION)) == moved
    with pytest.raises(ValueError, match="one direction"):
        served.generate([*requests(1), *requests(1, direction=DIRECTION)])


def test_fresh_requests_see_a_direction_in_spite_of_the_prefix_cache(served: Any) -> None:
    """A long prompt's cached activations would answer for weights that are gone."""
    one = served.generate(requests(7))
    [tokens] = chat.encode(served._tokenizer, [chat.render(served._tokenizer, PROMPT, "")])
    with served._under(Direction(9, 0.05)):
        two = served._llm.generate([{"prompt_token_ids": tokens}], [served._params(requests(7)[0], 24)], use_tqdm=False)
    assert two[0].num_cached_tokens in (0, None)
    assert two[0].outputs[0].text != one[0].text
    assert served.generate(requests(7)) == one


def test_a_prefilled_reply_ends_with_its_function(served: Any) -> None:
    """Every reply would run on to the token limit, which costs most of the time."""
    prefill = "```python\ndef add(a, b):\n    return a + b"
    replies = served.generate(requests(1, 2, 3, prefill=prefill))
    for reply in replies:
        assert reply.text.startswith(prefill)
        assert all(line[:1] in ("", " ", "\t") for line in reply.text.removeprefix(prefill).split("\n")[1:])


def test_a_prompt_beyond_the_context_is_a_truncated_reply(served: Any) -> None:
    """One long parent would end the whole batch with an error of the engine."""
    long, short = Request("word " * 2000, "", 1), Request("Hello", "", 1)
    replies = served.generate([long, short])
    assert (replies[0].text, replies[0].new_tokens, replies[0].truncated) == ("", 0, True)
    assert replies[1].new_tokens > 0


def test_more_prompts_than_one_step_reads_are_answered(served: Any) -> None:
    """Conversations of several agents fill a step; half a prompt would end the engine, and the training with it."""
    many = [Request(f"{number}. {PROMPT * 7}", "", number, new_tokens=4) for number in range(7)]
    replies = served.generate(many)
    assert sum(one.prompt_tokens for one in replies) > 4_096, "vLLM's own limit of a step"
    assert all(one.new_tokens for one in replies)


def test_weights_come_back_after_an_error(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one failed batch every later candidate would be written by a perturbed model."""
    before = served.probe(PROMPT, None)
    monkeypatch.setattr(served._llm, "wait_for_completion", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        served.generate(requests(1, direction=DIRECTION))
    monkeypatch.undo()
    assert np.array_equal(before, served.probe(PROMPT, None))


def test_a_history_made_here_replays_on_transformers_and_the_checkpoint_loads(
    served: Any, small_model: Path, tmp_path: Path
) -> None:
    """What was learnt under vLLM could be used nowhere else. Runs last: it moves the weights for good."""
    other = TransformersModel(small_model, scope=get_scope("full"), sampling=Sampling(), dtype="bfloat16")
    served.apply(UPDATE)
    other.apply(UPDATE)
    assert served.checksum() == other.checksum()
    served.save(tmp_path / "adapted", float32=True)
    again = TransformersModel(tmp_path / "adapted", scope=get_scope("full"), sampling=Sampling(), dtype="float32")
    assert again.checksum() == served.checksum()
    served.save(tmp_path / "rounded")
    rounded = TransformersModel(tmp_path / "rounded", scope=get_scope("norms"), sampling=Sampling())
    assert rounded.describe()["dtype"] == "bfloat16"
    live = {name: value.to(torch.bfloat16) for name, value in other.weights.snapshot().items()}
    for name, value in rounded._model.named_parameters():
        assert torch.equal(value, live[name]), name


def test_quantised_checkpoints_are_refused(tmp_path: Path) -> None:
    """Directions would move a part of the model without a word."""
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}')
    from eoh_esopt.models.vllm.model import VllmModel

    with pytest.raises(UserError, match="cannot"):
        VllmModel(tmp_path, scope="full", sampling=Sampling())


def test_hashes_are_of_names_shapes_and_bytes() -> None:
    """Two backends would agree although a tensor has another name."""
    from eoh_esopt.models.digest import digest

    values = torch.arange(3, dtype=torch.float32)
    expected = hashlib.sha256(b"a (3,) torch.float32\n" + values.numpy().tobytes()).hexdigest()
    assert digest([("a", (3,), values)]) == expected
