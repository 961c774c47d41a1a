"""What a heuristic is worth on a set: numbers as numpy has them, and no mean where there is none."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from eoh_esopt.reports.scores import Scores, as_csv, as_dict, as_json, as_table
from operators.records import Outcome, Status
from problems.references import Reference, references
from problems.tsp_construct import TspConstruct

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9)
FAILED = Outcome(Status.RAISED, detail='KeyError: "a", b (line 3)')


def solved(value: float) -> Outcome:
    return Outcome(Status.OK, value, (value,), calls=1)


def scores(found: list[Outcome], *known: Reference, maximise: bool = False) -> Scores:
    return Scores("own", "test50", "cost", maximise, tuple(found), known)


def ceiling(*found: float | None) -> Reference:
    return Reference("best known", found, "by hand", ceiling=True)


def table(found: Scores) -> str:
    """As printed."""
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(as_table(found))
    return console.export_text()


def rows(text: str) -> list[list[str]]:
    """The cells of the lines with figures."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.split("\n") if line.startswith("│")]


@given(values, st.booleans())
def test_figures_are_those_of_numpy(found: list[float], maximise: bool) -> None:
    """A mean or a standard error in a paper would be wrong."""
    natural = np.array(found)
    objectives = -natural if maximise else natural
    one = scores([solved(value) for value in objectives], ceiling(*natural), maximise=maximise)
    assert one.complete
    assert one.values == tuple(found)
    assert one.mean == pytest.approx(natural.mean(), rel=1e-12, abs=1e-9)
    if len(found) == 1:
        assert one.standard_error is None
    else:
        assert one.standard_error == pytest.approx(natural.std(ddof=1) / np.sqrt(len(found)), abs=1e-9)


@pytest.mark.parametrize(("maximise", "expected"), [(False, 0.1), (True, -0.1)])
def test_the_gap_is_positive_when_it_is_worse(maximise: bool, expected: float) -> None:
    """A heuristic that is worse than the optimum would seem to beat it."""
    sign = -1 if maximise else 1
    one = scores([solved(sign * 10.0), solved(sign * 12.0)], ceiling(8.0, 12.0), maximise=maximise)
    assert one.gap == pytest.approx(expected)
    gaps = [row["gap"] for row in as_dict(one)["instances"]]
    assert gaps == pytest.approx([0.25 if expected > 0 else -0.25, 0.0])


def test_a_gap_to_a_negative_ceiling_and_to_none() -> None:
    """The sign of the gap would turn, or a division by zero end the report."""
    assert scores([solved(-9.0)], ceiling(-10.0)).gap == pytest.approx(0.1)
    assert scores([solved(1.0)], ceiling(0.0)).gap is None
    assert scores([solved(1.0)]).gap is None
    assert scores([solved(1.0)], Reference("greedy", (1.0,))).gap is None


def test_a_failed_instance_leaves_no_mean() -> None:
    """A heuristic that fails on the hard instances would look better than one that solves them."""
    one = scores([solved(1.0), FAILED, solved(3.0)], Reference("greedy", (1.0, 2.0, 3.0)), ceiling(1.0, 2.0, 3.0))
    assert not one.complete
    assert one.values == (1.0, None, 3.0)
    assert (one.mean, one.standard_error, one.gap) == (None, None, None)
    text = table(one)
    assert "1 of 3 instances failed, so there is no mean: raised 1" in text
    assert 'instance 1: raised, KeyError: "a", b (line 3)' in text
    assert "0:  1.0000  failed  3.0000" in text
    assert rows(text)[-1] == ["this heuristic", "", "", ""]
    assert as_dict(one)["solved"] == 2
    assert "infrastructure" not in text


def test_many_failures_are_counted() -> None:
    """A report of a thousand failed instances could not be read."""
    lost = Outcome(Status.INFRASTRUCTURE, detail="given up after 3 attempts: fork")
    text = table(scores([FAILED] * 20 + [lost] * 2))
    assert "22 of 22 instances failed, so there is no mean: raised 20, infrastructure 2" in text
    assert text.count("KeyError") == 5
    assert "a failure of this machine, not of the heuristic: run it again" in text


def test_markup_in_details_is_text() -> None:
    """A candidate's error message would change how the report looks, or end it."""
    assert "boom [/no] [red]" in table(scores([Outcome(Status.RAISED, detail="boom [/no] [red]")]))


