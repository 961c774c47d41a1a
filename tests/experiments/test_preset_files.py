"""Presets: strict files, one laid over another, and the published numbers in those that are shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eoh_esopt.engine.config import ABLATIONS, RunConfig
from eoh_esopt.experiments.presets import Preset, load_preset, merged, preset_names
from eoh_esopt.experiments.settings_files import run_config
from operators.errors import UserError

METHODS = ("eoh", "esopt-eoh", "sample", "esopt-sample")


def config(*names: str, **given: Any) -> RunConfig:
    return run_config("tsp_construct", merged([*map(load_preset, names), Preset("", given)]))


def updates(config: RunConfig) -> int:
    """Of the whole budget."""
    return config.generations * sum(name in ("m1", "m2", "i1") for name, _ in config.plan)


@pytest.mark.parametrize(
    ("preset", "budget", "k", "eoh_directions", "sample_updates"),
    [("ahd-1000", 1000, 1, 10, 50), ("ahd-2000", 2000, 3, 30, 100)],
)
def test_the_papers_presets_are_the_papers(
    preset: str, budget: int, k: int, eoh_directions: int, sample_updates: int
) -> None:
    """Else a run at "the paper's budget" has another number of candidates or updates, and cannot be compared."""
    eoh, sample = config(preset, method="esopt-eoh"), config(preset, method="esopt-sample")
    assert eoh.plan == (("e1", 10), ("e2", 10), ("m1", 10 * k), ("m2", 10 * k))
    assert (eoh.directions, eoh.generations, updates(eoh)) == (eoh_directions, 25, 50)
    assert sample.plan == (("i1", 20),)
    assert (sample.generations, updates(sample)) == (sample_updates, sample_updates)
    for one in (eoh, sample):
        assert sum(count for _, count in one.plan) * one.generations == one.budget == budget
        assert (one.population, one.seed, one.samples_per_direction) == (10, 2024, 1)
        large = one.resolved(8_000_000_000)
        assert (large.sigma, large.sigma_final, large.alpha, large.sigma_schedule) == (1e-3, 0.0, 5e-4, "cosine")
        assert (large.reward, large.prefill, large.scope) == ("paper", "none", "full")


@pytest.mark.parametrize("preset", ["ahd-1000", "ahd-2000"])
@pytest.mark.parametrize("family", ["eoh", "sample"])
def test_the_baseline_writes_the_same_batches(preset: str, family: str) -> None:
    """Else the arm that learns spends another budget than the one it is compared with."""
    assert config(preset, method=family).plan == config(preset, method=f"esopt-{family}").plan


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("base", ["ahd-1000", "ahd-2000", "ahd-cpu"])
def test_every_preset_goes_over_every_search(name: str, base: str) -> None:
    """Else an ablation is shipped that cannot be run."""
    found = config(base, name, method="esopt-eoh")
    assert found.method == "esopt-eoh"
    assert load_preset(name).about, "presets are listed by what they are for"


def test_every_ablation_has_a_preset() -> None:
    """Else it takes reading the code to find one."""
    shipped = {load_preset(name).settings.get("ablation", "none") for name in preset_names()}
    assert shipped == set(ABLATIONS)


CHANGED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "noise only": ("noise-only", {}, {"ablation": "noise-only"}),
    "no perturbation": ("no-perturbation", {}, {"ablation": "no-perturbation"}),
    "shuffled": ("shuffled-rewards", {}, {"shuffle_rewards": True}),
    "constant": ("constant-sigma", {}, {"sigma_schedule": "constant"}),
    "floor": ("sigma-floor", {}, {"sigma_final": 5e-4}),
    "floor of norms": ("sigma-floor", {"scope": "norms"}, {"sigma_final": 0.03}),
    "half": ("alpha-half", {}, {"alpha": 2.5e-4}),
    "double of norms": ("alpha-double", {"scope": "norms"}, {"alpha": 0.06}),
    "G": ("directions-20", {}, {"directions": 20}),
}


@pytest.mark.parametrize(("preset", "given", "change"), CHANGED.values(), ids=CHANGED)
def test_an_ablation_changes_one_thing(preset: str, given: dict[str, Any], change: dict[str, Any]) -> None:
    """Else a difference between two arms has two causes."""
    before, after = config("ahd-1000", **given), config("ahd-1000", preset, **given)
    changed = {name for name in vars(before) if getattr(before, name) != getattr(after, name)}
    assert changed == change.keys()
    assert {name: getattr(after, name) for name in change} == change


def test_another_scope_keeps_its_own_defaults() -> None:
    """Else norms are moved with the sigma of whole models, which teaches nothing."""
    norms = config("ahd-1000", "scope-norms").resolved(8_000_000_000)
    assert (norms.scope, norms.sigma, norms.sigma_final, norms.alpha) == ("norms", 0.06, 0.02, 0.03)


def test_what_is_given_goes_over_all_presets(tmp_path: Path) -> None:
    """Else an option beside --preset is silently without effect."""
    found = config("ahd-2000", "directions-20", directions=4, method="esopt-sample", alpha=0.1, temperature=0.5)
    assert (found.directions, found.alpha, found.sampling.temperature) == (4, 0.1, 0.5)


def preset_file(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


REFUSED = {
    "unknown key": ("budgets = 5", r"mine.toml: unknown key 'budgets'. Did you mean 'budget'\?"),
    "dashes": ("max-new-tokens = 5", r"unknown key 'max-new-tokens'. Did you mean 'max_new_tokens'\?"),
    "unknown key of a table": ("[eoh]\nalfa = 1.0", r"mine.toml, \[eoh\]: unknown key 'alfa'. Did you mean 'alpha'\?"),
    "unknown table": ("[esopt]\nalpha = 1.0", "unknown key 'esopt'. .*eoh"),
    "no near key": ("zzz = 1", "unknown key 'zzz'. Known: .*budget"),
    "a problem": ("problem = 'tsp_construct'", "unknown key 'problem'"),
    "text for a number": ("budget = 'many'", "budget must be a whole number, not 'many'"),
    "fraction for a whole number": ("budget = 1.5", "budget must be a whole number, not 1.5"),
    "true for a number": ("seed = true", "seed must be a whole number, not True"),
    "number for true": ("antithetic = 1", "antithetic must be true or false, not 1"),
    "number for a text": ("scope = 1", "scope must be a text, not 1"),
    "no text about": ("about = 1", "about must be a text"),
    "a method inside a table": ("[sample]\nmethod = 'eoh'", r"\[sample\]: method decides which tables hold"),
    "no TOML": ("budget = x\nseed = 1", r"mine.toml is no TOML file: .*line 1"),
    "twice": ("budget = 1\nbudget = 2", "is no TOML file"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_files_that_are_not_understood_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """Else a typing error in a file means a search with other settings than its author thinks."""
    with pytest.raises(UserError, match=message):
        load_preset(preset_file(tmp_path, text))


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    """Else the user sees a traceback."""
    with pytest.raises(UserError, match=r"Cannot read .*none.toml: No such file"):
        load_preset(str(tmp_path / "none.toml"))
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is no TOML file"):
        load_preset(str(tmp_path / "mine.toml"))


def test_unknown_names_say_the_nearest() -> None:
    """Else it takes a second command to find the right name."""
    with pytest.raises(UserError, match=r"'ahd1000'. Did you mean 'ahd-1000'\?"):
        load_preset("ahd1000")


def test_whole_numbers_will_do_for_fractions(tmp_path: Path) -> None:
    """Else `alpha = 1` is an error, or a run's settings file says 1 where it said 1.0."""
    alpha = load_preset(preset_file(tmp_path, "alpha = 1")).settings["alpha"]
    assert (alpha, type(alpha)) == (1.0, float)


def test_paths_start_from_their_file(tmp_path: Path) -> None:
    """Else a preset works in one working folder only."""
    found = load_preset(preset_file(tmp_path, "data = 'sets'\nmodel = './weights'")).settings
    assert found == {"data": str(tmp_path / "sets"), "model": str(tmp_path / "weights")}
    assert load_preset(preset_file(tmp_path, "model = 'org/name'")).settings == {"model": "org/name"}
