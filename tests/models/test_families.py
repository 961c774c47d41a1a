"""Every family, from tiny random checkpoints: what moves, under which names, what stays, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from families import CONTEXT, FAMILIES, UNTRAINED, build
from safetensors.torch import load_file, save_file
from tiny_models import an_update
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, Qwen3MoeConfig, Qwen3MoeForCausalLM

from eoh_esopt.models.chat import PLAIN, ChatSettings
from eoh_esopt.models.checkpoint import stored_tensors
from eoh_esopt.models.local import local_model
from eoh_esopt.models.names import checkpoint_names
from eoh_esopt.models.protocol import Reply, Request, Sampling
from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.selftest import self_test
from eoh_esopt.models.transformers_model import TransformersModel
from eoh_esopt.models.weights import ScopedWeights
from operators.errors import UserError
from operators.noise import noise
from operators.records import Direction

SIGMA, ALPHA = {"full": 1e-2, "norms": 0.1}, {"full": 0.01, "norms": 0.05}
EXTRA_RMS_GAINS = {"qwen3": 4, "qwen3.5-text": 3, "qwen3.5": 3}
"""Gains besides the usual five: of queries and keys in every attention, of the output of a linear attention."""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("families")
    return {name: build(name, root / name) for name in FAMILIES}


def opened(
    folder: Path,
    scope: str = "full",
    dtype: str = "auto",
    *,
    limit: int = 8,
    temperature: float = 0.8,
    settings: ChatSettings = PLAIN,
) -> TransformersModel:
    sampling = Sampling(max_new_tokens=limit, temperature=temperature)
    return TransformersModel(folder, scope=SCOPES[scope], sampling=sampling, dtype=dtype, settings=settings)


def trained(folder: Path) -> set[str]:
    """Names of the tensors in a checkpoint that belong to its text model."""
    return {name for name in stored_tensors(folder) if not name.startswith(UNTRAINED)}


def copies(model: TransformersModel) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.weights.live.items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_weight_of_the_text_model_goes_by_its_name_in_the_files(
    checkpoints: dict[str, Path], family: str
) -> None:
    """Noise is keyed by names: under module names a history would mean other weights in another backend."""
    model = opened(checkpoints[family])
    assert {tensor.name for tensor in model.weights.tensors} == trained(checkpoints[family])
    assert model.weights.live.keys() == trained(checkpoints[family])
    assert model.weights.elements == model.parameters
    tied = family in ("qwen2.5", "qwen3.5")
    assert ("lm_head.weight" in model.weights.live) is not tied
    model = opened(checkpoints[family], "norms")
    gains = {tensor.name for tensor in model.weights.tensors}
    assert gains == {name for name in trained(checkpoints[family]) if "norm" in name}
    assert len(gains) == 5 + EXTRA_RMS_GAINS.get(family, 0)
    assert model.weights.live.keys() == trained(checkpoints[family])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("scope", ["full", "norms"])
@pytest.mark.parametrize("family", FAMILIES)
def test_directions_come_and_go_and_updates_stay(
    checkpoints: dict[str, Path], family: str, scope: str, dtype: str
) -> None:
    """A layer type that is not restored, or never moves, would spoil every candidate after the first."""
    model = opened(checkpoints[family], scope, dtype)
    before, checksum = copies(model), model.checksum()
    assert self_test(model, SIGMA[scope], exact=True) > 0
    model.weights.perturb(Direction(3, SIGMA[scope]))
    moved = {name for name, values in copies(model).items() if not torch.equal(values, before[name])}
    assert moved == {tensor.name for tensor in model.weights.tensors}
    model.weights.restore()
    assert same(copies(model), before)
    assert model.checksum() == checksum
    model.apply(an_update(0, alpha=ALPHA[scope]))
    after = copies(model)
    assert {name for name in after if not torch.equal(after[name], before[name])} == moved
    assert model.checksum() != checksum


def test_the_noise_of_a_renamed_tensor_is_that_of_its_stored_name(checkpoints: dict[str, Path]) -> None:
    """A multimodal checkpoint's text model is loaded under shorter names: noise by those could not be replayed."""
    model = opened(checkpoints["qwen3.5"], dtype="float32")
    name = "model.language_model.layers.1.self_attn.q_proj.weight"
    values = model._model.get_parameter("model.layers.1.self_attn.q_proj.weight")
    before = values.detach().clone()
    model.weights.perturb(Direction(9, 0.5))
    expected = torch.from_numpy(noise(9, name, 0, values.numel())).reshape(values.shape) * 0.5
    assert torch.equal(values, before + expected)


