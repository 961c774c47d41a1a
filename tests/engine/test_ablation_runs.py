"""Whole searches with an ablation or another schedule of sigma: what moves the weights, and that they go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted import ScriptedModel, canonical, dump, of_kind, run_search, settings, truncate_log

from eoh_esopt.engine import events
from eoh_esopt.engine.config import load_config
from eoh_esopt.engine.history import load_history
from eoh_esopt.engine.listener import Listener
from eoh_esopt.engine.run import resume
from eoh_esopt.reports.live import headline
from eoh_esopt.sandbox.evaluator import Evaluator
from operators.errors import UserError

BATCH: dict[str, Any] = {"directions": 3, "samples_per_direction": 2, "budget": 32}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "ablation": ({"ablation": "noise"}, "'noise'.*noise-only, no-perturbation"),
    "nothing to take away": ({"ablation": "noise-only", "method": "eoh"}, "methods that learn, and eoh does not"),
    "pairs of nothing": ({"ablation": "no-perturbation", "antithetic": True, "directions": 4}, "--antithetic"),
    "signal of nothing": ({"ablation": "no-perturbation", "adaptive_sigma": True}, "--adaptive-sigma"),
    "schedule": ({"sigma_schedule": "cosin"}, "'cosin'.*cosine, linear, constant"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_ablations_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    """Else an arm of a table is called an ablation and is something else."""
    with pytest.raises(UserError, match=message):
        settings(**{**BATCH, **changes})


def test_noise_only_leaves_the_weights_alone(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the arm that never updates does, or is written without directions."""
    model = ScriptedModel()
    search = run_search(tmp_path / "run", evaluator, settings(**BATCH, ablation="noise-only"), model)
    assert (model.updates, search.ledger.updates) == ([], 0)
    assert search.ledger.skips == 4
    reasons = [event["reason"] for event in of_kind(tmp_path / "run", "skip")]
    assert any("noise only" in reason for reason in reasons)
    plain = ScriptedModel()
    run_search(tmp_path / "plain", evaluator, settings(**BATCH), plain)
    assert [one.direction for one in model.requests] == [one.direction for one in plain.requests]


def test_without_perturbation_updates_come_from_seeds_and_rewards(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the control is not told apart from the method in its log, or it makes no updates."""
    model = ScriptedModel()
    search = run_search(tmp_path / "run", evaluator, settings(**BATCH, ablation="no-perturbation"), model)
    assert {one.direction.sigma for one in model.requests if one.direction} == {0.0}
    assert {update.sigma for update in model.updates} == {0.0}
    assert search.ledger.updates > 0
    assert load_history(tmp_path / "run") == search.history


@pytest.mark.parametrize("ablation", ["noise-only", "no-perturbation"])
def test_a_killed_ablation_goes_on(tmp_path: Path, evaluator: Evaluator, ablation: str) -> None:
    """Else a sweep of ablations cannot be resumed."""
    config, model = settings(**BATCH, ablation=ablation), ScriptedModel()
    whole = run_search(tmp_path / "whole", evaluator, config, model)
    log = events.read_events(tmp_path / "whole")
    decided = [count for count, event in enumerate(log) if event["event"] in ("update", "skip")]
    for count in sorted({count + after for count in decided for after in (0, 1)}):
        truncate_log(tmp_path / "whole", tmp_path / f"after-{count}", count, torn=True)
        fresh = ScriptedModel()
        assert dump(run_search(tmp_path / f"after-{count}", evaluator, config, fresh)) == dump(whole)
        assert fresh.checksum() == model.checksum()
        assert canonical(events.read_events(tmp_path / f"after-{count}")) == canonical(log)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [("constant", (0.06, 0.06, 0.06)), ("linear", (0.06, 0.04, 0.02)), ("cosine", (0.06, 0.04, 0.02))],
)
def test_sigma_follows_the_schedule_that_was_asked_for(
    tmp_path: Path, evaluator: Evaluator, schedule: str, expected: tuple[float, ...]
) -> None:
    """Else the arm with constant sigma is the method itself."""
    config = settings(**{**BATCH, "budget": 48}, sigma=0.06, sigma_final=0.02, sigma_schedule=schedule)
    assert config.generations == 3
    run_search(tmp_path / "run", evaluator, config)
    asked = [event["candidates"][0]["sigma"] for event in of_kind(tmp_path / "run", "replies")]
    assert [sigma for sigma in asked if sigma is not None][::2] == pytest.approx(expected)


def test_runs_of_releases_without_ablations_can_be_resumed(tmp_path: Path) -> None:
    """Else an update of the package makes every unfinished run worthless."""
    then = json.loads(settings().to_json())
    del then["ablation"], then["sigma_schedule"]
    log = [{"event": "start", "config": then}, {"event": "end", "best": 1}]
    (tmp_path / events.EVENTS).write_text("".join(json.dumps(event) + "\n" for event in log))
    (tmp_path / events.CONFIG).write_text(json.dumps(then))
    assert load_config(tmp_path / events.CONFIG) == settings()
    assert resume(tmp_path, workers=1, listener=Listener(), notify=lambda text: None) == {"best": 1}
    (tmp_path / events.CONFIG).write_text(json.dumps({**then, "ablation": "noise-only"}))
    with pytest.raises(UserError, match="has ablation 'noise-only', but the run began with 'none'"):
        resume(tmp_path, workers=1, listener=Listener(), notify=lambda text: None)


def test_the_headline_names_the_ablation() -> None:
    """Else a control that is watched looks like the method."""
    config = json.loads(settings(ablation="noise-only", sigma_schedule="constant").to_json())
    model = {"model": "m", "parameters": 1, "dtype": "", "device": "", "scope": "full", "scope_elements": 1}
    lines = headline({"event": "start", "config": config, "model": model, "isolation": "none"})
    said = " ".join(lines)
    assert "ABLATION noise-only" in said
    assert "constant sigma" in said
