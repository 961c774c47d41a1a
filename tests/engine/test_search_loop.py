"""The search's loop over a scripted model and the real sandbox: what is asked, counted, rewarded and noted."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from scripted import (
    BROKEN,
    NO_PROGRAM,
    Failing,
    ScriptedModel,
    canonical,
    dump,
    heuristic,
    of_kind,
    run_search,
    settings,
)

from eoh_esopt.engine.batches import best_file
from eoh_esopt.engine.events import BEST, HISTORY, read_events
from eoh_esopt.engine.history import load_history
from eoh_esopt.engine.listener import BatchReport, Listener
from eoh_esopt.models.protocol import Request
from eoh_esopt.sandbox.evaluator import Evaluator
from operators.errors import UserError
from operators.records import Candidate
from problems.tsp_construct import TASK

SEEDS = len(TASK.seeds)


@pytest.mark.parametrize("budget", [3, 4, 10, 11, 13, 21])
@pytest.mark.parametrize("method", ["esopt-eoh", "eoh", "esopt-sample"])
def test_the_budget_is_spent_exactly(tmp_path: Path, evaluator: Evaluator, method: str, budget: int) -> None:
    """Else arms of a comparison get different numbers of candidates."""
    config = settings(method=method, budget=budget)
    model = ScriptedModel()
    search = run_search(tmp_path / "run", evaluator, config, model)
    start = 0 if config.samples else config.population
    ledger = search.ledger
    assert (ledger.candidates, ledger.start_candidates) == (budget, start)
    assert ledger.model_calls == len(model.requests) == budget + start
    batches = of_kind(tmp_path / "run", "batch")
    assert sum(len(batch["statuses"]) for batch in batches if batch["generation"] >= 0) == budget
    assert batches[-1]["ledger"] == ledger.as_dict()
    ids = [number for batch in batches for number in range(batch["ids"][0], batch["ids"][1] + 1)]
    assert ids == list(range(SEEDS + start + budget))


@pytest.mark.parametrize("method", ["esopt-eoh", "esopt-sample"])
def test_the_same_seed_gives_the_same_run(
    tmp_path: Path, evaluator: Evaluator, lone_evaluator: Evaluator, method: str
) -> None:
    """Else results cannot be repeated, or depend on the number of workers."""
    config = settings(method=method)
    first = run_search(tmp_path / "two", evaluator, config)
    again = run_search(tmp_path / "again", evaluator, config)
    alone = run_search(tmp_path / "one", lone_evaluator, config)
    assert dump(first) == dump(again) == dump(alone)
    logs = [canonical(read_events(tmp_path / name)) for name in ("two", "again", "one")]
    assert logs[0] == logs[1] == logs[2]
    assert first.ledger.updates > 0, "a run without an update shows nothing"


def test_another_seed_gives_another_run(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else repetitions of a run are copies of it."""
    first = run_search(tmp_path / "1", evaluator, settings(seed=1))
    other = run_search(tmp_path / "2", evaluator, settings(seed=2))
    assert first.history.updates[0].seeds != other.history.updates[0].seeds


