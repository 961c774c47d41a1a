"""The plug-in on real searches of EoH 0.2, each in a process of its own. EOH_REPO says where a clone is."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_server import FakeServer, says
from host_runs import SLEEPER, Ended, Install, find, processes, put_quantised, run, start

"""What the programs of `writers.leaving` start."""

ONE = {"n_pop": 1}
BUDGETS = {"attempts": 13, "model_calls": 21, "evaluations": 11, "tokens": 9000}
ODD_REPLIES = ("undescribed", "fence_first", "thinking", "formula")

SEARCHES: dict[str, dict[str, Any]] = {
    "first": {"task": {"n_processes": 2}, "writer": "mixed"},
    "second": {"task": {"n_processes": 2}, "writer": "mixed"},
    "paper": {"attach": {"directions": 3, "samples_per_direction": 2}},
    "host": {"eoh": {"n_pop": 10}, "attach": {"schedule": "host"}},
    "too_short": {"attach": {"schedule": "host", "directions": 10}},
    "at_third": {"writer": "at_third"},
    "tiny_timeout": {"task": {"timeout": 0.05}, "writer": "endless", "eoh": ONE},
    "deaf": {"task": {"timeout": 1}, "writer": "deaf", "eoh": {"n_pop": 1, "pop_size": 2}},
    "leaving": {"task": {"timeout": 1}, "writer": "leaving", "eoh": {"n_pop": 1, "pop_size": 2}},
    **{name: {"writer": name, "eoh": ONE} for name in ODD_REPLIES},
    "small": {"writer": "small", "eoh": ONE},
    "invalid_start": {"writer": "raising", "eoh": {"n_pop": 2}},
    **{
        unit: {"writer": "at_third", "attach": {"budget": limit, "budget_unit": unit}}
        for unit, limit in BUDGETS.items()
    },
    "host_evaluator": {"eoh": {"n_pop": 1, "pop_size": 2}, "attach": {"evaluator": "host"}},
    "kind": {"problem": "Kind", "writer": "kind", "eoh": ONE},
    "several": {"problem": "Several", "writer": "several", "eoh": ONE},
    "seeds": {"eoh": {"n_pop": 1, "use_seed": True, "seed_path": "seeds.json"}},
    "going_on": {"eoh": {"n_pop": 3, "use_continue": True, "continue_path": "population.json", "continue_id": 2}},
    "output": {"eoh": ONE, "attach": {"output": "mine"}},
}
"""Searches by the name of their folder: one process runs them all."""


@pytest.fixture(scope="module")
def eoh() -> Install:
    return find("eoh02")


@pytest.fixture(scope="module")
def ended(eoh: Install, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """What became of all the searches."""
    folder = tmp_path_factory.mktemp("eoh02")
    seeds = [_individual(f"def value(first, second):\n    return {returned}") for returned in ("42", "nothing")]
    (folder / "seeds.json").write_text(json.dumps(seeds))
    earlier = _individual("def value(first, second):\n    return 98") | {"objective": 2.0, "other_inf": {"mine": 1}}
    (folder / "population.json").write_text(json.dumps([earlier]))
    return run(eoh, folder, **SEARCHES)


def _individual(code: str) -> dict[str, Any]:
    return {"algorithm": "From a file.", "code": code}


def test_search_learns_while_the_host_runs(ended: dict[str, Ended]) -> None:
    """Without it the two lines could run and the weights never move."""
    searched = ended["first"]
    assert searched.result["updates"] == len(searched.events("update")) > 0
    assert searched.generations == 3
    end = searched.events("end")[0]
    assert end["weights_before"] != end["weights_after"]


def test_files_stay_the_hosts_with_our_notes_in_them(ended: dict[str, Ended]) -> None:
    """Without it the user's own tools could not read their results any more, or ours would be nowhere."""
    results = ended["first"].folder / "results"
    assert {one.name for one in results.iterdir()} == {"pops", "pops_best", "samples", "run_log.txt", "esopt"}
    for one in ended["first"].population(3):
        assert set(one) == {"algorithm", "code", "objective", "other_inf"}
        note = one["other_inf"]["esopt"]
        assert note["status"] == "ok"
        assert note["objective"] == pytest.approx(one["objective"])
        assert (note["direction"] is not None) == (note["operator"] in ("m1", "m2"))


