"""Searches with variants of the update: repeatable, resumable from any event, and kept in seeds and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted import ScriptedModel, canonical, dump, mixed, of_kind, run_search, settings, truncate_log

from eoh_esopt.engine import events
from eoh_esopt.engine.config import RunConfig, load_config
from eoh_esopt.engine.history import load_history
from eoh_esopt.engine.listener import Listener
from eoh_esopt.engine.run import resume
from eoh_esopt.models.protocol import Request
from eoh_esopt.sandbox.evaluator import Evaluator
from operators.errors import UserError

BATCH: dict[str, Any] = {"directions": 4, "samples_per_direction": 2, "budget": 44}
VARIANTS: dict[str, dict[str, Any]] = {
    "pairs": {"antithetic": True},
    "ranks": {"shaping": "centred-rank"},
    "momentum": {"momentum": 0.5},
    "adaptive sigma": {"adaptive_sigma": True},
    "all": {"antithetic": True, "shaping": "centred-rank", "momentum": 0.5, "adaptive_sigma": True},
}
NEW_SETTINGS = ("shaping", "antithetic", "momentum", "adaptive_sigma")


def variant(name: str, **changes: Any) -> RunConfig:
    return settings(**{**BATCH, **VARIANTS[name], **changes})


@pytest.mark.parametrize("name", VARIANTS)
def test_the_same_seed_gives_the_same_run(tmp_path: Path, evaluator: Evaluator, name: str) -> None:
    """Else results of a variant cannot be repeated."""
    model = ScriptedModel()
    first = run_search(tmp_path / "first", evaluator, variant(name), model)
    again = run_search(tmp_path / "again", evaluator, variant(name))
    assert dump(first) == dump(again)
    assert canonical(events.read_events(tmp_path / "first")) == canonical(events.read_events(tmp_path / "again"))
    assert first.ledger.updates > 1, "a run without updates shows nothing"
    assert load_history(tmp_path / "first") == first.history
    assert list(first.history.updates) == model.updates


def test_stopping_around_any_update_changes_nothing(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else momentum or sigma begin anew when a killed run is resumed, and it ends in other weights."""
    config, model = variant("all"), ScriptedModel()
    whole = run_search(tmp_path / "whole", evaluator, config, model)
    assert any(update.inherited for update in whole.history.updates)
    assert len({update.signal for update in whole.history.updates}) > 1
    log = events.read_events(tmp_path / "whole")
    decided = [count for count, event in enumerate(log) if event["event"] in ("update", "skip")]
    for count in sorted({count + after for count in decided for after in (0, 1)}):
        folder = tmp_path / f"after-{count}"
        truncate_log(tmp_path / "whole", folder, count, torn=True)
        fresh = ScriptedModel()
        assert dump(run_search(folder, evaluator, config, fresh)) == dump(whole), f"stopped after event {count}"
        assert fresh.checksum() == model.checksum()
        assert canonical(events.read_events(folder)) == canonical(log)


def test_pairs_write_under_opposite_signs_and_learn_by_one_seed(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the noise of every pair is regenerated twice, or both halves are written under the same weights."""
    search = run_search(tmp_path / "run", evaluator, variant("pairs"))
    for event in of_kind(tmp_path / "run", "replies"):
        if event["operator"] in ("m1", "m2"):
            asked = [(one["direction"], one["sigma"]) for one in event["candidates"]]
            pairs = list(dict.fromkeys(asked))
            for (seed, sigma), (mirror, opposite) in zip(pairs[::2], pairs[1::2], strict=False):
                assert (mirror, opposite) == (seed, -sigma)
    assert {len(update.seeds) for update in search.history.updates} == {2}
    assert all(update.sigma > 0 for update in search.history.updates)


def test_momentum_carries_the_seeds_of_earlier_updates(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else m1 and m2 each forget what the other has learnt, or a replay lacks what was inherited."""
    search = run_search(tmp_path / "run", evaluator, variant("momentum"))
    before, *later = search.history.updates
    assert before.inherited == ()
    for update in later:
        expected = [(seed, 0.5 * one) for seed, one in zip(before.seeds, before.own_coefficients, strict=True)]
        assert list(update.inherited[: len(expected)]) == expected
        before = update
    logged = of_kind(tmp_path / "run", "update")[-1]
    assert logged["inherited"] == [list(pair) for pair in later[-1].inherited]


def test_the_log_of_another_momentum_is_refused(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the weights are moved by other updates than the log holds."""

    def write(request: Request, weights: str) -> str:
        return mixed(request, "")

    run_search(tmp_path / "run", evaluator, variant("momentum"), ScriptedModel(write))
    with pytest.raises(UserError, match=r"update \d+ is not the one"):
        run_search(tmp_path / "run", evaluator, variant("momentum", momentum=0.25), ScriptedModel(write))


def test_sigma_leaves_its_schedule_by_what_was_measured(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else --adaptive-sigma changes nothing."""
    flat = {"sigma": 0.06, "sigma_final": 0.06}
    search = run_search(tmp_path / "run", evaluator, variant("adaptive sigma", **flat))
    first, second, *_ = search.history.updates
    assert first.sigma == 0.06
    assert first.signal is not None
    assert (second.sigma > 0.06) == (first.signal < 0.5)
    assert second.sigma != 0.06
    plain = run_search(tmp_path / "plain", evaluator, settings(**BATCH, **flat))
    assert {update.sigma for update in plain.history.updates} == {0.06}


def test_the_papers_run_notes_nothing_new(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else histories and logs of default runs differ from those of earlier releases."""
    run_search(tmp_path / "run", evaluator, settings(**BATCH))
    history = json.loads((tmp_path / "run" / events.HISTORY).read_text())
    names = ["step", "seeds", "rewards", "weights", "alpha", "sigma"]
    assert [list(update) for update in history["updates"]] == [names] * len(history["updates"])
    logged = ["event", "step", "generation", "operator", *names[1:]]
    assert {tuple(event) for event in of_kind(tmp_path / "run", "update")} == {tuple(logged)}


def older_run(folder: Path, **changes: Any) -> None:
    """A finished run of a release that did not know the variants; then `changes` in its settings file."""
    settings_then = json.loads(settings().to_json())
    for name in NEW_SETTINGS:
        del settings_then[name]
    folder.mkdir()
    log = [{"event": "start", "config": settings_then}, {"event": "end", "best": 1}]
    (folder / events.EVENTS).write_text("".join(json.dumps(event) + "\n" for event in log))
    (folder / events.CONFIG).write_text(json.dumps({**settings_then, **changes}))


def test_runs_of_earlier_releases_can_be_resumed(tmp_path: Path) -> None:
    """Else an update of the package makes every unfinished run worthless."""
    older_run(tmp_path / "run")
    assert load_config(tmp_path / "run" / events.CONFIG) == settings()
    assert resume(tmp_path / "run", workers=1, listener=Listener(), notify=lambda text: None) == {"best": 1}


@pytest.mark.parametrize("change", [{"antithetic": True, "directions": 4}, {"momentum": 0.5}])
def test_variants_cannot_be_switched_on_in_the_middle(tmp_path: Path, change: dict[str, Any]) -> None:
    """Else half of a run is learnt one way and half another, and its settings claim one of them."""
    older_run(tmp_path / "run", **change)
    with pytest.raises(UserError, match="Put it back"):
        resume(tmp_path / "run", workers=1, listener=Listener(), notify=lambda text: None)