def test_only_the_learning_operators_get_directions(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else e1 and e2 write with noise in their weights, or m1 and m2 teach nothing."""
    run_search(tmp_path / "run", evaluator, settings(samples_per_direction=2, budget=16))
    directions: dict[str, list[object]] = {}
    for event in of_kind(tmp_path / "run", "replies"):
        directions.setdefault(event["operator"], []).extend(one["direction"] for one in event["candidates"])
    assert {name for name, given in directions.items() if None in given} == {"i1", "e1", "e2"}
    for name in ("m1", "m2"):
        assert sorted(Counter(directions[name]).values()) == [2, 2, 2]


def test_without_learning_no_direction_and_no_update(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the control arm learns too."""
    model = ScriptedModel()
    search = run_search(tmp_path / "run", evaluator, settings(method="eoh"), model)
    assert all(request.direction is None for request in model.requests)
    assert (search.history.updates, search.ledger.updates, search.ledger.skips) == ((), 0, 0)
    assert of_kind(tmp_path / "run", "update") == of_kind(tmp_path / "run", "skip") == []


def test_duplicates_cost_no_evaluation(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the sandbox runs the same program again and again."""
    watched = Failing(evaluator, lambda code: False)
    model = ScriptedModel(lambda request, weights: heuristic(0.25))
    search = run_search(tmp_path / "run", watched, model=model)
    assert len(watched.seen) == search.ledger.evaluations == SEEDS + 1
    assert search.ledger.new == 0, "the start population had it already"
    assert search.ledger.valid == search.ledger.candidates
    assert len(of_kind(tmp_path / "run", "outcome")) == SEEDS + 1


def test_replies_without_a_program_are_noted_and_cost_no_evaluation(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else such a reply stops the run, or is run as if it were a program."""
    search = run_search(tmp_path / "run", evaluator, model=ScriptedModel(lambda request, weights: NO_PROGRAM))
    assert search.ledger.evaluations == SEEDS
    assert {status for batch in of_kind(tmp_path / "run", "batch")[1:] for status in batch["statuses"]} == {"no_code"}


@pytest.mark.parametrize("method", ["esopt-eoh", "esopt-sample"])
def test_a_model_that_only_fails_does_not_stop_the_search(tmp_path: Path, evaluator: Evaluator, method: str) -> None:
    """Else a small model's first bad batches end the run in a traceback, or move its weights by noise."""
    model = ScriptedModel(lambda request, weights: BROKEN)
    search = run_search(tmp_path / "run", evaluator, settings(method=method), model)
    assert search.ledger.candidates == 13
    assert [one.operator for one in search.population] == ["seed"] * len(search.population)
    assert model.updates == []
    reasons = {event["reason"] for event in of_kind(tmp_path / "run", "skip")}
    assert reasons
    assert len(of_kind(tmp_path / "run", "skip")) == search.ledger.skips > 0


def test_a_skip_is_noted_with_its_reason(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else nobody can tell why the weights did not move."""
    search = run_search(
        tmp_path / "run", evaluator, settings(budget=10), ScriptedModel(lambda request, weights: heuristic(0.25))
    )
    skips = of_kind(tmp_path / "run", "skip")
    assert [(skip["step"], skip["generation"], skip["reason"]) for skip in skips] == [
        (0, 0, "all 3 directions had the same reward"),
        (1, 0, "all 3 directions had the same reward"),
    ]
    assert (search.ledger.skips, search.ledger.updates) == (2, 0)


def losing(code: str) -> bool:
    """About half of the programs, none of the seeds."""
    return "Weigh" not in code and code not in [seed.code for seed in TASK.seeds] and len(code) % 2 == 0


def by_place(request: Request, weights: str) -> str:
    """Programs of two lengths, all different."""
    return heuristic(round((request.seed % 1000) / 1000, 2 + request.seed % 2))


def test_our_own_failures_are_never_rewarded(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else a crashed worker counts as a bad candidate and pushes the weights away from it."""
    search = run_search(tmp_path / "run", Failing(evaluator, losing), settings(directions=6), ScriptedModel(by_place))
    lost = {event["id"] for event in of_kind(tmp_path / "run", "outcome") if event["status"] == "infrastructure"}
    asked = {
        candidate["id"]: candidate["direction"]
        for event in of_kind(tmp_path / "run", "replies")
        for candidate in event["candidates"]
    }
    unscored = {asked[candidate] for candidate in lost} - {None}
    rewarded = {seed for update in search.history.updates for seed in update.seeds}
    assert unscored
    assert rewarded
    assert not unscored & rewarded


def test_a_program_that_we_failed_to_run_is_run_when_it_comes_again(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else a crash of ours bars a good heuristic from the run for ever."""
    calls: list[str] = []

    def first_time(code: str) -> bool:
        calls.append(code)
        return "0.25" in code and sum("0.25" in one for one in calls) == 1

    replies = iter([heuristic(0.25), heuristic(0.5), *[heuristic(0.25)] * 13])
    model = ScriptedModel(lambda request, weights: next(replies))
    search = run_search(tmp_path / "run", Failing(evaluator, first_time), model=model)
    statuses = [event["status"] for event in of_kind(tmp_path / "run", "outcome") if event["id"] >= SEEDS]
    assert sorted(statuses[:2]) == ["infrastructure", "ok"]
    assert statuses[2:] == ["ok"], "the first of the second batch; the rest are its duplicates"
    assert search.ledger.valid == 13


def test_a_sandbox_that_fails_on_everything_stops_the_run(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the budget is spent on a broken machine."""
    broken = Failing(evaluator, lambda code: code not in [seed.code for seed in TASK.seeds])

    def write(request: Request, weights: str) -> str:
        return heuristic(0.25 + request.seed % 7)

    model = ScriptedModel(write)
    with pytest.raises(UserError, match=r"failed on all .* None of them was scored.*--resume"):
        run_search(tmp_path / "run", broken, model=model)
    mended = run_search(tmp_path / "run", evaluator, model=model)
    whole = run_search(tmp_path / "whole", evaluator, model=ScriptedModel(write))
    assert dump(mended) == dump(whole)


def test_shuffled_rewards_are_the_same_weights_in_another_order(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the control differs from the method in more than who gets the reward."""
    plain = run_search(tmp_path / "plain", evaluator, settings(directions=6))
    shuffled = run_search(tmp_path / "shuffled", evaluator, settings(directions=6, shuffle_rewards=True))
    one, other = plain.history.updates[0], shuffled.history.updates[0]
    assert (one.seeds, one.rewards, one.alpha, one.sigma) == (other.seeds, other.rewards, other.alpha, other.sigma)
    assert sorted(one.weights) == sorted(other.weights)
    assert one.weights != other.weights


def test_sigma_goes_from_its_first_to_its_last_value(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the last generations still write under full noise."""
    config = settings(budget=30, sigma=0.5, sigma_final=0.125)
    run_search(tmp_path / "run", evaluator, config)
    sigmas = [
        candidate["sigma"]
        for event in of_kind(tmp_path / "run", "replies")
        for candidate in event["candidates"]
        if candidate["sigma"] is not None
    ]
    assert (sigmas[0], sigmas[-1]) == (0.5, 0.125)
    assert sigmas == sorted(sigmas, reverse=True)


def test_the_files_of_the_folder_are_those_of_the_search(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the best heuristic or the history on disk lag behind what the run found."""
    model = ScriptedModel()
    search = run_search(tmp_path / "run", evaluator, model=model)
    assert load_history(tmp_path / "run") == search.history
    assert list(search.history.updates) == model.updates
    assert (tmp_path / "run" / BEST).read_text() == best_file(search.population[0])
    assert (tmp_path / "run" / HISTORY).exists()
    best = of_kind(tmp_path / "run", "batch")[-1]["best"]
    assert best == search.population[0].objective
    [(_, outcome)] = evaluator.evaluate([(tmp_path / "run" / BEST).read_text()])
    assert outcome.objective == best


@pytest.mark.parametrize("idea", ["coding: nearest", "two\nlines\u2028three\x0cfour", 'a "quote" \\', ""])
def test_the_best_heuristics_file_is_python_whatever_its_idea(idea: str) -> None:
    """Else an idea that a model wrote makes the file of the best heuristic useless."""
    code = "def f():\n    return 1\n"
    text = best_file(Candidate(3, "m1", idea, code, 1.5))
    assert ast.dump(ast.parse(text.encode())) == ast.dump(ast.parse(code))
    assert "1.5" in text


class Ear(Listener):
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()
        self.reports: list[BatchReport] = []

    def on_batch(self, generation: int, operator: str, count: int) -> None:
        self.heard["announced"] += count

    def on_replies(self, count: int) -> None:
        self.heard["replies"] += count

    def on_batch_end(self, report: BatchReport) -> None:
        self.reports.append(report)


def test_a_listener_hears_of_every_batch(tmp_path: Path, evaluator: Evaluator) -> None:
    """Else the display stands still while the search goes on."""
    ear = Ear()
    search = run_search(tmp_path / "run", evaluator, model=ScriptedModel(per_row=False), listener=ear)
    assert ear.heard["announced"] == SEEDS + 2 + 13
    assert ear.heard["replies"] == search.ledger.model_calls
    assert sum(len(report.outcomes) for report in ear.reports) == SEEDS + 2 + 13
    assert ear.reports[0].operator == "seed"
    assert ear.reports[-1].ledger == search.ledger
    assert ear.reports[0].ledger != search.ledger, "a report is a picture of its moment"
