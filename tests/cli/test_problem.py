"""The `problem` commands: what they print for people and programs, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from user_problems import RULES, changed, put

from problems import registry
from problems.references import references
from problems.tsp_construct import SETS

Call = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("command", [["problem"], *(["problem", name] for name in ("list", "show", "check"))])
def test_help_shows_examples(call: Call, command: list[str]) -> None:
    """Else the user has to guess how the arguments go together."""
    code, out, err = call(*command, "--help")
    assert (code, err) == (0, "")
    assert out.partition("Example")[2].splitlines()[1].strip().startswith("eoh-esopt " + " ".join(command))


def test_the_list_is_complete(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the user does not learn what can be searched, nor what there is to beat."""
    monkeypatch.setenv("COLUMNS", "300")
    code, out, err = call("problem", "list")
    assert (code, err) == (0, "")
    for name in registry.names():
        [line] = [line for line in out.splitlines() if line.startswith(f"{name} ")]
        assert registry.get(name).measure in line
    assert "tour length, min" in out


def test_the_list_as_json(call: Call) -> None:
    """Else a script has to read a table."""
    code, out, err = call("problem", "list", "--format", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [one["problem"] for one in found] == list(registry.names())
    for one in found:
        problem = registry.get(one["problem"])
        assert one["instances"] == len(problem.instances)
        assert one["references"] == {known.name: known.mean for known in references(problem)}
        assert one["arguments"] == list(problem.task.arguments)


def test_show_says_what_the_model_is_told(call: Call) -> None:
    """Else the user writes a heuristic by hand and does not know its arguments."""
    code, out, err = call("problem", "show", "tsp_construct")
    assert (code, err) == (0, "")
    task = registry.get("tsp_construct").task
    assert task.signature in out
    assert " ".join(task.description.split()) in " ".join(out.split())
    assert "Mean tour length of what is known, lower is better" in out
    for size in SETS.sizes("test"):
        assert f"test{size}" in out


def test_show_as_json(call: Call) -> None:
    """Else a script cannot tell what is known about each set."""
    code, out, err = call("problem", "show", "tsp_construct", "--format", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["problem"], found["measure"], found["maximise"]) == ("tsp_construct", "tour length", False)
    assert list(found["sets"]) == ["train50", *(f"test{size}" for size in SETS.sizes("test"))]
    assert found["sets"]["train50"]["references"]["nearest neighbour"] == pytest.approx(7.0044, abs=5e-5)


def test_show_a_users_own(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the user does not see what the model will be told."""
    put(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, out, err = call("problem", "show", "my_problem.py")
    assert (code, err) == (0, "")
    assert "def score_bins(item, room):" in out
    assert "item: size of the item." in out
    assert "Items come one by one" in out
    code, out, err = call("problem", "show", "my_problem.py", "--format", "json")
    assert (code, err) == (0, "")
    assert list(json.loads(out)["sets"]) == ["all"]


def test_check_of_a_sound_problem(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a script that guards a run stops it, or the user is sent to look for a mistake that is none."""
    put(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, out, err = call("problem", "check", "my_problem.py")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["ok"] * len(out.splitlines())
    assert "a fair limit is --timeout " in out


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (changed(("list(np", "list(no")), "NameError: name 'no' is not defined"),
        (changed(("return -room", "return -room[999]")), "line 9, in score_bins: return -room[999]"),
        (changed((RULES, "        load = bins\n")), "forged decisions: no decisions: accepted, and better"),
    ],
)
def test_check_of_a_problem_with_mistakes(call: Call, tmp_path: Path, source: str, told: str) -> None:
    """Else a script goes on to call a model for hours on a problem that cannot be solved."""
    code, out, err = call("problem", "check", put(tmp_path, source))
    assert (code, err) == (1, "")
    assert told in out
    assert [line for line in out.splitlines() if line.startswith("ERROR")]


def test_check_prints_markup_as_text(call: Call, tmp_path: Path) -> None:
    """Else an error message with brackets is swallowed, or ends the command."""
    code, out, _ = call("problem", "check", put(tmp_path, changed(("return bins\n", "raise KeyError('[/no]')\n"))))
    assert code == 1
    assert "KeyError: '[/no]'" in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("show", "tsp_constract"), "'tsp_constract'. Did you mean 'tsp_construct'?"),
        (("show", "none.py"), "There is no file none.py"),
        (("show",), "NAME"),
        (("show", "tsp_construct", "--data", "/no/folder"), "/no/folder does not exist"),
        (("show", "tsp_construct", "--format", "yaml"), "yaml"),
        (("list", "all"), "all"),
        (("check",), "NAME"),
        (("check", "tsp_construct", "--timeout", "soon"), "soon"),
        (("check", "tsp_construct", "--timeout", "0"), "time limit"),
        (("try",), "try"),
    ],
)
def test_bad_input_is_told_in_one_line(call: Call, arguments: tuple[str, ...], told: str) -> None:
    """Else a typing error ends in a traceback, or a script takes it for a finding."""
    code, _, err = call("problem", *arguments)
    assert code == 2
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert told in err


@pytest.mark.parametrize("mistake", [("list(np", "list(no"), ("def score(", "def rate("), ("return -room", "return -")])
def test_show_names_mistakes_in_a_file(call: Call, tmp_path: Path, mistake: tuple[str, str]) -> None:
    """Else a slip in the user's file ends in a traceback as if it were a defect of ours."""
    code, out, err = call("problem", "show", put(tmp_path, changed(mistake)))
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_show_of_published_files(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a user with other instances is shown what is known about ours."""
    for split, size in (("train", 50), *(("test", size) for size in SETS.sizes("test"))):
        points = np.random.RandomState(size).random_sample((2, size, 2))
        np.save(tmp_path / f"{split}{size}_dataset.npy", points)
    monkeypatch.chdir(tmp_path)
    code, out, err = call("problem", "show", "tsp_construct", "--data", ".", "--format", "json")
    assert (code, err) == (0, "")
    assert {one["instances"] for one in json.loads(out)["sets"].values()} == {2}
    assert json.loads(out)["sets"]["train50"]["ceiling"] is None
