"""The plug-in on real searches of EoH 0.1, each in a process of its own. EOH_REPO says where a clone is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from host_runs import SLEEPER, Ended, Install, find, processes, run

SEARCHES: dict[str, dict[str, Any]] = {
    "first": {"writer": "mixed"},
    "second": {"writer": "mixed"},
    "paper": {"attach": {"schedule": "paper", "directions": 3, "samples_per_direction": 2}},
    "small_population": {"paras": {"ec_pop_size": 2, "ec_n_pop": 4}, "attach": {"schedule": "host"}},
    "weights": {"paras": {"ec_operator_weights": [0, 1, 0.5, 1], "ec_n_pop": 6}},
    "formula": {"writer": "formula"},
    "deaf": {"writer": "deaf", "paras": {"eva_timeout": 1, "ec_n_pop": 1, "ec_pop_size": 2}},
    "leaving": {"writer": "leaving", "paras": {"eva_timeout": 1, "ec_n_pop": 1, "ec_pop_size": 2}},
    "half_way": {"attach": {"budget": 14}},
    "at_third": {"writer": "at_third"},
    "host_evaluator": {"attach": {"evaluator": "host"}},
    "second_attach": {"times": 2},
    "second_run": {"runs": 2},
    "attach_after_run": {"again": True},
    "nothing_learns": {"paras": {"ec_operators": ["e1", "e2"]}},
    "evaluation_raises": {"problem": "Raising"},
    "other_method": {"paras": {"method": "ael"}},
}
"""Searches by the name of their folder: one process runs them all."""


@pytest.fixture(scope="module")
def eoh() -> Install:
    return find("eoh01")


@pytest.fixture(scope="module")
def ended(eoh: Install, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """What became of all the searches."""
    return run(eoh, tmp_path_factory.mktemp("eoh01"), **SEARCHES)


def test_search_learns_while_the_host_runs(ended: dict[str, Ended]) -> None:
    """Without it the two lines could run and the weights never move. The script has no `__main__` guard."""
    searched = ended["first"]
    assert searched.result["updates"] == len(searched.events("update")) > 0
    assert searched.generations == 3
    end = searched.events("end")[0]
    assert end["weights_before"] != end["weights_after"]


def test_files_stay_the_hosts_with_our_notes_in_them(ended: dict[str, Ended]) -> None:
    """Without it the user's own tools could not read their results any more, or ours would be nowhere."""
    results = ended["first"].folder / "results"
    assert {one.name for one in results.iterdir()} == {"pops", "pops_best", "history", "esopt"}
    population = ended["first"].population(3)
    assert [one["objective"] for one in population] == sorted(one["objective"] for one in population)
    for one in population:
        assert set(one) == {"algorithm", "code", "objective", "other_inf"}
        assert one["other_inf"]["esopt"]["objective"] == pytest.approx(one["objective"])


def test_nothing_of_the_users_process_is_changed(ended: dict[str, Ended]) -> None:
    """Without it a search could leave another start method, silenced warnings or other random numbers behind."""
    assert ended["first"].result["changed"] == []
    assert ended["first"].result["same_object"], "detach left a trace on the object"


def test_runs_with_two_processes_repeat(ended: dict[str, Ended]) -> None:
    """Parents were chosen in unseeded worker processes, so no run with exp_n_proc=2 could be repeated."""
    assert ended["first"].population(3) == ended["second"].population(3)
    assert ended["first"].events("update") == ended["second"].events("update")


def test_schedules(ended: dict[str, Ended]) -> None:
    """Without it the schedule that was announced and the one that runs could differ."""
    sizes = {one["operator"]: one["ids"][1] - one["ids"][0] + 1 for one in ended["paper"].events("batch")}
    assert sizes == {"i1": 4, "e1": 4, "e2": 4, "m1": 6, "m2": 6}
    assert all(len(one["seeds"]) == 3 for one in ended["paper"].events("update"))
    sizes = {one["operator"]: one["ids"][1] - one["ids"][0] + 1 for one in ended["small_population"].events("batch")}
    assert sizes == {"i1": 2, "e1": 2, "e2": 2, "m1": 2, "m2": 2}
    learnt = [one for one in ended["small_population"].events() if one["event"] in ("update", "skip")]
    assert len(learnt) == 4, "groups of two over four generations make two updates of four directions an operator"


