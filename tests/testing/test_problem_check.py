"""`problem check` finds each kind of mistake in a user's problem, shows where it is, and lets sound problems pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from user_problems import RULES, changed, put

from eoh_esopt.testing import problem_check
from eoh_esopt.testing.problem_check import CheckFinding, Verdict, check_problem
from operators.errors import UserError
from problems import registry


def check(folder: Path, *changes: tuple[str, str], timeout: float = 10.0) -> dict[str, CheckFinding]:
    """The findings about bin packing with changes, by what was looked at."""
    found = list(check_problem(put(folder, changed(*changes)), timeout))
    assert len({finding.what for finding in found}) == len(found)
    return {finding.what: finding for finding in found}


def error(found: dict[str, CheckFinding], what: str) -> str:
    """The text of the only errors there are, those about `what`."""
    assert [name for name, finding in found.items() if finding.verdict is Verdict.ERROR] == [what]
    return found[what].found


def test_the_example_of_the_documentation_is_sound(tmp_path: Path) -> None:
    """The first thing a user tries would seem to be broken, or say nothing of what it found."""
    found = check(tmp_path)
    assert [name for name, finding in found.items() if finding.verdict is not Verdict.FINE] == []
    assert list(found) == [
        "file",
        "template",
        "instances",
        "sandbox",
        "seed heuristic: Take the fullest bin.",
        "reproducible",
        "forged decisions",
        "time",
        "references",
    ]
    assert "OnlineBinPacking loads in" in found["file"].found
    assert "def score_bins(item, room): 1 seed heuristic" in found["template"].found
    assert found["instances"].found == "5"
    assert re.search(r"bins 5\d(\.\d)? after 600 calls", found["seed heuristic: Take the fullest bin."].found)
    assert re.search(r"a fair limit is --timeout \d+$", found["time"].found)


@pytest.mark.parametrize("name", registry.names())
def test_built_in_problems_are_sound(name: str) -> None:
    """Problems that come with it would not meet what is asked of a user's own."""
    found = list(check_problem(name, 60.0))
    assert [finding for finding in found if finding.verdict is Verdict.ERROR] == []
    assert sum(finding.what.startswith("seed heuristic") for finding in found) == len(registry.get(name).task.seeds)


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (
            ("import numpy as np\n\nfrom", "import numby as np\n\nfrom"),
            ["line 3, in <module>", "No module named 'numby'"],
        ),
        (("measure = ", "measure == "), ["line 11, in", "NameError"]),
        (
            ("    def solve(self, items, score_bins):", "    def solve(self, items, score_bins:"),
            ["SyntaxError", "line 27"],
        ),
        (("self.instances = list(np", "self.instances = list(no"), ["line 25, in __init__", "NameError: name 'no'"]),
        (("            return -room\n", "            return -\n"), ['"template", line 9', "SyntaxError"]),
    ],
)
def test_a_file_that_does_not_load(tmp_path: Path, change: tuple[str, str], lines: list[str]) -> None:
    """The user would get one line, and have to find the place alone."""
    found = error(check(tmp_path, change), "file")
    assert "\n" in found
    for line in lines:
        assert line in found
    assert "problem_check.py" not in found
    assert "registry.py" not in found


@pytest.mark.parametrize(
    "name", ["no_such_problem", "none.py", "none.py:Own"], ids=["no problem", "no file", "no file with a class"]
)
def test_what_is_not_there(name: str) -> None:
    """A wrong path would end in a traceback."""
    [finding] = check_problem(name, 10.0)
    assert finding.verdict is Verdict.ERROR
    assert name.partition(":")[0] in finding.found
    assert "\n" not in finding.found


@pytest.mark.parametrize(
    "change", [("self.instances = list(", "self.instances = []\n        list("), ("self.instances =", "instances =")]
)
def test_no_instances(tmp_path: Path, change: tuple[str, str]) -> None:
    """A search would run on nothing."""
    assert "has no instances. Set self.instances" in error(check(tmp_path, change), "file")


def test_a_template_that_raises(tmp_path: Path) -> None:
    """The user would be told that a seed heuristic fails, but not where."""
    found = check(
        tmp_path,
        ("            return -room\n", "            return helper(room)\n\n        helper = lambda x: x[999]\n"),
    )
    seed = found["seed heuristic: Take the fullest bin."]
    assert seed.verdict is Verdict.ERROR
    first, *trace = seed.found.split("\n")
    assert first.startswith("raised: IndexError: ")
    assert [line.partition(":")[0] for line in trace] == [
        "line 9, in score_bins",
        "line 11, in <lambda>",
        "IndexError",
    ]
    assert "time" not in found, "what follows would speak of a heuristic that fails"