def test_population_is_sorted_and_holds_the_best(ended: dict[str, Ended]) -> None:
    """Without it candidates could get lost between us and the host's own population management."""
    objectives = [one["objective"] for one in ended["first"].population(3)]
    everything = [one["objective"] for one in ended["first"].events("outcome") if one["status"] == "ok"]
    assert objectives == sorted(objectives)
    assert objectives[0] == pytest.approx(min(everything))


def test_nothing_of_the_users_process_is_changed(ended: dict[str, Ended]) -> None:
    """Without it a search could leave another start method, silenced warnings or other random numbers behind."""
    assert ended["first"].result["changed"] == []
    assert ended["first"].result["same_object"], "detach left a trace on the object"


def test_runs_with_two_processes_repeat(ended: dict[str, Ended]) -> None:
    """Parents were chosen in unseeded worker processes, so no run with n_processes=2 could be repeated."""
    assert ended["first"].population(3) == ended["second"].population(3)
    assert ended["first"].events("update") == ended["second"].events("update")


def test_the_model_stays_in_the_users_process(ended: dict[str, Ended]) -> None:
    """D6: with n_processes=2 the model was copied into workers, where what it learns is lost."""
    assert ended["first"].result["calls"] == ended["first"].ledger["model_calls"] > 0
    assert max(ended["first"].result["batches"]) == 4, "the candidates of a batch were not written together"


def test_paper_schedule_counts(ended: dict[str, Ended]) -> None:
    """Without it the schedule that was announced and the one that runs could differ, and so would the budgets."""
    batches = ended["paper"].events("batch")
    sizes = {one["operator"]: one["ids"][1] - one["ids"][0] + 1 for one in batches}
    assert sizes == {"i1": 4, "e1": 4, "e2": 4, "m1": 6, "m2": 6}
    written = Counter((one["generation"], one["operator"]) for one in batches)
    assert written == {(-1, "i1"): 2, **{(g, op): 1 for g in range(3) for op in ("e1", "e2", "m1", "m2")}}
    assert all(len(one["seeds"]) == 3 for one in ended["paper"].events("update"))


def test_host_schedule_collects_directions_over_generations(ended: dict[str, Ended]) -> None:
    """Without it EoH 0.2 with its usual population draws groups of one, and the model learns nothing at all."""
    sizes: Counter[int] = Counter()
    for one in ended["host"].events("batch"):
        sizes[one["generation"]] += one["ids"][1] - one["ids"][0] + 1
    assert sizes == {-1: 8, **dict.fromkeys(range(10), 4)}, "the host draws population candidates"
    assert ended["host"].result["updates"] >= 1
    assert all(len(one["seeds"]) == 4 for one in ended["host"].events("update"))


def test_a_schedule_that_cannot_learn_is_announced(ended: dict[str, Ended]) -> None:
    """Without it a user pays for a search whose model cannot learn, and is not told."""
    said = ended["too_short"].result["said"]
    assert any(line.startswith("WARNING") and "schedule='paper'" in line for line in said)


def test_all_calls_behind_a_candidate_have_its_direction_and_are_counted(ended: dict[str, Ended]) -> None:
    """Without it the retries of a host would be written under other weights than those that get the reward."""
    searched = ended["at_third"]
    by_candidate: dict[int, set[Any]] = {}
    replies = [one for event in searched.events("replies") for one in event["candidates"]]
    for one in replies:
        by_candidate.setdefault(one["id"], set()).add((one["direction"], one["sigma"]))
    assert max(Counter(one["id"] for one in replies).values()) > 1, "no candidate took more than one call"
    assert all(len(directions) == 1 for directions in by_candidate.values())
    assert searched.ledger["model_calls"] == len(replies) == searched.result["calls"]
    assert searched.ledger["model_calls"] > searched.ledger["candidates"] + searched.ledger["start_candidates"]


def test_timeout_below_the_start_of_a_process_does_not_end_the_search(ended: dict[str, Ended]) -> None:
    """D2: a timeout before the child has its own group killed the whole search."""
    assert ended["tiny_timeout"].statuses["timeout"] >= 8