@pytest.mark.parametrize("scope", ["full", "norms"])
def test_vision_weights_are_left_alone_where_they_are_loaded_too(checkpoints: dict[str, Path], scope: str) -> None:
    """Else a search on text wrecks what the model sees, or its checksum depends on how it was loaded."""
    folder = checkpoints["qwen3.5"]
    whole = AutoModelForImageTextToText.from_pretrained(folder).requires_grad_(False)
    weights = ScopedWeights(whole, SCOPES[scope], names=checkpoint_names(whole, folder, stored_tensors(folder)))
    text = opened(folder, scope)
    before = {name: values.clone() for name, values in whole.state_dict().items() if "visual" in name}
    assert len(before) > 20
    assert weights.checksum() == text.checksum()
    for moved in (weights, text.weights):
        moved.perturb(Direction(3, SIGMA[scope]))
        moved.restore()
        moved.update(an_update(0, alpha=ALPHA[scope]))
    assert weights.checksum() == text.checksum()
    assert all(torch.equal(values, before[name]) for name, values in whole.state_dict().items() if name in before)


PROMPTS = ("Add.", "Write a Python function that adds two numbers.", "x" * 60)


@pytest.mark.parametrize("scope", ["full", "norms"])
@pytest.mark.parametrize("family", FAMILIES)
def test_batches_are_written_by_seed(checkpoints: dict[str, Path], family: str, scope: str) -> None:
    """A run repeated or resumed elsewhere would get other programs; or all rows of a batch the same."""
    model = opened(checkpoints[family], scope)
    direction = Direction(5, SIGMA[scope])
    batch = [Request(prompt, "", seed, direction) for seed, prompt in enumerate((*PROMPTS, PROMPTS[2]))]
    first = model.generate(batch)
    assert first == model.generate(batch)
    assert len({reply.text for reply in first}) == len(batch)
    assert all(0 < reply.new_tokens <= 8 for reply in first)
    assert first != model.generate([Request(one.prompt, "", one.seed) for one in batch])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_reply_does_not_depend_on_the_other_rows(checkpoints: dict[str, Path], family: str) -> None:
    """Padding that layers see, of attention or of a linear attention, would make short prompts another task."""
    model = opened(checkpoints[family], dtype="float32", temperature=0)
    batch = [Request(prompt, "", 1) for prompt in PROMPTS]
    assert model.generate(batch) == [model.generate([one])[0] for one in batch]


def test_a_prompt_beyond_the_context_costs_only_its_own_reply(checkpoints: dict[str, Path]) -> None:
    """One parent that grew too long would silence the whole batch, or cut its other replies short."""
    model = opened(checkpoints["qwen3"], limit=64, temperature=0)
    short, long = Request("Add.", "", 1), Request("é" * CONTEXT, "", 2)
    alone = model.generate([short])
    nearly = Request("~" * (CONTEXT - alone[0].prompt_tokens - 6), "", 3)
    [none, rest, some] = model.generate([long, short, nearly])
    assert none == Reply("", none.prompt_tokens, 0, truncated=True)
    assert none.prompt_tokens > CONTEXT
    assert rest.new_tokens == alone[0].new_tokens == 64
    assert some.prompt_tokens + some.new_tokens <= CONTEXT
    assert 0 < some.new_tokens < 64
    assert some.truncated
    assert model.generate([long]) == [none]


def test_stop_strings_end_replies(checkpoints: dict[str, Path]) -> None:
    """A model that goes on after its answer costs tokens, and its talk is taken for code."""
    asked = [Request("Add.", "", seed) for seed in range(4)]
    whole = opened(checkpoints["qwen2.5"], limit=32).generate(asked)
    longest = max(range(4), key=lambda i: len(whole[i].text))
    text = whole[longest].text
    stop = text[9:12]
    settings = ChatSettings(stop=("no such text", stop))
    cut = opened(checkpoints["qwen2.5"], limit=32, settings=settings).generate(asked)
    assert cut[longest].text == text[: text.index(stop)]
    assert cut[longest].new_tokens < whole[longest].new_tokens
    assert not cut[longest].truncated
    assert [one.text for one in cut] == [one.text.partition(stop)[0] for one in whole]


