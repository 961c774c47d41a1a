"""`eoh-esopt export`: from a history to a folder that others load, or one sentence and nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from models.families import build
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from eoh_esopt.engine.history import History
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.transformers_model import TransformersModel
from operators.errors import UserError
from operators.records import Update

Call = Callable[..., tuple[int, str, str]]


def updates(alpha: float) -> tuple[Update, ...]:
    weights = (-1.2, 0.0, 1.2)
    return tuple(Update(step, (3 * step, 7, 2**60), weights, weights, alpha, 0.01) for step in range(2))


def opened(folder: Path, scope: str, dtype: str = "auto") -> TransformersModel:
    return TransformersModel(folder, scope=SCOPES[scope], sampling=Sampling(max_new_tokens=1), dtype=dtype)


def put_run(folder: Path, model: str, base: Path, scope: str, **fields: Any) -> TransformersModel:
    """A run's folder with a history, and the model as that run left it."""
    trained = opened(base, scope)
    history = History(model, trained.checksum(), scope, "exact", "bfloat16", updates(0.02))
    for update in history.updates:
        trained.apply(update)
    folder.mkdir(parents=True)
    final = {"final_checksum": trained.checksum(), **fields}
    (folder / "history.json").write_text(replace(history, **final).to_json())
    return trained


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random multimodal checkpoint: the hardest to copy."""
    return build("qwen3.5", tmp_path_factory.mktemp("export") / "tiny-base")


def card_of(out: Path) -> str:
    return (out / "README.md").read_text()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


@pytest.mark.parametrize("scope", ["full", "norms"])
def test_the_exported_weights_are_the_trained_ones(call: Call, tiny: Path, scope: str, tmp_path: Path) -> None:
    """What a run has learnt in hours has to arrive, to the last bit, where it is used."""
    trained = put_run(tmp_path / "run", str(tiny), tiny, scope)
    code, out, err = call("export", "--history", tmp_path / "run", "-o", tmp_path / "new" / "adapted")
    assert code == 0, err
    assert "The weights equal the run's." in out
    saved = load_file(tmp_path / "new" / "adapted" / "model.safetensors")
    base = load_file(tiny / "model.safetensors")
    assert saved.keys() == base.keys()
    for name, values in saved.items():
        assert torch.equal(values, trained.weights.live.get(name, base[name])), name
    assert files(tmp_path / "new") == {"adapted", "README.md", *files(tiny)}
    assert (tmp_path / "new" / "adapted" / "tokenizer.json").read_bytes() == (tiny / "tokenizer.json").read_bytes()
    AutoModelForCausalLM.from_pretrained(tmp_path / "new" / "adapted")
    assert AutoTokenizer.from_pretrained(tmp_path / "new" / "adapted").chat_template


def test_the_exact_weights_have_the_hash_of_the_run(call: Call, tiny: Path, tmp_path: Path) -> None:
    """Training goes on from an export only if nothing was rounded on the way."""
    trained = put_run(tmp_path / "run", str(tiny), tiny, "full")
    code, _, err = call("export", "--history", tmp_path / "run" / "history.json", "-o", tmp_path / "out", "--float32")
    assert code == 0, err
    again = opened(tmp_path / "out", "full")
    assert again.checksum() == trained.checksum()
    assert again.describe()["dtype"] == "float32"
    assert "| dtype of this copy | float32 |" in card_of(tmp_path / "out")


def test_the_card_states_what_can_be_checked(call: Call, tiny: Path, tmp_path: Path) -> None:
    """A card with other hashes than the files is worse than none; one with paths tells where its author works."""
    trained = put_run(tmp_path / "runs" / "a", str(tiny), tiny, "norms")
    assert call("export", "--history", tmp_path / "runs" / "a", "-o", tmp_path / "adapted")[0] == 0
    card = card_of(tmp_path / "adapted")
    history = json.loads((tmp_path / "runs" / "a" / "history.json").read_text())
    assert f"| history file, sha256 | `{sha256(tmp_path / 'runs' / 'a' / 'history.json')}` |" in card
    assert f"| base weights, sha256 | `{history['base_checksum']}` |" in card
    assert f"| adapted weights, sha256 | `{trained.checksum()}` |" in card
    assert f"| model.safetensors | `{sha256(tmp_path / 'adapted' / 'model.safetensors')}` |" in card
    assert "eoh-esopt export --history a --model tiny-base -o adapted\n" in card
    assert str(tmp_path) not in card
    assert str(tiny.parent) not in card


def test_a_base_that_has_moved_is_given_by_hand(call: Call, tiny: Path, tmp_path: Path) -> None:
    """Models move between machines; the wrong one must not be taken for the base."""
    trained = put_run(tmp_path / "run", "./gone", tiny, "norms")
    shutil.copytree(tiny, tmp_path / "moved")
    code, _, err = call("export", "--history", tmp_path / "run", "-o", tmp_path / "out")
    assert (code, "does not exist" in err) == (2, True)
    arguments = ("export", "--history", tmp_path / "run", "--model", tmp_path / "moved", "-o", tmp_path / "out")
    assert call(*arguments)[0] == 0
    trained.save(tmp_path / "other")
    code, _, err = call(*arguments[:4], tmp_path / "other", "-o", tmp_path / "out2")
    assert (code, "begins with weights" in err) == (2, True)
    assert files(tmp_path) & {"out", "out2"} == {"out"}


def test_an_unfinished_run_says_so(call: Call, tiny: Path, tmp_path: Path) -> None:
    """Weights from the middle of a run would pass for its result."""
    put_run(tmp_path / "run", str(tiny), tiny, "norms", final_checksum=None)
    code, out, _ = call("export", "--history", tmp_path / "run", "-o", tmp_path / "out")
    assert code == 0
    assert "not finished" in out
    assert "not finished" in card_of(tmp_path / "out")


def test_replay_saves_the_same_folder(call: Call, tiny: Path, tmp_path: Path) -> None:
    """Two ways to write the same weights would sooner or later write different ones."""
    put_run(tmp_path / "run", str(tiny), tiny, "norms")
    assert call("export", "--history", tmp_path / "run", "-o", tmp_path / "1" / "adapted")[0] == 0
    assert call("replay", tmp_path / "run", "--save", tmp_path / "2" / "adapted")[0] == 0
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / n / "adapted").iterdir()} for n in "12")
    assert one == two


def test_an_empty_folder_is_used_and_readable(call: Call, tiny: Path, tmp_path: Path) -> None:
    """A server that runs as another user must be able to read the weights as well as the rest."""
    put_run(tmp_path / "run", str(tiny), tiny, "norms")
    (tmp_path / "out").mkdir()
    assert call("export", "--history", tmp_path / "run", "-o", tmp_path / "out")[0] == 0
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()}
    assert modes == {(tmp_path / "out" / "README.md").stat().st_mode & 0o777}
    assert (tmp_path / "out").stat().st_mode & 0o777 == (tmp_path / "run").stat().st_mode & 0o777


@pytest.mark.parametrize("broken", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_breaks_off_leaves_nothing(
    call: Call, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: BaseException
) -> None:
    """Half a checkpoint that looks like a whole one would be loaded, or block the next try."""
    put_run(tmp_path / "run", str(tiny), tiny, "norms")

    def breaks_off(*_: Any, **__: Any) -> None:
        raise broken

    monkeypatch.setattr("eoh_esopt.engine.export.Card", breaks_off)
    code, _, err = call("export", "--history", tmp_path / "run", "-o", tmp_path / "out")
    assert code == (130 if isinstance(broken, KeyboardInterrupt) else 2)
    assert isinstance(broken, KeyboardInterrupt) or "No space left on device. Choose another" in err
    assert os.listdir(tmp_path) == ["run"]


def test_large_weights_are_split(tiny: Path, tmp_path: Path) -> None:
    """Hubs and file systems limit the size of a file; an index that is wrong loads random weights."""
    from eoh_esopt.models.checkpoint import stored_tensors, write_adapted

    model = opened(tiny, "full")
    write_adapted(tiny, tmp_path / "split", model.weights.live, shard_bytes=50_000)
    stored = stored_tensors(tmp_path / "split")
    index = json.loads((tmp_path / "split" / "model.safetensors.index.json").read_text())
    assert index["weight_map"] == {name: one.file.name for name, one in sorted(stored.items())}
    assert index["metadata"]["total_size"] == sum(p.nbytes for p in load_file(tiny / "model.safetensors").values())
    shards = sorted((tmp_path / "split").glob("*.safetensors"))
    assert len(shards) > 3
    assert [path.name for path in shards][-1] == f"model-{len(shards):05d}-of-{len(shards):05d}.safetensors"
    assert not (tmp_path / "split" / "model.safetensors").exists()
    assert opened(tmp_path / "split", "full").checksum() == model.checksum()
    write_adapted(tmp_path / "split", tmp_path / "joined", model.weights.live)
    assert not list((tmp_path / "joined").glob("*.index.json"))
    assert opened(tmp_path / "joined", "full").checksum() == model.checksum()


def test_bad_arguments_cost_no_time_and_change_nothing(call: Call, tmp_path: Path) -> None:
    """Minutes of replay before a typing error is found, or a folder that is overwritten."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "history.json").write_text(History("./none", "0" * 64, "norms", "exact", "float32").to_json())
    before = files(tmp_path)
    run, out = ("--history", tmp_path / "run"), ("-o", tmp_path / "out")
    for arguments, message in (
        ((*run, "-o", tmp_path / "full"), "is not empty. Choose another --out"),
        ((*run, "-o", tmp_path / "full" / "mine.txt" / "x"), "cannot be written to"),
        (("--history", tmp_path / "none", *out), "no history at"),
        (run, "--out"),
        (out, "--history"),
        ((*run, *out, "--push", "adapted"), "'adapted': that is no hub repository. Give it as ORG/NAME"),
        ((*run, *out, "--push", "me/adapted"), "HF_HUB_OFFLINE is set. Leave out --push"),
        ((*run, *out), "does not exist"),
    ):
        code, printed, err = call("export", *arguments)
        assert (code, printed) == (2, "")
        assert err.startswith("Error: ")
        assert message in err
        assert err.count("\n") == 1
    assert files(tmp_path) == before


