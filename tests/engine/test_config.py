"""The settings of a run: what is refused, the sizes of its batches, and the file that keeps them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from eoh_esopt.engine.config import METHODS, RunConfig, load_config
from eoh_esopt.models.protocol import Sampling
from operators.errors import UserError


def settings(**changes: Any) -> RunConfig:
    return RunConfig("tsp_construct", "some-model", **changes)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "method": ({"method": "eoh-esopt"}, "'eoh-esopt'.*eoh, esopt-eoh, sample, esopt-sample"),
    "reward": ({"reward": "best"}, "'best'.*graded, paper, ordered"),
    "scope": ({"scope": "heads"}, "'heads'.*full, norms"),
    "restore": ({"restore": "copy"}, "'copy'.*exact, residual, host, subtract"),
    "restore of a scope": ({"restore": "residual", "scope": "norms"}, "'residual' does not exist for scope 'norms'"),
    "isolation": ({"isolation": "maybe"}, "'maybe'.*best, required, none"),
    "budget below a batch": ({"budget": 9}, "budget of 9 .* 10 candidates.*--budget"),
    "budget below a batch of samples": ({"budget": 29, "samples_per_direction": 3}, "10 directions x 3"),
    "no budget": ({"budget": 0, "method": "eoh", "directions": 1}, "budget of 0"),
    "negative budget": ({"budget": -5}, "budget of -5"),
    "negative sigma": ({"sigma": -1e-3}, "sigma .* -0.001"),
    "sigma NaN": ({"sigma": math.nan}, "sigma .* nan"),
    "final sigma infinite": ({"sigma_final": math.inf}, "sigma_final .* inf"),
    "negative alpha": ({"alpha": -1.0}, "alpha .* -1.0"),
    "alpha NaN": ({"alpha": math.nan}, "alpha .* nan"),
    "one direction": ({"directions": 1}, "at least 2 directions, not 1"),
    "one direction of sampling": ({"directions": 1, "method": "esopt-sample"}, "at least 2 directions"),
    "no direction": ({"directions": 0, "method": "eoh"}, "directions .* at least 1"),
    "no population": ({"population": 0}, "population .* at least 1"),
    "unknown shaping": ({"shaping": "rank"}, "'rank'.*z-score, centred-rank"),
    "momentum of one": ({"momentum": 1.0}, "momentum .* 1.0"),
    "momentum NaN": ({"momentum": math.nan}, "momentum .* nan"),
    "odd pairs": ({"antithetic": True, "directions": 5}, "5 is odd.*--directions"),
    "adaptive sigma from single samples": ({"adaptive_sigma": True}, "at least 2 --samples-per-direction, not 1"),
    "no samples": ({"samples_per_direction": 0}, "samples_per_direction .* at least 1"),
    "no rows": ({"max_batch": 0}, "max_batch .* at least 1"),
    "negative seed": ({"seed": -1}, "seed .* at least 0"),
    "no time": ({"timeout": 0.0}, "timeout .* above 0"),
    "endless time": ({"timeout": math.inf}, "timeout .* at most 86400 seconds, not inf"),
    "more time than a clock holds": ({"timeout": 1e300}, "timeout .* at most"),
    "time NaN": ({"timeout": math.nan}, "timeout .* nan"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_settings_are_refused_with_their_value(changes: dict[str, Any], message: str) -> None:
    """Else a typing error surfaces hours later, or as noise in the weights."""
    with pytest.raises(UserError, match=message):
        settings(**changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"top_p": 0.0}, "top-p"),
        ({"top_p": 1.1}, "top-p"),
        ({"top_k": 0}, "top-k"),
        ({"max_new_tokens": 0}, "max-new-tokens"),
    ],
)
def test_bad_sampling_is_refused(change: dict[str, Any], message: str) -> None:
    """Else the model fails in the middle of the first batch."""
    with pytest.raises(UserError, match=message):
        Sampling(**change)


@pytest.mark.parametrize("method", ["eoh", "sample"])
def test_methods_without_learning_need_no_second_direction(method: str) -> None:
    """Else a control arm with single samples could not be run."""
    assert not settings(method=method, directions=1).learns


def learning_batches(config: RunConfig) -> int:
    per_generation = sum(name in ("m1", "m2", "i1") for name, _ in config.plan)
    return config.generations * per_generation


@pytest.mark.parametrize(
    ("changes", "generations", "updates"),
    [
        ({"budget": 1000}, 25, 50),
        ({"budget": 2000, "directions": 30}, 25, 50),
        ({"budget": 2000, "directions": 10, "samples_per_direction": 3}, 25, 50),
        ({"budget": 1000, "method": "esopt-sample", "directions": 20}, 50, 50),
        ({"budget": 2000, "method": "esopt-sample", "directions": 20}, 100, 100),
    ],
)
def test_the_plan_is_the_published_one(changes: dict[str, Any], generations: int, updates: int) -> None:
    """Else a run at the published budget has another number of updates, and cannot be compared."""
    config = settings(**changes)
    assert config.generations == generations
    assert learning_batches(config) == updates
    assert sum(count for _, count in config.plan) * generations == config.budget


def test_every_generation_asks_all_operators_in_order() -> None:
    """Else e1 and e2 would take their sizes from the directions, or m1 and m2 theirs from the population."""
    config = settings(population=7, directions=4, samples_per_direction=3)
    assert config.plan == (("e1", 7), ("e2", 7), ("m1", 12), ("m2", 12))
    assert settings(method="sample", directions=20).plan == (("i1", 20),)


def test_a_rest_of_the_budget_begins_one_more_generation() -> None:
    """Else the last candidates of an odd budget are never written."""
    assert [settings(budget=budget).generations for budget in (39, 40, 41)] == [1, 1, 2]


def test_defaults_follow_the_scope_and_the_size_of_the_model() -> None:
    """Else a small model is run with settings for a large one, where nothing is learnt."""
    small = settings(scope="norms").resolved(494_000_000)
    large = settings().resolved(8_000_000_000)
    assert (small.reward, small.prefill, small.sigma, small.alpha) == ("graded", "suggestion", 0.06, 0.03)
    assert settings().resolved(135_000_000).prefill == "signature"
    assert (large.reward, large.prefill, large.sigma, large.alpha) == ("paper", "none", 1e-3, 5e-4)


def test_given_settings_are_kept_over_the_defaults() -> None:
    """Else zero, false and the like are taken for "not given"."""
    given = settings(sigma=0.0, sigma_final=0.5, alpha=0.0, prefill="none", reward="paper")
    assert given.resolved(1) == given


@pytest.mark.parametrize("method", METHODS)
def test_the_file_gives_back_the_same_settings(tmp_path: Path, method: str) -> None:
    """Else a resumed run goes on with other settings than it began with."""
    config = settings(method=method, sigma=0.1 + 0.2, sampling=Sampling(0.7, 0.9, 3, 99)).resolved(1)
    (tmp_path / "config.json").write_text(config.to_json())
    assert load_config(tmp_path / "config.json") == config


def good_file(**changes: Any) -> str:
    return json.dumps({**json.loads(settings().to_json()), **changes})


DAMAGED = {
    "unknown key": (good_file(mirrored=True), "unknown setting 'mirrored'"),
    "unknown sampling key": (good_file(sampling={"heat": 1}), "damaged"),
    "cut short": (good_file()[:-20], "damaged"),
    "empty": ("", "damaged"),
    "a list": ("[]", "damaged"),
    "a number": ("7", "damaged"),
    "no sampling": (json.dumps({"problem": "tsp_construct", "model": "m"}), "damaged"),
    "text for a number": (good_file(budget="many"), "damaged"),
    "bad value": (good_file(sigma=-1), "sigma"),
}


@pytest.mark.parametrize(("text", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Else resuming ends in a traceback, or goes on with settings that nobody chose."""
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        load_config(path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Else a file damaged on disk ends in a traceback."""
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="damaged"):
        load_config(tmp_path / "config.json")


def test_a_missing_file_is_refused_with_what_to_give(tmp_path: Path) -> None:
    """Else the user does not learn that the folder holds no run."""
    with pytest.raises(UserError, match="Give the folder of a run"):
        load_config(tmp_path / "config.json")
