"""The plug-in on real searches of EoH 0.2, each in a process of its own. EOH_REPO says where a clone is."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from host_runs import Ended, Install, find, processes, run, start

SLEEPER = ("sleep", "98765")
"""What the programs of `writers.leaving` start."""


@pytest.fixture(scope="module")
def eoh() -> Install:
    return find("eoh02")


@pytest.fixture(scope="module")
def twice(eoh: Install, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """The same search twice, with two processes."""
    options = {"task": {"n_processes": 2}, "writer": "mixed"}
    return run(eoh, tmp_path_factory.mktemp("eoh02"), first=options, second=options)


@pytest.fixture(scope="module")
def searched(twice: dict[str, Ended]) -> Ended:
    """One search of three generations that several tests look at."""
    return twice["first"]


def test_search_learns_while_the_host_runs(searched: Ended) -> None:
    """Without it the two lines could run and the weights never move."""
    assert searched.result["updates"] == len(searched.events("update")) > 0
    assert searched.generations == 3
    end = searched.events("end")[0]
    assert end["weights_before"] != end["weights_after"]


def test_files_stay_the_hosts_with_our_notes_in_them(searched: Ended) -> None:
    """Without it the user's own tools could not read their results any more, or ours would be nowhere."""
    results = searched.folder / "results"
    assert {one.name for one in results.iterdir()} == {"pops", "pops_best", "samples", "run_log.txt", "esopt"}
    for one in searched.population(3):
        assert set(one) == {"algorithm", "code", "objective", "other_inf"}
        note = one["other_inf"]["esopt"]
        assert note["status"] == "ok"
        assert note["objective"] == pytest.approx(one["objective"])
        assert (note["direction"] is not None) == (note["operator"] in ("m1", "m2"))


def test_population_is_sorted_and_holds_the_best(searched: Ended) -> None:
    """Without it candidates could get lost between us and the host's own population management."""
    objectives = [one["objective"] for one in searched.population(3)]
    everything = [one["objective"] for one in searched.events("outcome") if one["status"] == "ok"]
    assert objectives == sorted(objectives)
    assert objectives[0] == pytest.approx(min(everything))


def test_nothing_of_the_users_process_is_changed(searched: Ended) -> None:
    """Without it a search could leave another start method, silenced warnings or other random numbers behind."""
    assert searched.result["changed"] == []
    assert searched.result["same_object"], "detach left a trace on the object"


def test_runs_with_two_processes_repeat(twice: dict[str, Ended]) -> None:
    """Parents were chosen in unseeded worker processes, so no run with n_processes=2 could be repeated."""
    first, second = twice.values()
    assert first.population(3) == second.population(3)
    assert first.events("update") == second.events("update")


def test_the_model_stays_in_the_users_process(searched: Ended) -> None:
    """D6: with n_processes=2 the model was copied into workers, where what it learns is lost."""
    assert searched.result["calls"] == searched.ledger["model_calls"] > 0
    assert max(searched.result["batches"]) == 4, "the candidates of a batch were not written together"


def test_paper_schedule_counts(eoh: Install, tmp_path: Path) -> None:
    """Without it the schedule that was announced and the one that runs could differ, and so would the budgets."""
    ended = run(eoh, tmp_path, one={"attach": {"directions": 3, "samples_per_direction": 2}})["one"]
    written = Counter((one["generation"], one["operator"]) for one in ended.events("batch"))
    sizes = {one["operator"]: one["ids"][1] - one["ids"][0] + 1 for one in ended.events("batch")}
    assert sizes == {"i1": 4, "e1": 4, "e2": 4, "m1": 6, "m2": 6}
    assert written == {(-1, "i1"): 2, **{(g, op): 1 for g in range(3) for op in ("e1", "e2", "m1", "m2")}}
    assert all(len(one["seeds"]) == 3 for one in ended.events("update"))


def test_host_schedule_collects_directions_over_generations(eoh: Install, tmp_path: Path) -> None:
    """Without it EoH 0.2 with its usual population draws groups of one, and the model learns nothing at all."""
    ended = run(eoh, tmp_path, one={"eoh": {"n_pop": 10}, "attach": {"schedule": "host"}})["one"]
    sizes = Counter(one["generation"] for one in ended.events("batch") for _ in range(one["ids"][0], one["ids"][1] + 1))
    assert sizes == {-1: 8, **dict.fromkeys(range(10), 4)}, "the host draws population candidates"
    assert ended.result["updates"] >= 1
    assert all(len(one["seeds"]) == 4 for one in ended.events("update"))