def test_a_push_comes_after_the_folder_and_its_refusal_keeps_it(
    call: Call, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload that fails must not cost the minutes that the export took."""
    put_run(tmp_path / "run", str(tiny), tiny, "norms")
    pushed: list[tuple[Path, str]] = []

    def refuse(folder: Path, repo: str) -> str:
        assert "# me/adapted\n" in card_of(folder)
        pushed.append((folder, repo))
        raise UserError("the hub is full.")

    monkeypatch.setattr("eoh_esopt.models.push.check_push", lambda repo: None)
    monkeypatch.setattr("eoh_esopt.models.push.push", refuse)
    out = tmp_path / "out"
    code, printed, err = call("export", "--history", tmp_path / "run", "-o", out, "--push", "me/adapted")
    assert code == 2
    assert err.endswith("Error: the hub is full.\n")
    assert pushed == [(out, "me/adapted")]
    assert f"Saved to {out}" in printed
    assert (out / "model.safetensors").exists()


@pytest.mark.model
def test_the_small_model_is_named_with_its_licence(call: Call, small_model: Path, tmp_path: Path) -> None:
    """The card of a catalogue model has to pass its licence on."""
    trained = put_run(tmp_path / "run", "SmolLM2-135M-Instruct", small_model, "norms")
    code, _, err = call("export", "--history", tmp_path / "run", "-o", tmp_path / "out")
    assert code == 0, err
    card = card_of(tmp_path / "out")
    assert "base_model: HuggingFaceTB/SmolLM2-135M-Instruct\nlicense: apache-2.0\n" in card
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert all(torch.equal(values, trained.weights.live[name]) for name, values in again.named_parameters())


def test_help_shows_examples(call: Call) -> None:
    """Else the user has to guess how the arguments go together."""
    code, out, _ = call("export", "--help")
    assert code == 0
    assert "eoh-esopt export --history runs/a -o adapted" in out