@pytest.mark.parametrize(
    ("change", "status", "lines"),
    [
        (("bins.append(fits[", "bins.append(fits[999 + "), "raised", ["in solve", "bins.append(", "IndexError"]),
        (("return bins\n", "return [bins, [1]]\n"), "wrong_shape", ["the decisions of OnlineBinPacking are no array"]),
        (("load = np", "load = no"), "invalid_solution", ["in score", "load = no.bincount", "NameError: name 'no'"]),
        (("load.max() > 150", "load.max() > 15"), "invalid_solution", ["in score", "a bin holds more than 150"]),
    ],
)
def test_a_driver_or_score_that_raises(tmp_path: Path, change: tuple[str, str], status: str, lines: list[str]) -> None:
    """The user would be told that a seed heuristic fails, while the mistake is in the problem."""
    found = check(tmp_path, change)
    assert found["seed heuristic: Take the fullest bin."].found.startswith(f"{status}: ")
    assert found["traceback"].verdict is Verdict.ERROR
    for line in lines:
        assert line in found["traceback"].found


def test_a_score_that_is_no_number(tmp_path: Path) -> None:
    """The user would learn of it from the first candidate of a run."""
    found = check(tmp_path, ("return np.count_nonzero(load)", "return np.count_nonzero(load), len(items)"))
    message = "score of OnlineBinPacking returned a value of type tuple, expected one number"
    assert message in found["seed heuristic: Take the fullest bin."].found
    assert message in found["traceback"].found


@pytest.mark.parametrize(
    "change",
    [
        ("return np.count_nonzero(load)", "return np.count_nonzero(load) + np.random.default_rng().random()"),
        ("np.argmax(values)", "np.random.default_rng().integers(len(fits))"),
    ],
    ids=["score", "solve"],
)
def test_a_value_that_changes(tmp_path: Path, change: tuple[str, str]) -> None:
    """A search would keep the luckiest heuristic, and no run could be repeated."""
    assert "Seed every generator" in error(check(tmp_path, change), "reproducible")


@pytest.mark.parametrize(
    ("change", "complaints"),
    [
        (
            (RULES, "        load = bins\n"),
            ["no decisions: accepted, and better than the template (0)", "single number"],
        ),
        (("bins.min() < 0", "False"), ["all -1: score raised ValueError: "]),
        (("bins.shape != items.shape or ", ""), ["no decisions: score raised ValueError"]),
        (("bins.max() >= len(items)", "False"), ["all beyond 2**62: score raised "]),
    ],
)
def test_forged_decisions(tmp_path: Path, change: tuple[str, str], complaints: list[str]) -> None:
    """A candidate that breaks the rules of the problem would win the search."""
    found = error(check(tmp_path, change), "forged decisions")
    for complaint in complaints:
        assert complaint in found
    assert "raise problems.InvalidSolution" in found


def test_a_slow_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Honest heuristics would run into a time limit the user had to guess."""
    monkeypatch.setattr(problem_check, "_SLOW_S", 1.0)
    slow = ("room, bins = ", "__import__('time').sleep(0.05)\n        room, bins = ")
    finding = check(tmp_path, slow)["time"]
    assert finding.verdict is Verdict.WARNING
    seconds, timeout = map(float, re.findall(r"([\d.]+) s for .* --timeout (\d+)", finding.found)[0])
    assert seconds >= 0.25
    assert timeout == pytest.approx(10 * seconds, abs=1.1)


def test_a_template_that_takes_too_long(tmp_path: Path) -> None:
    """The user would not see that the limit is too short for the problem."""
    found = check(tmp_path, ("room, bins = ", "__import__('time').sleep(9)\n        room, bins = "), timeout=0.2)
    assert "timeout: no answer within 0.2 s" in error(found, "seed heuristic: Take the fullest bin.")


SECOND = """
    @property
    def task(self):
        first = super().task
        seed = SeedHeuristic("Take the emptiest bin.", first.seeds[0].code.replace("-room", "BODY"))
        return replace(first, seeds=(*first.seeds, seed))

    def solve("""


@pytest.mark.parametrize(("body", "verdict"), [("-2 * room", Verdict.WARNING), ("room", Verdict.FINE)])
def test_an_objective_that_is_always_the_same(tmp_path: Path, body: str, verdict: Verdict) -> None:
    """A search would go on for hours without a way to tell heuristics apart."""
    imports = (
        "import numpy as np\n\nfrom",
        "from dataclasses import replace\nfrom operators.task import SeedHeuristic\n",
    )
    found = check(tmp_path, ("\n    def solve(", SECOND.replace("BODY", body)), (imports[0], imports[1] + imports[0]))
    assert found["reproducible"].verdict is verdict
    assert ("could not tell heuristics apart" in found["reproducible"].found) == (verdict is Verdict.WARNING)
    assert all(finding.verdict is not Verdict.ERROR for finding in found.values())


def test_references_are_shown(tmp_path: Path) -> None:
    """The user would not see whether the own baselines are what they should be."""
    given = "    baselines = {'items': lambda items: len(items)}\n\n    def solve("
    found = check(tmp_path, ("    def solve(", given))
    assert found["references"].found == "items 120; no ceiling, so no gap will be shown"


def test_a_sandbox_that_is_not_to_be_had(tmp_path: Path) -> None:
    """A wrong option would be told as a mistake in the problem."""
    path = put(tmp_path)
    *_, finding = check_problem(path, 10.0, "strict")
    assert (finding.what, finding.verdict) == ("sandbox", Verdict.ERROR)
    assert "Unknown isolation 'strict'" in finding.found
    with pytest.raises(UserError, match=r"time limit .* nan"):
        list(check_problem(path, float("nan")))