def test_a_schedule_that_cannot_learn_is_announced(eoh: Install, tmp_path: Path) -> None:
    """Without it a user pays for a search whose model cannot learn, and is not told."""
    said = run(eoh, tmp_path, one={"attach": {"schedule": "host", "directions": 10}})["one"].result["said"]
    assert any(line.startswith("WARNING") and "schedule='paper'" in line for line in said)


def test_all_calls_behind_a_candidate_have_its_direction_and_are_counted(eoh: Install, tmp_path: Path) -> None:
    """Without it the retries of a host would be written under other weights than those that get the reward."""
    ended = run(eoh, tmp_path, one={"writer": "at_third"})["one"]
    by_candidate: dict[int, set[Any]] = {}
    replies = [one for event in ended.events("replies") for one in event["candidates"]]
    for one in replies:
        by_candidate.setdefault(one["id"], set()).add((one["direction"], one["sigma"]))
    assert max(Counter(one["id"] for one in replies).values()) > 1, "no candidate took more than one call"
    assert all(len(directions) == 1 for directions in by_candidate.values())
    assert ended.ledger["model_calls"] == len(replies) == ended.result["calls"]
    assert ended.ledger["model_calls"] > ended.ledger["candidates"] + ended.ledger["start_candidates"]


def test_timeout_below_the_start_of_a_process_does_not_end_the_search(eoh: Install, tmp_path: Path) -> None:
    """D2: a timeout before the child has its own group killed the whole search."""
    ended = run(eoh, tmp_path, one={"task": {"timeout": 0.05}, "writer": "endless", "eoh": {"n_pop": 1}})["one"]
    assert ended.statuses["timeout"] >= 8


@pytest.mark.parametrize("writer", ["deaf", "leaving"])
def test_programs_that_resist_end_on_time_and_leave_nothing(eoh: Install, tmp_path: Path, writer: str) -> None:
    """D3, D4: a program that ignores signals held the search up for minutes, and processes it left lived on."""
    ended = run(eoh, tmp_path, one={"task": {"timeout": 1}, "writer": writer, "eoh": {"n_pop": 1, "pop_size": 2}})[
        "one"
    ]
    late = ended.statuses["timeout"]
    assert late >= 4
    assert ended.result["seconds"] < 60 + 5 * late, "programs slept for 600 s"
    assert not processes(*SLEEPER)


def test_killed_search_leaves_no_process(eoh: Install, tmp_path: Path) -> None:
    """Without it a user who kills a search has its evaluations running on for hours."""
    process = start(eoh, tmp_path, "search", one={"task": {"timeout": 500}, "writer": "leaving"})
    _wait_until(lambda: bool(processes(*SLEEPER)))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    _wait_until(lambda: not processes(*SLEEPER))


