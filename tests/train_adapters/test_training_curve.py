"""Trainings side by side: the figures stand in the table, and a picture is written or the mistake is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from training_cases import of_kind, settings, train

from operators.errors import UserError
from train_adapters.curve import training_curve


def test_figures_are_those_of_the_log(tmp_path: Path) -> None:
    """A user would compare trainings by other figures than they had."""
    run = tmp_path / "mine"
    train(run, settings(generations=2))
    done = CliRunner().invoke(training_curve, [str(run), "-o", str(tmp_path / "curve.svg")], catch_exceptions=False)
    first = next(one for one in of_kind(run, "evaluation") if one["split"] == "val")
    assert f"{first['mean']:.3f}" in done.output
    assert str(sum(one["episodes"] for one in of_kind(run, "generation"))) in done.output
    assert (tmp_path / "curve.svg").read_text().count("<svg") == 1
    CliRunner().invoke(training_curve, [str(run), "-o", str(tmp_path / "curve.png")], catch_exceptions=False)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_mistakes_are_named(tmp_path: Path) -> None:
    """An empty picture would look like a training that learnt nothing."""
    (tmp_path / "events.jsonl").touch()
    with pytest.raises(UserError, match="no evaluation on the validation split"):
        CliRunner().invoke(training_curve, [str(tmp_path)], catch_exceptions=False)
    with pytest.raises(UserError, match=r"Let it end in \.svg or \.png"):
        CliRunner().invoke(training_curve, [str(tmp_path), "-o", "curve.pdf"], catch_exceptions=False)
