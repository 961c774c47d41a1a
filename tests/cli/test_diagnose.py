"""`eoh-esopt diagnose`: tables to read, to paste and to compute with, and what is wrong with what it is given."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from made_up_logs import ELEMENTS, MadeUp, write_log
from safetensors.torch import save_file

from operators.records import Update

Call = Callable[..., tuple[int, str, str]]
UPDATE = Update(0, (1, 2, 3), (0.1, 0.4, 0.4), (-1.4, 0.7, 0.7), 0.03, 0.06)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with one update, by the additive noise of the whole model."""
    return write_log(tmp_path / "a[b]", [MadeUp(0, "m1", [6.0, 5.5, None], UPDATE)], scope="full", sigma=0.06)


def test_help_shows_examples(call: Call) -> None:
    """Else the user has to guess how the arguments go together."""
    code, out, err = call("diagnose", "--help")
    assert (code, err) == (0, "")
    assert out.partition("Example")[2].splitlines()[1].strip().startswith("eoh-esopt diagnose")


def test_tables_come_with_what_they_mean(call: Call, run: Path) -> None:
    """Else the user takes a share of 96 % within sigma for a finding."""
    code, out, err = call("diagnose", run)
    assert (code, err) == (0, "")
    assert "a[b]" in out
    assert "Sizes do not tell learning from noise" in " ".join(out.split())
    assert "signal" not in out, "nothing was measured"
    assert "Candidates by operator" in out


def test_markdown_has_a_heading_a_run(call: Call, run: Path) -> None:
    """Else the tables of several runs run together."""
    code, out, err = call("diagnose", run, run, "-f", "md", "--table", "operators")
    assert (code, err) == (0, "")
    assert out.count("# a[b]") == out.count("| m1 | 3 |") == 2


def test_csv_names_the_run_of_each_row(call: Call, run: Path) -> None:
    """Else the updates of several runs cannot be told apart in one file."""
    code, out, err = call("diagnose", run, run, "-f", "csv", "--table", "rewards")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["run"], row["update"], row["lowest"], row["signal"]) for row in rows] == 2 * [("a[b]", "0", "0.1", "")]


def test_json_is_all_there_is_on_stdout(call: Call, run: Path) -> None:
    """Else a program that reads it breaks."""
    code, out, err = call("diagnose", run, "-f", "json")
    assert (code, err) == (0, "")
    [found] = json.loads(out)
    assert (found["run"], found["learning"]["count"]) == ("a[b]", 1)
    assert found["updates"][0]["rewards"] == list(UPDATE.rewards)
    assert found["updates"][0]["moved"]["relative"] is None


def test_updates_are_compared_with_weights_from_files(call: Call, run: Path, tmp_path: Path) -> None:
    """Else nobody can say whether an update was large."""
    save_file({"a.weight": torch.full((ELEMENTS,), 0.5)}, tmp_path / "model.safetensors", metadata={"format": "pt"})
    code, out, err = call("diagnose", run, "--weights", tmp_path, "-f", "json")
    assert (code, err) == (0, "")
    moved = json.loads(out)[0]["updates"][0]["moved"]
    assert moved["relative"] == pytest.approx(moved["size"] / 0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument"),
        (("nowhere",), "nowhere"),
        (("RUN", "--table", "unheard"), "is not one of"),
        (("RUN", "--weights", "nowhere"), "cannot be loaded"),
    ],
)
def test_bad_input_ends_in_one_sentence(call: Call, run: Path, arguments: tuple[str, ...], message: str) -> None:
    """Else the user gets a traceback instead of what to do."""
    code, out, err = call("diagnose", *(run if one == "RUN" else one for one in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