def test_thoughts_are_marked_as_such(checkpoints: dict[str, Path]) -> None:
    """Where the template opens the thought, the reply alone looks like an answer, and drafts in it like the code."""
    settings = ChatSettings(thinking=True)
    for family, tag in (("qwen3.5", "<think>\n"), ("qwen3", "")):
        model = opened(checkpoints[family], settings=settings)
        [reply] = model.generate([Request("Add.", "", 1)])
        assert reply.text.startswith(tag)
        assert reply.text.count("<think>") == bool(tag)
        with pytest.raises(UserError, match="--prefill none"):
            model.generate([Request("Add.", "def f():", 1)])
    with pytest.raises(UserError, match=r"llama-3\.1 has no thinking mode"):
        opened(checkpoints["llama-3.1"], settings=settings)


@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_saved_checkpoints_hold_the_same_tensors_and_load_anywhere(
    checkpoints: dict[str, Path], family: str, float32: bool, tmp_path: Path
) -> None:
    """What was learnt must load without this program, and what was not trained must still be there."""
    model = opened(checkpoints[family])
    model.apply(an_update(0, alpha=ALPHA["full"]))
    model.save(tmp_path / "saved", float32=float32)
    base, saved = (load_file(folder / "model.safetensors") for folder in (checkpoints[family], tmp_path / "saved"))
    assert base.keys() == saved.keys()
    for name, values in saved.items():
        if name.startswith(UNTRAINED):
            assert torch.equal(values, base[name]), name
        else:
            assert not torch.equal(values, base[name].to(values.dtype)), name
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    assert again.dtype == (torch.float32 if float32 else torch.bfloat16)
    live = dict(model._model.named_parameters())
    for name, parameter in again.named_parameters():
        assert torch.equal(parameter.to(torch.bfloat16), live[name]), name
    reopened = opened(tmp_path / "saved")
    assert (reopened.checksum() == model.checksum()) is float32
    ours = {"config.json", "generation_config.json", "tokenizer.json", "chat_template.jinja"}
    assert ours <= {path.name for path in (tmp_path / "saved").iterdir()}
    if family == "qwen3.5":
        assert (tmp_path / "saved" / "preprocessor_config.json").exists()
        AutoModelForImageTextToText.from_pretrained(tmp_path / "saved")


