"""`eoh-esopt probe`: its outputs, and what is wrong with what it is given. What it computes is tested elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.experiments.probe_record import Cell, Measurement, write_measurement

Call = Callable[..., tuple[int, str, str]]
PROBE = ("probe", "tsp_construct", "--model", "made-up", "--scope", "norms", "--workers", "1")
SMALL = ("--pairs", "6", "--probe-samples", "3", "--sigmas", "0.03,0.06", "--budget", "100", "--directions", "4")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A finished measurement of these settings: no model is needed."""
    rng = np.random.default_rng(1)
    slopes = rng.standard_normal((6, 1, 1)) * np.array([1.0, -1.0])[None, :, None]
    cells = [
        Cell(name, sigma, 0.5 + sigma * slopes + 0.1 * rng.random((6, 2, 3)), rng.integers(0, 2, (6, 2, 3)) + 0.0)
        for sigma in (0.0, 0.03, 0.06)
        for name in ("m1", "m2")
    ]
    config = RunConfig("tsp_construct", "made-up", scope="norms", reward="graded", prefill="signature")
    path = tmp_path / "probe.json"
    write_measurement(path, Measurement(config.resolved(None), 6, 3, {"checksum": "a" * 64}, tuple(cells)))
    return path


def test_help_shows_examples_and_the_options_of_a_run(call: Call) -> None:
    """Else the user has to guess how the planned run is described."""
    code, out, err = call("probe", "--help")
    assert (code, err) == (0, "")
    assert "eoh-esopt probe tsp_construct" in out
    for option in ("--budget", "--samples-per-direction", "--sigma-final", "--backend", "--repetitions"):
        assert option in out


def test_the_table_answers_in_sentences(call: Call, kept: Path) -> None:
    """Else the user has figures and no answer."""
    code, out, err = call(*PROBE, *SMALL, "--out", kept)
    assert (code, err) == (0, "")
    for text in ("Measured", "signal of a direction", "As planned", "mean reward", "Recommended: --sigma", "Guesses:"):
        assert text in out


def test_markdown_has_tables_that_join(call: Call, kept: Path) -> None:
    """Else the answer cannot be pasted into a page."""
    code, out, _ = call(*PROBE, *SMALL, "--out", kept, "-f", "md")
    assert code == 0
    tables = [block for block in out.split("\n\n") if block.startswith("| ")]
    assert len(tables) == 3
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_json_is_all_there_is_on_stdout(call: Call, kept: Path) -> None:
    """Else a program cannot read the answer."""
    code, out, _ = call(*PROBE, *SMALL, "--out", kept, "-f", "json", "--repetitions", "5")
    assert code == 0
    found = json.loads(out)
    assert found["repetitions"] == 5
    assert [one["sigma"] for one in found["levels"]] == [0.0, 0.0, 0.03, 0.03, 0.06, 0.06]
    assert found["as_planned"]["reward_seen"]["verdict"] in ("visible", "perhaps visible", "not visible")
    assert set(found["recommended"]) >= {"sigma", "alpha", "directions", "samples_per_direction"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sigmas", "a,b"), "--sigmas takes numbers"),
        (("--sigmas", "0,0.1"), "--sigmas takes numbers above 0"),
        (("--pairs", "1"), "at least 2 pairs"),
        (("--repetitions", "0"), "repetitions must be at least 1"),
        (("--most-damage", "0"), "--most-damage must be above 0"),
        (("--method", "eoh"), "Use esopt-eoh"),
        (("--workers", "0"), "workers must be at least 1"),
        (("--seed", "5"), "was measured with seed"),
        (("--budget", "1"), "less than one batch"),
        (("--preset", "no-such-preset"), "no-such-preset"),
        (("--preset", "shuffled-rewards"), "shuffle_rewards is True"),
    ],
)
def test_bad_input_is_one_sentence(call: Call, kept: Path, options: tuple[str, ...], message: str) -> None:
    """Else a typo costs minutes, or ends in a traceback."""
    code, out, err = call(*PROBE, *SMALL, "--out", kept, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_the_model_has_to_be_named(call: Call) -> None:
    """Else nobody knows what is probed."""
    code, _, err = call("probe", "tsp_construct")
    assert (code, err.count("\n")) == (2, 1)
    assert "--model is missing" in err
