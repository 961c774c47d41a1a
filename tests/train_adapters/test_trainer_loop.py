"""The trainer's loop: what is played, when it is evaluated, when nothing is learnt, and what is noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from training_cases import CountAdapter, OneDirection, drawn, episodes_of, of_kind, settings, train

from eoh_esopt.engine.events import HISTORY
from eoh_esopt.engine.history import load_history
from eoh_esopt.models.protocol import Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.adapter import AgentTask
from train_adapters.diagnostics import GenerationReport
from train_adapters.evaluation import Evaluation
from train_adapters.ledger import TrainLedger
from train_adapters.listener import TrainListener


def test_all_directions_play_the_same_tasks(tmp_path: Path) -> None:
    """Else a direction is better because its tasks were easier."""
    train(tmp_path / "run")
    for generation in range(3):
        played = episodes_of(tmp_path / "run", f"train/{generation}")
        each = [[(one.task, one.sample) for one in played[first : first + 4]] for first in range(0, 16, 4)]
        assert len(each) == 4
        assert all(one == each[0] for one in each)
        assert len(set(each[0])) == 4


def test_batches_go_through_the_tasks_in_their_order(tmp_path: Path) -> None:
    """Else some tasks are never learnt from."""
    train(tmp_path / "run")
    tasks = [event["tasks"] for event in of_kind(tmp_path / "run", "generation")]
    assert tasks == [["train-0", "train-1"], ["train-2", "train-3"], ["train-4", "train-0"]]


def test_sigma_falls_to_its_floor_and_not_to_zero(tmp_path: Path) -> None:
    """Else the last generations have nothing to learn from, and lose what regularises them."""
    train(tmp_path / "run")
    sigmas = [event["sigma"] for event in of_kind(tmp_path / "run", "generation")]
    assert sigmas[0] == 1e-3
    assert sigmas[-1] == 2.5e-4
    assert sigmas == sorted(sigmas, reverse=True)


def test_sigma_zero_is_a_recorded_skip(tmp_path: Path) -> None:
    """Else the arm of the ablation divides by nothing in its last generation."""
    summary = train(tmp_path / "run", settings(sigma_final=0.0))
    assert of_kind(tmp_path / "run", "generation")[-1]["skipped"].startswith("sigma is 0")
    assert summary["ledger"]["skip_reasons"]["sigma is 0"] == 1


def test_evaluations_come_when_they_are_due(tmp_path: Path) -> None:
    """Else the test split is looked at during the training, or the first and last evaluation do not compare."""
    train(tmp_path / "run", settings(generations=6, evaluate_every=2))
    found = of_kind(tmp_path / "run", "evaluation")
    assert [(one["split"], one["generation"], len(one["repeats"])) for one in found] == [
        ("val", -1, 2),
        ("val", 1, 1),
        ("val", 3, 1),
        ("val", 5, 2),
        ("test", 5, 2),
    ]


def test_evaluations_share_their_seeds(tmp_path: Path) -> None:
    """Else half of what a curve shows is how the dice fell at each of its points."""
    model = OneDirection(drawn)
    train(tmp_path / "run", settings(), model)
    seeds: dict[str, set[int]] = {}
    for request in model.requests:
        if request.direction is None and "3 left" in request.prompt:  # the first turn of a first task
            seeds.setdefault(request.prompt, set()).add(request.seed)
    assert len(seeds["val-0: 3 left"]) <= 2 * 4
    first = [one.seed for one in model.requests if one.prompt == "val-0: 3 left"][:1]
    assert sum(one.seed == first[0] for one in model.requests) == 3, "at the start, in between, and at the end"


def test_an_adapter_with_one_split_trains(tmp_path: Path) -> None:
    """Else an environment without held-out tasks cannot be tried out."""
    summary = train(tmp_path / "run", adapter=CountAdapter({"train": 3}))
    assert summary["evaluations"] == []
    assert summary["memory"]["inference_bytes"] is None
    assert summary["ledger"]["updates"] > 0


def test_all_directions_failing_alike_is_a_recorded_skip(tmp_path: Path) -> None:
    """Else an agent that never does anything moves its weights at random."""
    model = ScriptedModel(lambda request, number: "no number")
    summary = train(tmp_path / "run", settings(batch=1, samples=1), model)
    skips = of_kind(tmp_path / "run", "skip")
    assert [one["reason"] for one in skips] == ["all 4 directions had the same reward"] * 3
    assert model.updates == []
    assert summary["ledger"]["skips"] == 3
    assert summary["weights_before"] == summary["weights_after"]
    reports = of_kind(tmp_path / "run", "generation")
    assert all(one["flat"] and one["flat_directions"] == 1.0 and one["unparsed"] == 1.0 for one in reports)


def test_an_outage_of_most_directions_is_a_recorded_skip(tmp_path: Path) -> None:
    """Else a step is made from the directions that an outage happened to leave."""

    def outage(task: AgentTask, moment: str, count: int) -> None:
        if task.id == "train-0" and moment == "reset" and count > 2:
            raise ConnectionError("the site is down")

    config = settings(batch=1, samples=1, generations=1, sigma_schedule="constant")
    train(tmp_path / "run", config, OneDirection(drawn), CountAdapter({"train": 1}, fails=outage))
    [report] = of_kind(tmp_path / "run", "generation")
    assert not report["skipped"].startswith("no quorum"), "two of four directions are enough"
    train(
        tmp_path / "strict",
        settings(batch=1, samples=1, generations=1, direction_quorum=0.75),
        OneDirection(drawn),
        CountAdapter({"train": 1}, fails=outage),
    )
    [report] = of_kind(tmp_path / "strict", "generation")
    assert report["skipped"] == "no quorum: 2 of 4 directions have enough episodes that count"
    assert report["endings"]["infra_failed"] == 2
    assert report["failure"] == "ConnectionError: the site is down"


def test_a_generation_in_which_nothing_works_stops_the_training(tmp_path: Path) -> None:
    """Else a broken scorer spends all generations on skipped updates."""

    def broken(task: AgentTask, moment: str, count: int) -> None:
        if task.split == "train" and moment == "score":
            raise ValueError("no judge")

    with pytest.raises(UserError, match=r"All 16 episodes.*no judge \(judge_failed\).*eoh-esopt train --resume"):
        train(tmp_path / "run", adapter=CountAdapter(fails=broken))


def test_the_history_is_that_of_a_search(tmp_path: Path) -> None:
    """Else `eoh-esopt replay` and `eoh-esopt export` cannot make the weights again."""
    model = ScriptedModel(drawn)
    summary = train(tmp_path / "run", settings(momentum=0.5), model)
    history = load_history(tmp_path / "run")
    assert history.updates == tuple(model.updates)
    assert (history.base_checksum, history.final_checksum) == (summary["weights_before"], summary["weights_after"])
    assert json.loads((tmp_path / "run" / HISTORY).read_text())["format"] == 1
    assert any(update.inherited for update in history.updates)


def test_the_ledger_counts_what_was_asked(tmp_path: Path) -> None:
    """Else trainings are compared at budgets that they did not have."""
    model = ScriptedModel(drawn)
    ledger = train(tmp_path / "run", model=model)["ledger"]
    learning = [one for one in model.requests if one.direction is not None]
    assert ledger["episodes"] == 3 * 4 * 2 * 2
    assert ledger["model_calls"] == len(learning)
    assert ledger["prompt_tokens"] == sum(len(one.prompt) for one in learning)
    assert ledger["evaluation_episodes"] == 2 * 2 + 2 + 2 * 2 + 2 * 2
    reports = of_kind(tmp_path / "run", "generation")
    assert sum(one["tokens"] for one in reports) == ledger["prompt_tokens"] + ledger["new_tokens"]
    assert [one["flops"] for one in reports] == [2 * one["tokens"] for one in reports], "2 a weight and token"


def test_a_listener_hears_of_everything(tmp_path: Path) -> None:
    """Else a user sees bars that do not move, or an end that does not come."""
    heard: dict[str, list[Any]] = {"begun": [], "over": [], "generations": [], "evaluations": [], "end": []}

    class Heard(TrainListener):
        def on_rollouts(self, what: str, count: int) -> None:
            heard["begun"].append(count)

        def on_episodes(self, count: int) -> None:
            heard["over"].append(count)

        def on_generation(self, report: GenerationReport, ledger: TrainLedger) -> None:
            heard["generations"].append(report.generation)

        def on_evaluation(self, generation: int, evaluation: Evaluation) -> None:
            heard["evaluations"].append(generation)

        def on_end(self, summary: dict[str, Any]) -> None:
            heard["end"].append(summary)

    for _ in range(2):  # the second time all comes from the log
        for events in heard.values():
            events.clear()
        train(tmp_path / "run", listener=Heard())
        assert sum(heard["begun"]) == sum(heard["over"]) == 48 + 14
        assert heard["generations"] == [0, 1, 2]
        assert heard["evaluations"] == [-1, 1, 2, 2]
        assert len(heard["end"]) == 1


def test_a_report_says_how_far_directions_differ(tmp_path: Path) -> None:
    """Else a training that learns nothing cannot be told from one that is slow."""

    def write(request: Request, number: int) -> str:
        return "3" if request.direction is not None and request.direction.seed % 2 else "0"

    config = settings(batch=1, samples=2, generations=1, directions=8)
    train(tmp_path / "run", config, ScriptedModel(write), CountAdapter({"train": 1}))
    [report] = of_kind(tmp_path / "run", "generation")
    [update] = of_kind(tmp_path / "run", "update")
    wins = sum(seed % 2 for seed in update["seeds"])
    assert 0 < wins < 8
    assert report["contrast"] == pytest.approx(1.3)
    assert report["reward"] == pytest.approx((wins - 0.3 * (8 - wins)) / 8)
    assert report["flat_directions"] == 1.0
    assert not report["flat"]
    assert report["horizon"] == pytest.approx((wins + 4 * (8 - wins)) / 8)
    assert report["minimum_horizon"] == 1.0
    assert report["endings"] == {"scored": 2 * wins, "agent_failed": 2 * (8 - wins)}