def test_a_tied_matrix_that_is_stored_twice_is_saved_once(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    """Else the copy holds the old output matrix beside the new embedding, and loaders differ in which they believe."""
    shutil.copytree(checkpoints["qwen2.5"], tmp_path / "twice")
    change_weights(lambda w: w.update({"lm_head.weight": w["model.embed_tokens.weight"].clone()}))(tmp_path / "twice")
    model = opened(tmp_path / "twice")
    assert model.checksum() == opened(checkpoints["qwen2.5"]).checksum()
    model.apply(an_update(0, alpha=ALPHA["full"]))
    model.save(tmp_path / "saved")
    assert "lm_head.weight" not in stored_tensors(tmp_path / "saved")
    assert torch.equal(opened(tmp_path / "saved")._model.lm_head.weight, model._model.lm_head.weight)


def edit(folder: Path, **fields: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def change_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return changed


def cast(weights: dict[str, torch.Tensor], name: str, dtype: torch.dtype) -> None:
    weights[name] = weights[name].to(dtype)


def widen(folder: Path) -> None:
    change_weights(lambda weights: [cast(weights, name, torch.float64) for name in weights])(folder)
    edit(folder, dtype="float64")


def method(name: str) -> Callable[[Path], None]:
    return lambda folder: edit(folder, quantization_config={"quant_method": name, "bits": 4})


def lose_shard(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


def cut_off(folder: Path) -> None:
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate((folder / "model.safetensors").stat().st_size - 1000)


DOWN, NORM = "model.layers.0.mlp.down_proj.weight", "model.norm.weight"
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "gptq": (method("gptq"), r"quantised \(gptq\).*What works is the unquantised checkpoint"),
    "awq": (method("awq"), r"quantised \(awq\).*What works"),
    "fp8": (method("fp8"), r"quantised \(fp8\).*What works"),
    "compressed tensors": (method("compressed-tensors"), r"quantised \(compressed-tensors\).*What works"),
    "old gptq": (lambda f: (f / "quantize_config.json").write_text("{}"), "quantised .GPTQ or AWQ.*What works"),
    "fp8 unsaid": (change_weights(lambda w: cast(w, DOWN, torch.float8_e4m3fn)), f"{DOWN} as F8_E4M3.*What works"),
    "integers": (change_weights(lambda w: cast(w, NORM, torch.int32)), f"{NORM} as I32.*What works"),
    "float64": (widen, "float64.*--dtype float32"),
    "tensor lacking": (change_weights(lambda w: w.pop(NORM)), f"lack the tensor {NORM}.*again"),
    "another shape": (change_weights(lambda w: w.update({NORM: torch.ones(32)})), "cannot be loaded: "),
    "cut off": (cut_off, r"model\.safetensors is missing, cut off or damaged.*again"),
    "shard lacking": (lose_shard, r"lacks model-00002-of-00002\.safetensors"),
    "no config": (lambda f: (f / "config.json").unlink(), r"lacks config\.json"),
    "damaged config": (lambda f: (f / "config.json").write_text("{"), r"config\.json is damaged.*again"),
    "no tokenizer": (lambda f: [p.unlink() for p in f.glob("token*")], r"lacks a tokenizer \(tokenizer\.json\)"),
    "unknown architecture": (lambda f: edit(f, model_type="gpt9"), "cannot be loaded: .*gpt9"),
}


@pytest.mark.parametrize(("damage", "message"), BAD.values(), ids=BAD)
def test_checkpoints_that_cannot_be_moved_are_refused(
    checkpoints: dict[str, Path], damage: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    """Else a run moves only some of the weights, or new random ones, or ends in a library's traceback."""
    shutil.copytree(checkpoints["qwen3"], tmp_path / "bad")
    damage(tmp_path / "bad")
    with pytest.raises(UserError, match=message) as refused:
        opened(tmp_path / "bad")
    assert "\n" not in str(refused.value)
    assert str(tmp_path / "bad") in str(refused.value)


def test_float64_checkpoints_work_in_float32(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    """The way out that the refusal names has to be one."""
    shutil.copytree(checkpoints["qwen3"], tmp_path / "wide")
    widen(tmp_path / "wide")
    assert opened(tmp_path / "wide", dtype="float32").checksum() == opened(checkpoints["qwen3"]).checksum()


def test_joined_experts_are_refused_by_name(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    """A tensor that is made of several has no name of its own in the files, so no noise that others can make."""
    shape: dict[str, Any] = {"hidden_size": 32, "head_dim": 8, "vocab_size": 384, "num_hidden_layers": 1}
    shape |= {"num_attention_heads": 4, "num_key_value_heads": 2, "moe_intermediate_size": 16}
    shutil.copytree(checkpoints["qwen3"], tmp_path / "experts")
    Qwen3MoeForCausalLM(Qwen3MoeConfig(**shape, num_experts=2, num_experts_per_tok=1)).save_pretrained(
        tmp_path / "experts"
    )
    with pytest.raises(UserError, match=r"mlp\.experts\.gate_up_proj is joined from several.*What works"):
        opened(tmp_path / "experts")


def test_gguf_says_what_works(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    """Most small models are found as GGUF: the user has to hear where to get the others."""
    shutil.copytree(checkpoints["qwen3"], tmp_path / "packed")
    (tmp_path / "packed" / "model.safetensors").rename(tmp_path / "packed" / "tiny.Q4_0.gguf")
    for path in (tmp_path / "packed", tmp_path / "packed" / "tiny.Q4_0.gguf"):
        with pytest.raises(UserError, match=r"GGUF weights are packed.*What works is.*eoh-esopt model get"):
            local_model(str(path))
