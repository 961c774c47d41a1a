"""The plug-in on real searches of LLM4AD 1.11. scripts/test_hosts.sh makes an environment that has it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from host_runs import SLEEPER, Ended, Install, processes, put_quantised, run

from eoh_esopt.engine.history import load_history
from eoh_esopt.engine.replay import replay_history
from eoh_esopt.hosts.populations import read_population

"""What the programs of `writers.leaving` start."""

_THREE = {"eoh": {"num_samplers": 3, "num_evaluators": 2, "max_generations": 8}, "attach": {"schedule": "host"}}

SEARCHES: dict[str, dict[str, Any]] = {
    "mixed": {"writer": "mixed", "eoh": {"num_evaluators": 2}},
    "three": {"writer": "mixed", **_THREE},
    "three_again": {"writer": "mixed", **_THREE},
    "cycles": {"eoh": {"max_generations": 12, "max_sample_nums": 90}, "attach": {"schedule": "host"}},
    "silent": {"writer": "none", "attach": {"schedule": "host"}},
    "helpers": {"writer": "helpers", "eoh": {"max_generations": 3}},
    "numba": {
        "task": {"use_numba_accelerate": True, "use_protected_div": True, "random_seed": 7, "timeout_seconds": 60},
        "eoh": {"max_generations": 3, "pop_size": 2, "max_sample_nums": 6, "num_evaluators": 2},
        "attach": {"directions": 2},
    },
    "constant": {"problem": "Constant", "eoh": {"max_generations": 4}},
    "attempts": {"writer": "mixed", "attach": {"budget": 17, "budget_unit": "attempts"}},
    "evaluations": {"writer": "mixed", "attach": {"budget": 11, "budget_unit": "evaluations"}},
    "by_host": {
        "eoh": {"max_generations": 3, "pop_size": 2, "max_sample_nums": 6, "num_samplers": 2},
        "attach": {"evaluator": "host", "schedule": "host", "directions": 2},
    },
}
"""What most tests look at: searches that run one after the other in one process."""

BAD_INPUT: dict[str, tuple[dict[str, Any], str]] = {
    "twice": ({"times": 2}, "attached already"),
    "run_twice": ({"runs": 2, "eoh": {"max_generations": 3}}, "has run already"),
    "after_run": ({"again": True, "eoh": {"max_generations": 3}}, "has run already"),
    "no_mutation": ({"eoh": {"use_m1_operator": False, "use_m2_operator": False}}, "neither m1 nor m2"),
    "no_generation": ({"eoh": {"max_generations": 2}}, "max_generations=2 leaves no generation"),
    "raising": ({"problem": "Raising"}, "no_such_data.npy"),
    "model": ({"attach": {"model": "./no-such-model"}}, "no-such-model"),
    "quantised": ({"attach": {"model": "./quantised"}}, "quantised (gptq)"),
    "not_ours": ({"attach": {"population": 7}}, "LLM4AD's to set"),
    "misspelt": ({"attach": {"direction": 7}}, "Did you mean 'directions'?"),
    "no_endpoint": ({"attach": {"backend": "openai"}}, "base_url"),
    "nothing_valid": ({"writer": "none", "problem": "NoTemplate"}, "8 no_code"),
}


@pytest.fixture(scope="module")
def llm4ad() -> Install:
    if importlib.util.find_spec("llm4ad") is None:
        pytest.skip("LLM4AD is not installed here, it needs NumPy below 2: scripts/test_hosts.sh tests with it")
    return Install("llm4ad", sys.executable)


@pytest.fixture(scope="module")
def ended(llm4ad: Install, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    return run(llm4ad, tmp_path_factory.mktemp("llm4ad"), **SEARCHES)


def samples(search: Ended) -> list[dict[str, Any]]:
    """The candidates as LLM4AD's profiler wrote them."""
    found = sorted((search.folder / "results" / "samples").glob("samples_*~*.json"))
    return [one for path in found for one in json.loads(path.read_text())]