@pytest.mark.parametrize("name", ["deaf", "leaving"])
def test_programs_that_resist_end_on_time_and_leave_nothing(ended: dict[str, Ended], name: str) -> None:
    """D3, D4: a program that ignores signals held the search up for minutes, and processes it left lived on."""
    late = ended[name].statuses["timeout"]
    assert late >= 4
    assert ended[name].result["seconds"] < 60 + 5 * late, "programs slept for 600 s"
    assert not processes(*SLEEPER)


def test_killed_search_leaves_no_process(eoh: Install, tmp_path: Path) -> None:
    """Without it a user who kills a search has its evaluations running on for hours."""
    process = start(eoh, tmp_path, "search", one={"task": {"timeout": 500}, "writer": "leaving"})
    _wait_until(lambda: bool(processes(*SLEEPER)))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    _wait_until(lambda: not processes(*SLEEPER))


@pytest.mark.parametrize("name", ODD_REPLIES)
def test_replies_that_the_host_loses_are_read(ended: dict[str, Ended], name: str) -> None:
    """D7: programs after another fence or after a thought, or without a description, were lost or taken for others."""
    ledger = ended[name].ledger
    assert ledger["model_calls"] == ledger["start_candidates"] + ledger["candidates"], "replies were asked for again"
    assert set(ended[name].statuses) == {"ok"}


@pytest.mark.parametrize("name", ["kind", "several"])
def test_templates_of_other_kinds(ended: dict[str, Ended], name: str) -> None:
    """Without it problems whose template is a class, or several functions, could not be searched."""
    assert set(ended[name].statuses) == {"ok"}
    assert len(ended[name].population(1)) == 4


def test_small_objectives_are_told_apart(ended: dict[str, Ended]) -> None:
    """D8: objectives were rounded to five decimals, so those of a millionth were all 0.0 and dropped as duplicates."""
    objectives = [one["objective"] for one in ended["small"].population(1)]
    assert len(objectives) == 4
    assert all(0 < one < 1e-3 for one in objectives)
    rewards = ended["small"].events("update")[0]["rewards"]
    assert len(set(rewards)) == len(rewards)


def test_start_without_a_valid_candidate_goes_on_from_the_template(ended: dict[str, Ended]) -> None:
    """D9: a small model whose first programs all fail ended the search before it had begun."""
    searched = ended["invalid_start"]
    assert [one["code"].count("def value") for one in searched.population(0)] == [1]
    assert any("starting from the problem's template" in line for line in searched.result["said"])
    assert searched.generations == 2


@pytest.mark.parametrize("unit", BUDGETS)
def test_budget_ends_the_search_on_the_unit_it_names(ended: dict[str, Ended], unit: str) -> None:
    """Without it a user's limit would be exceeded, or count something else than what was named."""
    ledger = ended[unit].ledger
    spent = {
        "attempts": ledger["start_candidates"] + ledger["candidates"],
        "model_calls": ledger["model_calls"],
        "evaluations": ledger["evaluations"],
        "tokens": ledger["prompt_tokens"] + ledger["new_tokens"],
    }[unit]
    if unit == "tokens":
        assert BUDGETS[unit] <= spent < 2 * BUDGETS[unit], "only the replies in flight may exceed it"
    else:
        assert spent == BUDGETS[unit]
    samples = list((ended[unit].folder / "results" / "samples").glob("samples_*~*.json"))
    assert samples, "the host's samples were not written"


def test_second_search_does_not_overwrite_the_first_ones_log(eoh: Install, tmp_path: Path) -> None:
    """Without it running the script again would destroy the history of the weights, or fail."""
    first = run(eoh, tmp_path, one={"eoh": ONE})["one"]
    events = first.events()
    second = run(eoh, tmp_path, one={"eoh": ONE, "attach": {"seed": 7}})["one"]
    assert first.events() == events
    assert second.events(name="esopt-2")[0]["config"]["seed"] == 7


def test_output_is_where_it_was_asked_for(ended: dict[str, Ended]) -> None:
    """Without it the history could not be kept apart from the host's results."""
    assert (ended["output"].folder.parent / "mine" / "history.json").is_file()
    assert not (ended["output"].folder / "results" / "esopt").exists()


def test_seeds_of_the_host_start_the_search(ended: dict[str, Ended]) -> None:
    """Without it a user's seed file would be evaluated by the host's workers, or not at all."""
    assert [one["objective"] for one in ended["seeds"].population(0)] == [58.0]
    assert "Seeds: 1 of 2 are valid." in ended["seeds"].result["said"]
    assert ended["seeds"].ledger["start_candidates"] == 0