@pytest.mark.parametrize("maximise", [False, True])
def test_the_table_ranks_what_is_known(maximise: bool) -> None:
    """A reader would have to search for whether the heuristic is better than the baseline."""
    sign = -1 if maximise else 1
    known = (Reference("low", (1.0, 3.0)), Reference("high", (8.0, 9.0)), Reference("part", (1.0, None)))
    top = ceiling(10.0, 10.0) if maximise else ceiling(1.0, 1.0)
    text = table(scores([solved(sign * 4.0), solved(sign * 6.0)], *known, top, maximise=maximise))
    first, *_ = text.split("\n")
    assert first.startswith("own test50, 2 instances: cost, " + ("higher" if maximise else "lower") + " is better")
    assert "gap to best known" in text
    names = [row[0] for row in rows(text)]
    expected = ["low", "this heuristic", "high"]
    assert names == ["best known", *(reversed(expected) if maximise else expected), "part"]
    [row] = [row for row in rows(text) if row[0] == "this heuristic"]
    assert row == ["this heuristic", "5.0000", "1.0000", "50.00%" if maximise else "400.00%"]


def test_a_single_instance_has_no_standard_error() -> None:
    """A spread of zero would be claimed where nothing is known about it."""
    one = scores([solved(2.0)], Reference("greedy", (3.0,)))
    assert rows(table(one)) == [["this heuristic", "2.0000", "", ""], ["greedy", "3.0000", "", ""]]
    assert as_dict(one)["standard_error"] is None


def test_ceilings_of_some_instances_only() -> None:
    """The gap of the mean would be to the mean of other instances."""
    one = scores([solved(2.0), solved(3.0)], ceiling(1.0, None))
    assert one.gap is None
    found = as_dict(one)
    assert [row["ceiling"] for row in found["instances"]] == [1.0, None]
    assert [row["gap"] for row in found["instances"]] == [1.0, None]
    assert found["references"] == {"best known": None}
    assert ["this heuristic", "2.5000", "0.5000", ""] in rows(table(one))


@given(st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=20), st.booleans())
def test_csv_and_json_say_the_same(found: list[float | None], maximise: bool) -> None:
    """A program that reads the one or the other would get other values, or none."""
    sets = [scores([FAILED if value is None else solved(value) for value in found], maximise=maximise)] * 2
    read = json.loads(as_json(sets))
    lines = list(csv.DictReader(io.StringIO(as_csv(sets))))
    assert len(lines) == 2 * len(found)
    assert len(read) == 2
    assert [row for one in read for row in one["instances"]] == [parsed(line) for line in lines]
    natural = [None if value is None else (-value if maximise else value) for value in found]
    assert [row["value"] for row in read[0]["instances"]] == natural
    assert {line["problem"] + line["set"] for line in lines} == {"owntest50"}
    assert all(FAILED.detail == line["detail"] for line in lines if line["status"] == "raised")


def parsed(line: dict[str, str]) -> dict[str, Any]:
    """A row of the CSV as the JSON has it."""
    numbers = {name: float(line[name]) if line[name] else None for name in ("value", "ceiling", "gap")}
    return {"instance": int(line["instance"]), "status": line["status"], **numbers, "detail": line["detail"]}


def test_json_is_complete() -> None:
    """A program would have to know the problem to make sense of the numbers."""
    [found] = json.loads(as_json([scores([solved(2.0), solved(4.0)], Reference("greedy", (3.0, 5.0)), ceiling(2, 2))]))
    assert {name: found[name] for name in found if name != "instances"} == {
        "problem": "own",
        "set": "test50",
        "measure": "cost",
        "maximise": False,
        "solved": 2,
        "mean": 3.0,
        "standard_error": 1.0,
        "gap": 0.5,
        "references": {"greedy": 4.0, "best known": 2.0},
        "ceiling": {"name": "best known", "mean": 2.0, "by": "by hand"},
    }


def test_outcomes_are_put_in_order() -> None:
    """Instances would be shown with the values of others: they finish in any order."""
    problem = TspConstruct(size=6, n_instances=3)
    one = Scores.of(problem, "mine", {2: solved(2.0), 0: solved(0.5), 1: solved(1.0)})
    assert one.values == (0.5, 1.0, 2.0)
    assert (one.problem, one.measure, one.maximise) == ("tsp_construct", "tour length", False)
    assert one.known == references(problem)
    assert all(len(reference.values) == 3 for reference in one.known)
    assert "tsp_construct mine, 3 instances" in table(one)