def sizes(search: Ended) -> Counter[tuple[int, str]]:
    """Candidates by generation and operator."""
    counted: Counter[tuple[int, str]] = Counter()
    for one in search.events("batch"):
        counted[one["generation"], one["operator"]] += one["ids"][1] - one["ids"][0] + 1
    return counted


def test_search_learns_while_llm4ad_runs(ended: dict[str, Ended]) -> None:
    """Without it the two lines could run and the weights never move."""
    search = ended["mixed"]
    assert search.result["updates"] == len(search.events("update")) > 0
    end = search.events("end")[0]
    assert end["weights_before"] != end["weights_after"]
    assert search.result["generation"] == 5, "LLM4AD's own count of generations"


def test_scores_are_maximised(ended: dict[str, Ended]) -> None:
    """A reward of the wrong sign would teach the model to write worse programs."""
    search = ended["mixed"]
    end = search.events("end")[0]
    scores = [one["score"] for one in samples(search) if one["score"] is not None]
    assert end["maximise"]
    assert -end["best"]["objective"] == max(scores) == float(search.result["scores"][0])
    written = [one for event in search.events("written") for one in event["candidates"] if one["objective"] is not None]
    objectives = {one["id"]: one["objective"] for one in written}
    gains = {one["direction"]: objectives[one["parents"][0]] - one["objective"] for one in written if one["direction"]}
    rewards = {
        seed: reward
        for event in search.events("update")
        for seed, reward in zip(event["seeds"], event["rewards"], strict=True)
    }
    better = [seed for seed in gains.keys() & rewards.keys() if gains[seed] > 0]
    assert better, "no child was better than its parent"
    assert all(rewards[seed] == pytest.approx(gains[seed]) for seed in better)


def test_files_stay_llm4ads(ended: dict[str, Ended]) -> None:
    """Without it the user's own tools could not read their results any more, or candidates would be missing in them."""
    search = ended["mixed"]
    results = search.folder / "results"
    assert {one.name for one in results.iterdir()} == {"population", "samples", "run_log.txt", "esopt"}
    rows = samples(search)
    assert [one["sample_order"] for one in rows] == list(range(1, len(rows) + 1))
    assert {tuple(one) for one in rows} == {("sample_order", "algorithm", "function", "score")}
    written = [one for event in search.events("written") for one in event["candidates"]]
    assert len(rows) == len([one for one in written if one["status"] not in ("no_code", "syntax")])
    assert {one["score"] for one in rows} - {None} == {-one["objective"] for one in written if one["status"] == "ok"}


def test_population_files_of_llm4ad_start_other_searches(ended: dict[str, Ended]) -> None:
    """Without it a user of LLM4AD could not go on with `--init-from` with what they have found."""
    results = ended["mixed"].folder / "results"
    newest = max((results / "population").iterdir(), key=lambda path: int(path.stem.split("_")[1]))
    scores = [one["score"] for one in json.loads(newest.read_text())]
    programs = read_population(results, "import numpy as np")
    assert len(programs) == len(scores)
    for program, score in zip(programs, scores, strict=True):
        names: dict[str, Any] = {}
        exec(program.code, names)
        assert -abs(names["value"](1.0, 2.0) - 100.0) == pytest.approx(score)
        assert program.idea == "Weigh the second one."


@pytest.mark.parametrize("name", ["mixed", "cycles", "by_host"])
def test_nothing_of_the_process_is_changed(ended: dict[str, Ended], name: str) -> None:
    """LLM4AD sets the start method of processes; the plug-in must leave that, random numbers and its modules alone."""
    assert ended[name].result["changed"] == []
    assert ended[name].result["same_object"], "detach left a trace on the object"