def test_search_goes_on_from_a_population_of_the_host(ended: dict[str, Ended]) -> None:
    """Without it a population that an earlier search wrote could not be taken up, or its members would be lost."""
    searched = ended["going_on"]
    assert len(list((searched.folder / "results" / "pops").glob("*.json"))) == 1
    assert [one["objective"] for one in searched.events("given")] == [2.0]
    members = [one for one in searched.population(3) if one["objective"] == 2.0]
    assert members[0]["other_inf"] == {"mine": 1}, "what others keep beside a candidate was lost"


def test_host_evaluator_is_used_when_asked_for(ended: dict[str, Ended]) -> None:
    """Without it evaluations that only work by the host's own machinery could not be used at all."""
    searched = ended["host_evaluator"]
    assert "the host's own evaluator" in searched.events("start")[0]["isolation"]
    assert set(searched.statuses) == {"ok"}
    assert any("not promised" in line for line in searched.result["said"])
    assert set(searched.result["changed"]) <= {"files"}, "D5: EoH changes the start method of processes"


def test_endpoint_writes_and_its_weights_stay(eoh: Install, tmp_path: Path) -> None:
    """Without it a model behind an endpoint could not be used, or its user would believe that it learns."""
    reply = "{Add them.}\n```python\ndef value(first, second):\n    return first + second\n```"
    with FakeServer(says(lambda body: reply)) as server:
        asked = {"model": "small", "backend": "openai", "base_url": server.url}
        searched = run(eoh, tmp_path, one={"eoh": ONE, "attach": asked})["one"]
    assert searched.result["error"] == ""
    assert any("weights stay as they are" in line for line in searched.result["said"])
    assert searched.ledger["updates"] == searched.ledger["skips"] == 0
    assert searched.ledger["new_tokens"] == 7 * searched.ledger["model_calls"]


BAD_INPUT: dict[str, tuple[dict[str, Any], str]] = {
    "second_attach": ({"times": 2}, "attached already"),
    "second_run": ({"runs": 2}, "has run already"),
    "attach_after_run": ({"again": True}, "has run already"),
    "nothing_learns": ({"eoh": {"operators": ["e1", "e2"]}}, "neither m1 nor m2"),
    "unknown_operator": ({"eoh": {"operators": ["e1", "m9"]}}, "no operator 'm9'"),
    "evaluation_raises": ({"problem": "Raising"}, "no_such_data.npy"),
    "all_invalid": ({"problem": "NoTemplate", "writer": "none"}, "8 no_code"),
    "no_such_model": ({"attach": {"model": "./no-such-model"}}, "no-such-model"),
    "quantised": ({"attach": {"model": "./quantised"}}, "quantised (gptq)"),
    "hosts_own_setting": ({"attach": {"population": 7}}, "EoH 0.2's to set"),
    "misspelt_setting": ({"attach": {"direction": 7}}, "Did you mean 'directions'?"),
    "one_direction": ({"attach": {"directions": 1}}, "at least 2 directions"),
    "wrong_type": ({"attach": {"directions": "4"}}, "wrong type"),
    "unknown_schedule": ({"attach": {"schedule": "mine"}}, "Unknown schedule"),
    "no_budget": ({"attach": {"budget": 0}}, "budget must be at least 1"),
    "no_address": ({"attach": {"backend": "openai"}}, "base_url"),
    "class_begun": ({"problem": "Kind", "attach": {"prefill": "signature"}}, "more than a plain function"),
}
_ASK_THE_MODEL = {"second_run", "attach_after_run", "all_invalid"}


@pytest.fixture(scope="module")
def refused(eoh: Install, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    options = {name: {"eoh": ONE, **options} for name, (options, _) in BAD_INPUT.items()}
    folder = tmp_path_factory.mktemp("bad")
    put_quantised(folder / "quantised")
    return run(eoh, folder, **options)


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_refused_before_the_first_model_call(refused: dict[str, Ended], name: str) -> None:
    """Without it mistakes show late, as an error of the host's, or not at all."""
    assert BAD_INPUT[name][1] in refused[name].result["error"]
    assert name in _ASK_THE_MODEL or refused[name].result["calls"] == 0


def _wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.1)
