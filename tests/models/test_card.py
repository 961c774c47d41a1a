"""Model cards: what a stranger learns about adapted weights from the file beside them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tiny_models import an_update

from eoh_esopt.models import cache
from eoh_esopt.models.card import Base, Card, base_of, describe_search

CARD = Card(
    name="org/adapted",
    base=Base("org/base", "org/base", "Apache-2.0 (according to the upstream model card)"),
    base_checksum="b" * 64,
    checksum="c" * 64,
    history="d" * 64,
    verdict="The weights equal the run's.",
    scope="norms",
    restore="exact",
    dtype="bfloat16",
    updates=[an_update(step, alpha=0.03, sigma=0.06 - 0.02 * step, directions=16) for step in range(3)],
    command="eoh-esopt export --history a -o adapted",
    search="The search was for heuristics for `tsp_construct`.",
    files={"model-00001-of-00002.safetensors": "e" * 64, "model-00002-of-00002.safetensors": "f" * 64},
)


def header(text: str) -> list[str]:
    assert text.startswith("---\n")
    return text.split("---\n")[1].splitlines()


def test_a_card_says_what_was_made_of_what_and_how() -> None:
    """Weights whose base, history and command are not known can neither be checked nor made again."""
    text = CARD.text()
    for sum_ in (CARD.base_checksum, CARD.checksum, CARD.history, *CARD.files.values()):
        assert f"| `{sum_}` |" in text
    for name, value in (("scope", "norms"), ("updates", "3"), ("directions of an update", "16"), ("alpha", "0.03")):
        assert f"| {name} | {value} |" in text
    assert "| sigma | 0.06 to 0.02 |" in text
    assert "3 updates moved only the gains of its RMSNorm layers" in text
    assert CARD.verdict in text
    assert f"```\n{CARD.command}\n```" in text
    assert CARD.search in text
    assert "Nothing else was evaluated" in text


def test_hubs_can_read_the_header() -> None:
    """Else the hub shows neither base model nor licence, and the licence's terms are not passed on."""
    lines = header(CARD.text())
    assert {"base_model: org/base", "license: apache-2.0", "library_name: transformers"} <= set(lines)
    assert "Licence: that of the base model, Apache-2.0 (according to" in CARD.text()
    llama = dataclasses.replace(CARD, base=Base("m/l", "m/l", "Llama 3.1 Community License (to be accepted)"))
    assert "license: llama3.1" in header(llama.text())
    for licence in (None, "Some other terms"):
        unknown = dataclasses.replace(CARD, base=Base("mine", None, licence))
        assert not any(line.startswith(("license", "base_model")) for line in header(unknown.text()))
    assert "which is not known here" in dataclasses.replace(CARD, base=Base("mine", None, None)).text()


def test_loading_is_shown_for_both_loaders_and_the_dtype() -> None:
    """vLLM rounds float32 weights unless it is told otherwise: the exact copy would not be exact."""
    assert 'AutoModelForCausalLM.from_pretrained("org/adapted")' in CARD.text()
    assert "`vllm serve org/adapted`" in CARD.text()
    exact = dataclasses.replace(CARD, dtype="float32", scope="full", updates=CARD.updates[:1]).text()
    assert "`vllm serve org/adapted --dtype float32`" in exact
    assert "1 update moved all weights" in exact


def test_a_card_without_updates_can_be_written() -> None:
    """A run that was stopped before its first update has weights too: the base's."""
    assert "| sigma | - |" in dataclasses.replace(CARD, updates=[]).text()


def test_a_base_is_named_by_its_hub_id_and_never_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path of somebody's machine says nothing to others, and more than it should."""
    smol = Base("HuggingFaceTB/SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct", "Apache-2.0")
    assert base_of("smollm2-135m-instruct", tmp_path) == smol
    folder = tmp_path / "mine"
    folder.mkdir()
    assert base_of(str(folder), folder) == Base("mine", None, None)
    assert base_of("org/other", tmp_path / "snapshot") == Base("org/other", "org/other", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "local").mkdir(parents=True)
    assert base_of("org/local", tmp_path / "org" / "local") == Base("local", None, None)
    cache.write_record(folder, "SmolLM2-135M-Instruct", "Apache-2.0", 1, ())
    assert base_of(str(folder), folder) == smol
    cache.write_record(folder, "elsewhere", "MIT", 1, ())
    assert base_of(str(folder), folder) == Base("mine", None, "MIT")


def test_a_search_is_described_as_far_as_it_is_known(tmp_path: Path) -> None:
    """The objective of a problem that is maximised is kept negated: a card must show it as people read it."""
    assert describe_search(tmp_path) == ""
    settings = {"problem": "/home/me/my_problem.py", "method": "esopt-eoh", "budget": 400}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    text = describe_search(tmp_path)
    assert text == "The search was for heuristics for `my_problem.py` (method esopt-eoh, budget 400)."
    summary = {"best": {"objective": -12.5}, "measure": "value", "maximise": True}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    assert describe_search(tmp_path) == f"{text} On its instances the best heuristic has a mean value of 12.5."
    (tmp_path / "summary.json").write_text("{")
    assert describe_search(tmp_path) == text
    (tmp_path / "config.json").write_text("[]")
    assert describe_search(tmp_path) == ""