def test_papers_schedule_counts(ended: dict[str, Ended]) -> None:
    """Without it the schedule that was announced and the one that runs could differ, and so would the budgets."""
    counted = {key: count for key, count in sizes(ended["mixed"]).items() if key[0] >= 0}
    assert counted == {(generation, name): 4 for generation in range(3) for name in ("e1", "e2", "m1", "m2")}


def test_samplers_take_turns_and_runs_repeat(ended: dict[str, Ended]) -> None:
    """LLM4AD's threads race, and its choice of parents is never seeded: no run could be repeated, none batched."""
    first, again = ended["three"], ended["three_again"]
    assert max(first.result["batches"]) == 3, "what the samplers ask for was not written together"
    assert first.events("update") == again.events("update") != []
    assert samples(first) == samples(again)
    assert first.result["prompts"] == again.result["prompts"]


def test_hosts_schedule_collects_directions_over_cycles(ended: dict[str, Ended]) -> None:
    """LLM4AD writes one candidate of an operator at a time: in groups of one the model learns nothing at all."""
    search = ended["cycles"]
    counted: Counter[str] = Counter()
    for (generation, name), count in sizes(search).items():
        counted[name] += count if generation >= 0 else 0
    cycle = [counted[name] for name in ("e1", "e2", "m1", "m2")]
    assert max(cycle) - min(cycle) <= 1
    assert len(search.events("update")) >= 2
    assert all(len(one["seeds"]) == 4 for one in search.events("update"))
    assert search.result["calls"] == search.result["counted"] == search.ledger["model_calls"]


def test_replies_without_programs_end_the_search(ended: dict[str, Ended]) -> None:
    """Replies that it cannot read are not counted by LLM4AD, which then asks for ever."""
    search = ended["silent"]
    assert search.result["counted"] == search.result["calls"] == 60
    assert any("starting from the problem's template" in line for line in search.result["said"])


def test_search_without_a_profiler_ends(llm4ad: Install, tmp_path: Path) -> None:
    """Without a profiler LLM4AD counts no sample at all, so that max_sample_nums never ends its search."""
    options = {"profiler": False, "writer": "raising", "eoh": {"max_generations": None}, "attach": {"schedule": "host"}}
    search = run(llm4ad, tmp_path, one=options)["one"]
    assert search.result["counted"] == search.result["calls"] == 60
    assert (tmp_path / "esopt" / "events.jsonl").is_file(), "our files go to the working folder then"


def test_programs_keep_their_imports_and_helpers(ended: dict[str, Ended]) -> None:
    """LLM4AD keeps the body of one function: programs with an import or a helper of their own all failed."""
    search = ended["helpers"]
    assert set(search.statuses) == {"ok"}
    assert all("import math" in one["function"] and "def weighed" in one["function"] for one in samples(search))
    assert any("def weighed" in prompt for prompt in search.result["prompts"]), "parents are shown with their helpers"


def test_options_of_the_evaluation_hold(ended: dict[str, Ended]) -> None:
    """Without it programs would be evaluated otherwise than LLM4AD does: without numba, protected division, a seed."""
    assert set(ended["numba"].statuses) == {"ok"}


def test_equal_scores_of_zero_are_scores(ended: dict[str, Ended]) -> None:
    """LLM4AD gives equal scores minus infinity after it has logged them; 0 counts as no score elsewhere."""
    search = ended["constant"]
    assert search.events("end")[0]["best"]["objective"] == 0
    assert search.result["scores"][0] == "0.0"
    assert search.events("update") == [], "equal rewards hold no direction"
    assert search.events("skip")


