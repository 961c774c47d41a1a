"""The real small model: replies by seed and direction, exact restores, and checkpoints that anyone can load."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_models import an_update
from transformers import AutoModelForCausalLM, AutoTokenizer

from eoh_esopt.models import chat
from eoh_esopt.models.protocol import Request, Sampling, Turn
from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.selftest import self_test
from eoh_esopt.models.transformers_model import TransformersModel
from operators.errors import UserError
from operators.records import Direction

pytestmark = pytest.mark.model

SIGMA = {"full": 5e-3, "norms": 0.06}
ALPHA = {"full": 5e-4, "norms": 0.03}
PROMPT = "Write a Python function that adds two numbers."
PREFILL = '```python\ndef add(a, b):\n    """Add two numbers."""\n    return'
LIMIT = 16


@pytest.fixture(scope="module", params=["full", "norms"])
def scope(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(small_model: Path, scope: str) -> TransformersModel:
    return TransformersModel(small_model, scope=SCOPES[scope], sampling=Sampling(max_new_tokens=LIMIT), max_batch=4)


@pytest.fixture(scope="module")
def tokenizer(small_model: Path) -> Any:
    return AutoTokenizer.from_pretrained(small_model)


def requests(*seeds: int, prefill: str = "", direction: Direction | None = None) -> list[Request]:
    return [Request(PROMPT, prefill, seed, direction) for seed in seeds]


def opened(folder: Path, scope: str = "norms", dtype: str = "auto", limit: int = LIMIT) -> TransformersModel:
    return TransformersModel(folder, scope=SCOPES[scope], sampling=Sampling(max_new_tokens=limit), dtype=dtype)


def test_replies_follow_the_seed(model: TransformersModel) -> None:
    """A resumed run, or one repeated elsewhere, would get other programs."""
    first = model.generate(requests(1, 2, 1))
    assert first == model.generate(requests(1, 2, 1))
    assert first[0] == first[2] != first[1]


def test_directions_change_replies_and_are_gone_afterwards(model: TransformersModel, scope: str) -> None:
    """Directions that do nothing cannot be learnt from; one that stays would score all later candidates."""
    directions = [Direction(seed, SIGMA[scope]) for seed in (5, 6)]
    before, checksum = model.probe(PROMPT, None), model.checksum()
    plain = model.generate(requests(1, 2))
    moved = [model.generate(requests(1, 2, direction=direction)) for direction in directions]
    assert plain != moved[0] != moved[1] != plain
    assert moved[0] == model.generate(requests(1, 2, direction=directions[0]))
    assert np.array_equal(before, model.probe(PROMPT, None))
    assert model.checksum() == checksum
    assert model.generate(requests(1, 2)) == plain


def test_weights_are_restored_when_generation_breaks_off(
    model: TransformersModel, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one failed batch every later candidate would be written by a perturbed model."""
    before = model.probe(PROMPT, None)

    def breaks_off(**arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(model._model, "generate", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        model.generate(requests(1, direction=Direction(5, SIGMA[scope])))
    assert np.array_equal(before, model.probe(PROMPT, None))


def test_batches_share_a_direction_or_carry_one_by_row(model: TransformersModel, scope: str) -> None:
    """A batch with two directions in place would write half of its candidates under the wrong one."""
    one, two = Direction(5, SIGMA[scope]), Direction(6, SIGMA[scope])
    asked = requests(1, 2, direction=one) + requests(3, direction=two) + requests(4, 5, 6, 7, 8)
    batches = model.batches(asked)
    assert [position for batch in batches for position in batch] == list(range(8))
    if scope == "full":
        assert batches == [[0, 1], [2], [3, 4, 5, 6], [7]]
        with pytest.raises(ValueError, match="one direction a batch"):
            model.generate(asked[:3])
    else:
        assert batches == [[0, 1, 2, 3], [4, 5, 6, 7]]
        mixed = model.generate([asked[0], asked[2], *requests(1)])
        assert len({reply.text for reply in mixed}) == 3
    assert model.batches([]) in ([], [[]])


def test_prefilled_replies_end_after_their_function(model: TransformersModel) -> None:
    """Small models go on with tests and talk: tokens for nothing, and code that runs on import."""
    whole, open_ended = model.generate([*requests(3, prefill=PREFILL), *requests(3)])
    assert whole.text.startswith(PREFILL)
    body = whole.text.removeprefix(PREFILL)
    assert chat.cut_after_function(body) == body
    assert "a + b" in body
    assert not whole.truncated
    assert whole.new_tokens < LIMIT
    assert not open_ended.text.startswith(PREFILL)


def test_tokens_are_counted_right(model: TransformersModel, tokenizer: Any) -> None:
    """Runs are compared by their tokens: padding or what follows an end must not be counted."""
    asked = [
        Request("Hi.", "", 1),
        Request(PROMPT * 3, "", 2),
        Request("Add.", PREFILL, 3),
        Request("Reply with the word yes, and with nothing else.", "", 4),
    ]
    for request, reply in zip(asked, model.generate(asked), strict=True):
        text = chat.render(tokenizer, request.prompt, request.prefill)
        assert reply.prompt_tokens == len(tokenizer(text, add_special_tokens=False)["input_ids"])
        written = len(tokenizer(reply.text.removeprefix(request.prefill), add_special_tokens=False)["input_ids"])
        assert written <= reply.new_tokens <= LIMIT
        assert reply.new_tokens == LIMIT or not reply.truncated
        if reply.truncated:
            assert written >= LIMIT - 1
        else:
            assert reply.new_tokens <= written + 3


def test_a_prompt_beyond_the_context_gets_no_reply(model: TransformersModel, tokenizer: Any) -> None:
    """A run must go on after a prompt that grew too long, and count what was read."""
    short = len(tokenizer(chat.render(tokenizer, "Hi.", ""), add_special_tokens=False)["input_ids"])
    long, other = model.generate([Request("word " * 9000, PREFILL, 1), Request("Hi.", "", 2)])
    assert (long.text, long.new_tokens, long.truncated) == (PREFILL, 0, True)
    assert long.prompt_tokens > 9000
    assert other.prompt_tokens == short


def test_global_generators_are_left_alone(model: TransformersModel, scope: str) -> None:
    """A search inside a larger program must not change the numbers that the program draws."""

    def states() -> tuple[str, ...]:
        numpy_state = np.random.get_state()  # noqa: NPY002
        return str(torch.get_rng_state().tolist()), str(random.getstate()), str(pickle.dumps(numpy_state))

    before = states()
    first = model.generate(requests(1, direction=Direction(5, SIGMA[scope])))
    assert states() == before
    torch.manual_seed(1234)
    random.seed(1234)
    assert model.generate(requests(1, direction=Direction(5, SIGMA[scope]))) == first


def test_self_test_passes_and_fails_loudly_where_sigma_is_wrong(model: TransformersModel, scope: str) -> None:
    """A sigma below rounding would spend the whole budget on identical models, one too large on broken ones."""
    checksum = model.checksum()
    assert self_test(model, SIGMA[scope], exact=True) > 0
    for sigma, remedy in ((1e-12, "larger"), (0.0, "larger"), (1e30, "smaller")):
        with pytest.raises(UserError, match=rf"Self-test failed.*{remedy} sigma"):
            self_test(model, sigma, exact=True)
    assert model.checksum() == checksum


def test_self_test_notices_a_revert_that_does_not_restore(model: TransformersModel, scope: str) -> None:
    """Weights that stay perturbed would be learnt as if they were the model's."""
    answers = [model.probe(PROMPT, None) + number for number in range(4)]

    class Drifting:
        def probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
            return answers.pop()

    with pytest.raises(UserError, match="differ after a revert"):
        self_test(Drifting(), SIGMA[scope], exact=True)  # type: ignore[arg-type]


def test_checkpoints_reload_with_plain_transformers(model: TransformersModel, scope: str, tmp_path: Path) -> None:
    """What was learnt must be usable without this program, to the last bit, whether rounded or exact."""
    before = {name: values.clone() for name, values in model._model.state_dict().items()}
    model.apply(an_update(0, alpha=ALPHA[scope]))
    live = {name: values.clone() for name, values in model._model.state_dict().items()}
    assert any(not torch.equal(values, before[name]) for name, values in live.items())
    true = model.weights.snapshot()
    prompt = "Save me."
    for number, float32 in enumerate((False, True, False)):
        folder = tmp_path / str(number)
        model.save(folder, float32=float32)
        loaded = AutoModelForCausalLM.from_pretrained(folder)
        assert loaded.dtype == (torch.float32 if float32 else torch.bfloat16)
        assert loaded.lm_head.weight is loaded.get_input_embeddings().weight
        for name, values in loaded.state_dict().items():
            expected = true.get("model.embed_tokens.weight" if name == "lm_head.weight" else name)
            if expected is None or not float32:
                expected = live[name].to(loaded.dtype)
            assert torch.equal(values, expected), name
        rendered = chat.render(AutoTokenizer.from_pretrained(folder), prompt, "")
        assert rendered == chat.render(model._tokenizer, prompt, "")
        shutil.rmtree(folder)
    assert all(torch.equal(values, live[name]) for name, values in model._model.state_dict().items())


def test_histories_state_what_the_model_was(model: TransformersModel, scope: str) -> None:
    """A history without model, scope and dtype cannot be replayed."""
    stated = model.describe()
    assert stated["model"] == "SmolLM2-135M-Instruct"
    assert (stated["scope"], stated["dtype"], stated["restore"]) == (scope, "bfloat16", "exact")
    assert stated["parameters"] == 134_515_008
    assert stated["scope_elements"] == (134_515_008 if scope == "full" else 61 * 576)


def test_wrong_settings_are_named(small_model: Path, tmp_path: Path) -> None:
    """A mistake must be named before a run begins, in words that say how to mend it."""
    with pytest.raises(UserError, match=r"float8.*auto, float32, bfloat16, float16"):
        opened(small_model, dtype="float8")
    with pytest.raises(UserError, match=r"context is 8192.*smaller reply limit"):
        opened(small_model, limit=8192)
    with pytest.raises(UserError, match="cannot be loaded"):
        opened(tmp_path)


def test_base_models_are_refused(small_model: Path, tmp_path: Path) -> None:
    """A model without a chat template would answer nothing that was asked."""
    settings = json.loads((small_model / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    replace_file(small_model, tmp_path, "tokenizer_config.json", settings)
    (tmp_path / "chat_template.jinja").unlink(missing_ok=True)
    with pytest.raises(UserError, match="no chat template"):
        opened(tmp_path)


def test_quantised_checkpoints_are_refused(small_model: Path, tmp_path: Path) -> None:
    """Packed weights cannot be moved: the user must hear it in one line, not in a traceback."""
    config = json.loads((small_model / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    replace_file(small_model, tmp_path, "config.json", config)
    with pytest.raises(UserError, match=r"cannot be loaded|can be moved"):
        opened(tmp_path)


def replace_file(source: Path, folder: Path, name: str, content: object) -> None:
    """The checkpoint of `source` in `folder`, with one JSON file of its own."""
    for path in source.iterdir():
        if path.name != name:
            (folder / path.name).symlink_to(path)
    (folder / name).write_text(json.dumps(content))


TALK = (Turn("system", "You count."), Turn("user", "Count to nine in digits, with commas."))


def test_rows_end_at_their_own_stop_strings(small_model: Path) -> None:
    """An action would be followed by what the model makes up about its effect, or another row be cut for it."""
    model = opened(small_model, limit=24)
    free, cut, long, never = model.generate(
        [
            Request(TALK, "", 3),
            Request(TALK, "", 3, stop=("4",)),
            Request(TALK, "", 3, stop=("a string that is longer than the tail of a begun reply", "4")),
            Request(TALK, "", 3, stop=("#",)),
        ]
    )
    assert "4" in free.text
    assert cut.text == long.text == free.text.partition("4")[0]
    assert not cut.truncated
    assert 0 < cut.new_tokens < free.new_tokens
    assert never == free


def test_a_conversation_is_what_the_template_writes_of_it(small_model: Path, tokenizer: Any) -> None:
    """The model would answer its first turn again and again."""
    model = opened(small_model)
    talk = (*TALK, Turn("assistant", "1, 2"), Turn("user", "Go on."))
    [reply] = model.generate([Request(talk, "", 1)])
    messages = [{"role": turn.role, "content": turn.text} for turn in talk]
    assert reply.prompt_tokens == len(tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"])
    assert model.generate([Request(TALK, "", 1)])[0].text != reply.text


@torch.no_grad()
def test_a_penalty_is_taken_from_the_models_own_logits(small_model: Path, tokenizer: Any) -> None:
    """The published sampling would draw as if there were no penalty, or another one."""
    penalty, prompt = 1.0, "Write the word yes ten times."
    sampling = Sampling(temperature=0, max_new_tokens=LIMIT, presence_penalty=penalty)
    model = TransformersModel(small_model, scope=SCOPES["norms"], sampling=sampling, dtype="float32")
    [reply] = model.generate([Request(prompt, "", 1)])
    tokens = chat.encode(tokenizer, [chat.render(tokenizer, prompt, "")])[0]
    drawn: list[int] = []
    other = 0
    while len(drawn) < reply.new_tokens:
        logits = model._model(torch.tensor([tokens + drawn])).logits[0, -1]
        favourite = int(logits.argmax())
        for token in set(drawn):
            logits[token] -= penalty
        drawn.append(int(logits.argmax()))
        other += drawn[-1] != favourite
    assert other, "the penalty never mattered"
    assert tokenizer.decode(drawn, skip_special_tokens=True) == reply.text
