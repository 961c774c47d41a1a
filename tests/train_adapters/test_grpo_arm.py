"""The baseline with tiny random models: it learns, goes on where it was interrupted, and refuses what does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from families import build
from grpo_cases import TALK, baseline, import_trl, talk, training
from safetensors.torch import load_file

from eoh_esopt.engine.events import EVENTS, read_events
from operators.errors import UserError
from train_adapters.grpo.arm import CHECKPOINTS, MODEL, run_arm
from train_adapters.listener import TrainListener


@pytest.fixture(scope="module", autouse=True)
def _trl() -> None:
    import_trl()


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return talk(tmp_path_factory.mktemp("adapter"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("qwen2.5", tmp_path_factory.mktemp("tiny"), torch.float32)


WEIGHTS = {
    "llama-3.1": "model.layers.0.mlp.up_proj.weight",
    "qwen3.5": "model.language_model.layers.0.mlp.up_proj.weight",
}
"""Of each family, one."""


def silent(text: str) -> None:
    """Nobody listens."""


def arm(
    adapter: Path,
    model: Path,
    out: Path,
    notify: Callable[[str], None] = silent,
    dtype: str = "float32",
    **changes: Any,
) -> dict[str, Any]:
    grpo = baseline(**{"steps": 3, "checkpoint_every": 1, **changes})
    return run_arm(training(adapter, model, dtype=dtype), grpo, out, listener=TrainListener(), notify=notify)


@pytest.fixture(scope="module")
def whole(adapter: Path, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an arm that nobody interrupted."""
    out = tmp_path_factory.mktemp("whole") / "grpo"
    arm(adapter, tiny, out)
    return out


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "summary.json").read_text()))


def test_the_weights_of_the_saved_model_have_moved_by_about_the_learning_rate(whole: Path, tiny: Path) -> None:
    """Else nothing was learnt, or what was evaluated is not what was trained."""
    summary = summary_of(whole)
    assert summary["weights_before"] != summary["weights_after"]
    before, after = load_file(tiny / "model.safetensors"), load_file(whole / MODEL / "model.safetensors")
    assert before.keys() == after.keys()
    moved = max(float((after[name] - before[name]).abs().max()) for name in before)
    assert 1e-4 < moved < 4e-4  # three steps of AdamW at 1e-4


def test_every_turn_of_every_episode_is_learnt_from(whole: Path) -> None:
    """Else the baseline learns from a part of its rollouts, or from others than it counts."""
    steps = [event for event in read_events(whole) if event["event"] == "step"]
    assert [one["examples"] for one in steps] == [12, 12, 12]
    ledger = summary_of(whole)["ledger"]
    assert (ledger["episodes"], ledger["model_calls"], ledger["updates"]) == (18, 36, 3)
    assert ledger["prompt_tokens"] > ledger["new_tokens"] > 0
    assert (ledger["evaluation_episodes"], len(summary_of(whole)["evaluations"])) == (3, 3)


def test_an_interrupted_arm_goes_on_to_the_same_end(whole: Path, adapter: Path, tiny: Path, tmp_path: Path) -> None:
    """Else a power cut costs the arm, or the resumed one is another one."""

    def interrupt(text: str) -> None:
        if text.startswith("GRPO step 2"):
            raise KeyboardInterrupt

    out = tmp_path / "grpo"
    with pytest.raises(KeyboardInterrupt):
        arm(adapter, tiny, out, interrupt)
    assert [path.name for path in (out / CHECKPOINTS).iterdir()] == ["checkpoint-1"]
    said: list[str] = []
    resumed = arm(adapter, tiny, out, said.append)
    assert "GRPO goes on after step 1 of 3; 1 steps after it are done again" in said
    for name in ("weights_after", "ledger", "evaluations", "flops"):
        assert resumed[name] == summary_of(whole)[name]
    assert not (out / CHECKPOINTS).exists()


def test_a_finished_arm_is_not_run_again(whole: Path, adapter: Path, tiny: Path) -> None:
    """Else going on with a comparison costs both arms anew."""
    said: list[str] = []
    assert arm(adapter, tiny, whole, said.append) == summary_of(whole)
    assert said == [f"The arm in {whole} is finished: there is nothing to go on with."]


def test_several_updates_are_made_from_one_step(adapter: Path, tiny: Path, tmp_path: Path) -> None:
    """Else minibatches, and the clipping that they are for, are words."""
    summary = arm(adapter, tiny, tmp_path / "grpo", minibatches=3, steps=1, learning_rate=1e-2)
    [step] = [event for event in read_events(tmp_path / "grpo") if event["event"] == "step"]
    assert summary["ledger"]["updates"] == 3
    assert step["clipped"] > 0


def test_how_replies_are_dealt_out_does_not_matter(whole: Path, adapter: Path, tiny: Path, tmp_path: Path) -> None:
    """Else settings that are for memory change what is learnt."""
    arm(adapter, tiny, tmp_path / "grpo", pass_rows=2, gradient_checkpointing=True)
    first = load_file(whole / MODEL / "model.safetensors")
    second = load_file(tmp_path / "grpo" / MODEL / "model.safetensors")
    start = load_file(tiny / "model.safetensors")
    differences = torch.cat([(first[name] - second[name]).flatten() for name in first])
    moved = torch.cat([(first[name] - start[name]).flatten() for name in first])
    assert float(differences.norm()) < 0.1 * float(moved.norm())


@pytest.mark.parametrize("family", WEIGHTS)
def test_families_of_the_published_runs_are_trained(family: str, adapter: Path, tmp_path: Path) -> None:
    """Else the published size of the comparison cannot be run."""
    model = build(family, tmp_path / "model", torch.bfloat16)
    summary = arm(adapter, model, tmp_path / "grpo", dtype="auto", steps=1, learning_rate=1e-2)
    assert summary["weights_before"] != summary["weights_after"]
    trained = load_file(tmp_path / "grpo" / MODEL / "model.safetensors")
    assert trained[WEIGHTS[family]].dtype == torch.float32
    assert read_events(tmp_path / "grpo")[0]["model"]["dtype"] == "bfloat16"


def test_changed_settings_are_refused_by_name(whole: Path, adapter: Path, tiny: Path, tmp_path: Path) -> None:
    """Else an arm is trained half with one learning rate and half with another."""
    begun = tmp_path / "grpo"
    begun.mkdir()
    lines = (whole / EVENTS).read_text().splitlines(keepends=True)
    (begun / EVENTS).write_text("".join(lines[:3]))
    with pytest.raises(UserError, match=r"began with grpo learning_rate 0\.0001, which is 0\.5 now"):
        arm(adapter, tiny, begun, learning_rate=0.5)
    with pytest.raises(UserError, match="dtype 'bfloat16', but the run began with 'float32'"):
        arm(adapter, tiny, begun, dtype="bfloat16")


def test_a_step_without_an_episode_that_counts_stops_the_arm(tiny: Path, tmp_path: Path) -> None:
    """Else a dead service is taken for an agent that learns nothing, and the budget is spent on it."""
    broken = tmp_path / "broken.py"
    broken.write_text(TALK.replace("        self.said.append(action)", "        raise OSError('no route')"))
    with pytest.raises(UserError, match=r"All 6 episodes of a GRPO step .* no route .* compare-training --resume"):
        arm(broken, tiny, tmp_path / "out" / "grpo")