def test_operator_that_is_not_drawn_adds_nothing(ended: dict[str, Ended]) -> None:
    """EoH 0.1 adds the offspring of the operator before once more, or fails where there was none."""
    batches = Counter(one["operator"] for one in ended["weights"].events("batch"))
    assert batches["e1"] == 0
    assert batches["e2"] == batches["m2"] == 6
    assert 0 < batches["m1"] < 6


def test_programs_are_read_as_they_are(ended: dict[str, Ended]) -> None:
    """EoH 0.1 replaces what a program returns by a name, and takes its braces for the description."""
    assert set(ended["formula"].statuses) == {"ok"}
    best = ended["formula"].population(3)[0]
    assert best["code"].endswith("return first + table['weight'] * second")
    assert best["algorithm"] == "Weigh the second one."


@pytest.mark.parametrize("name", ["deaf", "leaving"])
def test_programs_that_resist_end_on_time_and_leave_nothing(ended: dict[str, Ended], name: str) -> None:
    """The timeout of EoH 0.1 waits for the evaluation's end, and a batch with a late program is lost as a whole."""
    assert ended[name].statuses["timeout"] == 4
    assert ended[name].result["seconds"] < 60, "programs slept for 600 s"
    assert not processes(*SLEEPER)


def test_start_without_anything_valid_ends_with_the_reasons(ended: dict[str, Ended]) -> None:
    """EoH 0.1 fails with an IndexError after all generations were asked for."""
    assert "No start candidate was valid (4 timeout)" in ended["deaf"].result["error"]


def test_budget_that_ends_inside_a_generation_keeps_what_was_found(ended: dict[str, Ended]) -> None:
    """Without it the population of the unfinished generation would be lost."""
    searched = ended["half_way"]
    assert searched.ledger["start_candidates"] + searched.ledger["candidates"] == 14
    assert searched.generations == 1
    valid = [one["objective"] for one in searched.events("outcome")]
    assert searched.population(1)[0]["objective"] == pytest.approx(min(valid))


def test_all_calls_behind_a_candidate_have_its_direction_and_are_counted(ended: dict[str, Ended]) -> None:
    """Without it the retries of a host would be written under other weights than those that get the reward."""
    by_candidate: dict[int, set[Any]] = {}
    replies = [one for event in ended["at_third"].events("replies") for one in event["candidates"]]
    for one in replies:
        by_candidate.setdefault(one["id"], set()).add((one["direction"], one["sigma"]))
    assert max(Counter(one["id"] for one in replies).values()) > 1, "no candidate took more than one call"
    assert all(len(directions) == 1 for directions in by_candidate.values())
    assert ended["at_third"].ledger["model_calls"] == len(replies) == ended["at_third"].result["calls"]


def test_host_evaluator_is_used_when_asked_for(ended: dict[str, Ended]) -> None:
    """Without it evaluations that only work in the user's process could not be used at all."""
    assert set(ended["host_evaluator"].statuses) == {"ok"}
    assert ended["host_evaluator"].generations == 3


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("second_attach", "attached already"),
        ("second_run", "has run already"),
        ("attach_after_run", "has run already"),
        ("nothing_learns", "neither m1 nor m2"),
        ("evaluation_raises", "no_such_data.npy"),
        ("other_method", "method 'ael'"),
    ],
)
def test_bad_input_is_refused(ended: dict[str, Ended], name: str, words: str) -> None:
    """Without it mistakes show late, as an error of the host's, or not at all."""
    assert words in ended[name].result["error"]
    assert name in ("second_run", "attach_after_run") or ended[name].result["calls"] == 0
