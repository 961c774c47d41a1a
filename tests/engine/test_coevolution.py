"""Searches whose prompts learn too."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import ScriptedModel, mixed, of_kind, run_search, settings

from eoh_esopt.engine.coevolution import CoEvolution
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.models.protocol import Request
from eoh_esopt.sandbox.evaluator import Evaluator
from operators.context import Failure
from operators.errors import UserError
from operators.records import Outcome, Proposal, Status
from operators.rewards import Trial, graded

BUDGET = 44  # four generations of ten candidates and three questions, and what is left


def co_evolving(**changes: object) -> RunConfig:
    return settings(**{"co_evolve": True, "budget": BUDGET, **changes})


@pytest.mark.parametrize("method", ["eoh", "esopt-eoh"])
def test_questions_count_in_the_budget(tmp_path: Path, evaluator: Evaluator, method: str) -> None:
    """An arm that asks for insights would have spent more than one that does not."""
    model = ScriptedModel()
    search = run_search(tmp_path / "run", evaluator, co_evolving(method=method), model)
    ledger = search.ledger
    events = of_kind(tmp_path / "run", "context")
    assert ledger.candidates == BUDGET
    assert ledger.reflections == len(events) == 4
    assert ledger.model_calls == ledger.start_candidates + BUDGET == len(model.requests)
    assert (ledger.updates > 0) == (method == "esopt-eoh")


def test_insights_are_shown_by_the_next_generation(tmp_path: Path, evaluator: Evaluator) -> None:
    """What was learnt would reach no prompt."""
    run_search(tmp_path / "run", evaluator, co_evolving())
    contexts = {one["generation"]: one for one in of_kind(tmp_path / "run", "context")}
    by_id = {one["id"]: one for event in of_kind(tmp_path / "run", "replies") for one in event["candidates"]}
    for batch in of_kind(tmp_path / "run", "batch"):
        before = contexts.get(batch["generation"] - 1)
        if batch["operator"] in ("e1", "e2", "m1", "m2"):
            prompt = by_id[batch["ids"][0]]["prompt"]
            assert all(f"- {one}\n" in prompt for one in before["insights"]) if before else "Keep in mind" not in prompt


def test_a_version_that_lowers_the_reward_is_taken_back(tmp_path: Path, evaluator: Evaluator) -> None:
    """Harmful insights would stay."""

    def harmed(request: Request, weights: str) -> str:
        if "Keep in mind" in request.prompt and "short insights" not in request.prompt:
            return "No program."
        return mixed(request, weights)

    run_search(tmp_path / "run", evaluator, co_evolving(method="eoh"), ScriptedModel(harmed))
    contexts = of_kind(tmp_path / "run", "context")
    assert [one["reverted"] for one in contexts][:3] == [False, True, True]
    assert [one["version"] for one in contexts][:3] == [1, 2, 3], "each new one begins from the empty one"
    assert contexts[1]["reward"] < contexts[0]["reward"]


def test_failures_of_ours_are_not_told_as_the_candidates() -> None:
    """The model would learn to avoid programs that nothing was wrong with."""
    evolution = CoEvolution(graded)
    outcomes = [Outcome(Status.INFRASTRUCTURE, detail="The worker was lost."), Outcome(Status.RAISED, detail="Oh.")]
    evolution.note("m1", ["a", "b"], [Trial(Proposal("m1", "", "", ()), outcome, 1.0) for outcome in outcomes])
    assert list(evolution.failures) == [Failure("b", "raised: Oh.")]


def test_sampling_has_no_generations_to_learn_from() -> None:
    """The option would do nothing without a word."""
    with pytest.raises(UserError, match="--co-evolve"):
        co_evolving(method="esopt-sample")
