"""`eoh-esopt report`: what it writes where, and what it refuses before it reads anything."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from eoh_esopt.cli.report import report
from operators.errors import UserError


def call(*arguments: object) -> Result:
    return CliRunner().invoke(report, list(map(str, arguments)))


def test_it_writes_the_page_the_tables_and_the_figures(many_runs: Path, tmp_path: Path) -> None:
    """Else there is nothing to send, to load into a notebook or to put on a slide."""
    out, tables, figures = tmp_path / "r.html", tmp_path / "a" / "tables", tmp_path / "figures"
    result = call(many_runs, "-o", out, "--tables", tables, "--figures", figures)
    assert result.exit_code == 0, result.output
    assert "8 runs of 2 tasks" in result.output
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    stems = {path.stem for path in tables.iterdir()}
    assert "tsp-construct-results" in stems
    for stem in stems:
        assert {path.suffix for path in tables.glob(f"{stem}.*")} == {".md", ".csv", ".json"}
    assert json.loads((tables / "tsp-construct-runs.json").read_text())["rows"]
    for path in figures.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        with Image.open(path.with_suffix(".png")) as picture:
            picture.verify()
            assert picture.width > 800
    assert len(list(figures.iterdir())) == 16
    assert not list(tmp_path.rglob("*.part"))


def test_the_same_runs_give_the_same_files(one_run: Path, tmp_path: Path) -> None:
    """Else a report under version control changes with every build."""
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        assert call(one_run, "-o", folder / "r.html", "--tables", folder, "--figures", folder).exit_code == 0
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes(), path.name


def test_a_page_that_is_there_is_renewed(one_run: Path, tmp_path: Path) -> None:
    """Else a report on a run that goes on cannot be made again under its name."""
    out = tmp_path / "r.html"
    out.write_text("old")
    assert call(one_run, "-o", out).exit_code == 0
    assert out.read_text(encoding="utf-8")[:3] != "old"


@pytest.mark.parametrize(
    ("runs", "out", "told"),
    [
        ("missing", "r.html", "is not there"),
        ("empty", "r.html", "holds no run"),
        ("runs", "empty", "is a folder"),
        ("runs", "nowhere/r.html", "no folder"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(
    one_run: Path, tmp_path: Path, runs: str, out: str, told: str
) -> None:
    """Else a mistyped name ends in a traceback, or after minutes of reading."""
    (tmp_path / "empty").mkdir()
    place = one_run if runs == "runs" else tmp_path / runs
    result = call(place, "-o", tmp_path / out)
    assert isinstance(result.exception, UserError)
    assert told in str(result.exception)
    assert "Give" in str(result.exception) or "give" in str(result.exception)


def test_a_file_where_a_folder_is_to_be_is_refused(one_run: Path, tmp_path: Path) -> None:
    """Else the page is written and then the command fails."""
    (tmp_path / "file").write_text("")
    result = call(one_run, "-o", tmp_path / "r.html", "--tables", tmp_path / "file")
    assert isinstance(result.exception, UserError)
    assert not (tmp_path / "r.html").exists()