def test_search_that_llm4ad_resumes_goes_on(llm4ad: Install, tmp_path: Path) -> None:
    """A population smaller than pop_size is left aside by LLM4AD's resume, which then loops without asking anything."""
    first = run(llm4ad, tmp_path, one={"eoh": {"max_generations": 4}})["one"]
    events = first.events()
    newest = max((tmp_path / "one/results/population").iterdir(), key=lambda path: int(path.stem.split("_")[1]))
    newest.write_text(json.dumps(json.loads(newest.read_text())[:2]))
    eoh = {"max_generations": 8, "max_sample_nums": 200}
    options = {"resume": True, "eoh": eoh, "attach": {"schedule": "host", "directions": 2}}
    search = run(llm4ad, tmp_path, one=options)["one"]
    assert first.events() == events, "the first run's log was touched"
    assert search.events("update", name="esopt-2")
    given = search.events("given", name="esopt-2")
    assert [one["objective"] for one in given] == [-one["score"] for one in json.loads(newest.read_text())]
    assert search.result["generation"] == 8
    assert search.result["counted"] == first.result["counted"] + search.result["calls"]


@pytest.mark.parametrize("writer", ["deaf", "leaving"])
def test_resisting_programs_of_llm4ad_end_on_time(llm4ad: Install, tmp_path: Path, writer: str) -> None:
    """LLM4AD ends the process that it started, after 5 s of patience, and nothing that this one has started."""
    options = {
        "task": {"timeout_seconds": 1},
        "writer": writer,
        "eoh": {"pop_size": 2, "num_evaluators": 2, "max_sample_nums": 6},
        "attach": {"directions": 2},
    }
    search = run(llm4ad, tmp_path, one=options)["one"]
    assert search.statuses["timeout"] >= 4
    assert search.result["seconds"] < 120, "programs slept for 600 s"
    assert not processes(*SLEEPER)


def test_budget_ends_llm4ads_search(ended: dict[str, Ended]) -> None:
    """Without it a user's limit would be exceeded, or count something else than what was named."""
    by_attempts, by_evaluations = ended["attempts"], ended["evaluations"]
    assert by_attempts.ledger["start_candidates"] + by_attempts.ledger["candidates"] == 17
    assert by_attempts.result["counted"] == 17
    assert by_evaluations.ledger["evaluations"] == 11


def test_hosts_evaluator_of_llm4ad(ended: dict[str, Ended]) -> None:
    """Without it evaluations that only work by LLM4AD's own machinery could not be used at all."""
    search = ended["by_host"]
    assert "the host's own evaluator" in search.events("start")[0]["isolation"]
    assert set(search.statuses) == {"ok"}


def test_bad_input_to_llm4ads_search(llm4ad: Install, tmp_path: Path) -> None:
    """Without it mistakes show late, as an error of the host's, or not at all: LLM4AD swallows every exception."""
    put_quantised(tmp_path / "quantised")
    found = run(llm4ad, tmp_path, **{name: options for name, (options, _) in BAD_INPUT.items()})
    for name, (_, words) in BAD_INPUT.items():
        assert words in found[name].result["error"]
        has_searched = name in ("run_twice", "after_run", "nothing_valid")
        assert has_searched == (found[name].result["calls"] > 0)


@pytest.mark.model
def test_small_model_learns_in_a_search_of_llm4ad(llm4ad: Install, small_model: Path, tmp_path: Path) -> None:
    """Without it everything could work with a scripted model, and nothing with one that has weights."""
    options = {
        "eoh": {"pop_size": 2, "num_samplers": 2, "num_evaluators": 2},
        "attach": {
            "model": str(small_model),
            "scope": "norms",
            "directions": 6,
            "max_new_tokens": 48,
            "reward": "graded",
        },
    }
    search = run(llm4ad, tmp_path, one=options)["one"]
    assert search.result["error"] == ""
    assert {generation for generation, _ in sizes(search)} == {-1, 0, 1, 2}
    history = load_history(search.folder / "results" / "esopt")
    assert len(history.updates) >= 2
    assert all(any(update.weights) for update in history.updates)
    assert history.final_checksum != history.base_checksum
    directions = {one["direction"] for event in search.events("replies") for one in event["candidates"]}
    assert {seed for update in history.updates for seed in update.seeds} <= directions
    assert replay_history(history, str(small_model), list).verdict == "The weights equal the run's."