@pytest.fixture(scope="module")
def odd_replies(eoh: Install, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    writers = ("undescribed", "fence_first", "thinking", "formula")
    options = {writer: {"writer": writer, "eoh": {"n_pop": 1}} for writer in writers}
    return run(eoh, tmp_path_factory.mktemp("odd"), **options)


@pytest.mark.parametrize("writer", ["undescribed", "fence_first", "thinking", "formula"])
def test_replies_that_the_host_loses_are_read(odd_replies: dict[str, Ended], writer: str) -> None:
    """D7: programs after another fence or after a thought, or without a description, were lost or taken for others."""
    ended = odd_replies[writer]
    attempts = ended.ledger["start_candidates"] + ended.ledger["candidates"]
    assert ended.ledger["model_calls"] == attempts, "replies were asked for again"
    assert set(ended.statuses) == {"ok"}


def test_small_objectives_are_told_apart(eoh: Install, tmp_path: Path) -> None:
    """D8: objectives were rounded to five decimals, so those of a millionth were all 0.0 and dropped as duplicates."""
    ended = run(eoh, tmp_path, one={"writer": "small", "eoh": {"n_pop": 1}})["one"]
    objectives = [one["objective"] for one in ended.population(1)]
    assert len(objectives) == 4
    assert all(0 < one < 1e-3 for one in objectives)
    rewards = ended.events("update")[0]["rewards"]
    assert len(set(rewards)) == len(rewards)


def test_start_without_a_valid_candidate_goes_on_from_the_template(eoh: Install, tmp_path: Path) -> None:
    """D9: a small model whose first programs all fail ended the search before it had begun."""
    ended = run(eoh, tmp_path, one={"writer": "raising", "eoh": {"n_pop": 2}})["one"]
    assert [one["code"].count("def value") for one in ended.population(0)] == [1]
    assert any("starting from the problem's template" in line for line in ended.result["said"])
    assert ended.generations == 2


@pytest.fixture(scope="module")
def budgets(eoh: Install, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    options = {
        unit: {"writer": "at_third", "attach": {"budget": budget, "budget_unit": unit}}
        for unit, budget in LIMITS.items()
    }
    return run(eoh, tmp_path_factory.mktemp("budgets"), **options)


LIMITS = {"attempts": 13, "model_calls": 21, "evaluations": 11, "tokens": 9000}


@pytest.mark.parametrize("unit", LIMITS)
def test_budget_ends_the_search_on_the_unit_it_names(budgets: dict[str, Ended], unit: str) -> None:
    """Without it a user's limit would be exceeded, or count something else than what was named."""
    ledger = budgets[unit].ledger
    spent = {
        "attempts": ledger["start_candidates"] + ledger["candidates"],
        "model_calls": ledger["model_calls"],
        "evaluations": ledger["evaluations"],
        "tokens": ledger["prompt_tokens"] + ledger["new_tokens"],
    }[unit]
    if unit == "tokens":
        assert LIMITS[unit] <= spent < 2 * LIMITS[unit], "only the replies in flight may exceed it"
    else:
        assert spent == LIMITS[unit]
    samples = list((budgets[unit].folder / "results" / "samples").glob("samples_*~*.json"))
    assert samples, "the host's samples were not written"


def test_second_search_does_not_overwrite_the_first_ones_log(eoh: Install, tmp_path: Path) -> None:
    """Without it running the script again would destroy the history of the weights, or fail."""
    first = run(eoh, tmp_path, one={"eoh": {"n_pop": 1}})["one"]
    events = first.events()
    second = run(eoh, tmp_path, one={"eoh": {"n_pop": 1}, "attach": {"seed": 7}})["one"]
    assert first.events() == events
    assert second.events(name="esopt-2")[0]["config"]["seed"] == 7


def test_host_evaluator_is_used_when_asked_for(eoh: Install, tmp_path: Path) -> None:
    """Without it evaluations that only work by the host's own machinery could not be used at all."""
    ended = run(eoh, tmp_path, one={"eoh": {"n_pop": 1, "pop_size": 2}, "attach": {"evaluator": "host"}})["one"]
    assert "the host's own evaluator" in ended.events("start")[0]["isolation"]
    assert set(ended.statuses) == {"ok"}
    assert any("not promised" in line for line in ended.result["said"])
    assert set(ended.result["changed"]) <= {"files"}, "D5: EoH changes the start method of processes"


BAD_INPUT: dict[str, tuple[dict[str, Any], str]] = {
    "second_attach": ({"times": 2}, "attached already"),
    "second_run": ({"runs": 2}, "has run already"),
    "attach_after_run": ({"again": True}, "has run already"),
    "nothing_learns": ({"eoh": {"operators": ["e1", "e2"]}}, "neither m1 nor m2"),
    "unknown_operator": ({"eoh": {"operators": ["e1", "m9"]}}, "no operator 'm9'"),
    "evaluation_raises": ({"problem": "Raising"}, "no_such_data.npy"),
    "all_invalid": ({"problem": "NoTemplate", "writer": "none"}, "8 no_code"),
    "no_such_model": ({"attach": {"model": "./no-such-model"}}, "no-such-model"),
    "hosts_own_setting": ({"attach": {"population": 7}}, "EoH 0.2's to set"),
    "misspelt_setting": ({"attach": {"direction": 7}}, "Did you mean 'directions'?"),
    "one_direction": ({"attach": {"directions": 1}}, "at least 2 directions"),
    "wrong_type": ({"attach": {"directions": "4"}}, "wrong type"),
    "unknown_schedule": ({"attach": {"schedule": "mine"}}, "Unknown schedule"),
    "no_budget": ({"attach": {"budget": 0}}, "budget must be at least 1"),
    "no_address": ({"attach": {"backend": "openai"}}, "base_url"),
}
_ASK_THE_MODEL = {"second_run", "attach_after_run", "all_invalid"}


@pytest.fixture(scope="module")
def refused(eoh: Install, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    options = {name: {"eoh": {"n_pop": 1}, **options} for name, (options, _) in BAD_INPUT.items()}
    return run(eoh, tmp_path_factory.mktemp("bad"), **options)


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_refused_before_the_first_model_call(refused: dict[str, Ended], name: str) -> None:
    """Without it mistakes show late, as an error of the host's, or not at all."""
    assert BAD_INPUT[name][1] in refused[name].result["error"]
    assert name in _ASK_THE_MODEL or refused[name].result["calls"] == 0


def _wait_until(condition: Any) -> None:
    give_up = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.1)
