"""One attached search, driven without a host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from test_trial import facts

from eoh_esopt.engine.batches import START, Parts
from eoh_esopt.engine.events import open_log, read_events
from eoh_esopt.engine.history import History, load_history
from eoh_esopt.engine.listener import Listener
from eoh_esopt.engine.methods import learning
from eoh_esopt.engine.recorded import Recorded
from eoh_esopt.hosts.groups import Unwritten
from eoh_esopt.hosts.host import BudgetSpent, Draft, Parent, Slot, Written
from eoh_esopt.hosts.session import Session
from eoh_esopt.hosts.settings import Settings, settings_of
from eoh_esopt.models.protocol import Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.momentum import momentum
from operators.records import Outcome, Status
from operators.task import Task

TASK = Task("near", "", "value", ("first", "second"), "def value(first, second):", "", "", (), ())


class Numbers:
    """Evaluates programs that return a number; others fail as the name they return says."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        self.ran += codes
        for place, code in enumerate(codes):
            returned = code.rpartition("return ")[2].strip()
            try:
                yield place, Outcome(Status.OK, float(returned), (float(returned),), 1)
            except ValueError:
                yield place, Outcome(Status(returned))


def program(returned: str) -> str:
    return f"def value(first, second):\n    return {returned}\n"


WORST = Parent(program("99"), "the worst of a population", 99.0)


class PerDirection(ScriptedModel):
    """Perturbs its weights in place: a batch has one direction."""

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        return [list(group) for _, group in groupby(range(len(requests)), lambda at: requests[at].direction)]

    def generate(self, requests: Sequence[Request]) -> list[Any]:
        assert len({request.direction for request in requests}) == 1
        return super().generate(requests)


def settings(**given: Any) -> Settings:
    limits = {name: given.pop(name) for name in ("budget", "budget_unit") if name in given}
    arguments = {"directions": 2, "sigma": 0.1, "sigma_final": 0.0, "alpha": 0.1, "reward": "paper", **given}
    named: dict[str, Any] = {
        "model": "scripted",
        "backend": "transformers",
        "method": None,
        "schedule": "host",
        "evaluator": "sandbox",
        "budget": None,
        "budget_unit": "attempts",
        "output": None,
        **limits,
    }
    asked = settings_of(facts(operators=("e1", "m1", "m2")), given=arguments, **named)
    return asked.resolved(asked.run.resolved(1), facts())


@contextmanager
def session(folder: Path, model: ScriptedModel, evaluator: Any = None, **given: Any) -> Iterator[Session]:
    asked = settings(**given)
    folder.mkdir(exist_ok=True)
    with open_log(folder) as log:
        parts = Parts(
            task=TASK,
            operators={name: learning(asked.run, Unwritten(name)) for name in ("m1", "m2")},
            momentum=momentum(0.0),
            model=model,
            evaluator=evaluator or Numbers(),
            log=log,
            recorded=Recorded([]),
            listener=Listener(),
            clock=lambda: 0.0,
        )
        history = History("scripted", "0" * 64, "full", "exact", "float32")
        yield Session(asked, facts(), parts, history, lambda line: None)


def slot(operator: str, *prompts: str, parents: Sequence[Parent] = (), code: str = "") -> Slot:
    """A candidate that returns the last reply, or `code`; no program where that is empty."""

    def write() -> Draft | None:
        heard = ""
        for prompt in prompts or ("?",):
            heard = Session.ask(prompt)
        return Draft(program(code or heard), "an idea", tuple(parents)) if code or heard else None

    return Slot(operator, write)


def model_of(*texts: str) -> ScriptedModel:
    """A model that writes these texts in turn, over and over."""
    replies = iter(texts * 100)
    return ScriptedModel(lambda request, number: next(replies))


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [event for event in read_events(folder) if event["event"] == kind]


def test_one_direction_is_held_over_all_calls_of_a_candidate(tmp_path: Path) -> None:
    """Without it a host's retries would be written under other weights than those that get the reward."""
    model = PerDirection(lambda request, number: request.prompt[-1])
    with session(tmp_path, model) as one:
        one.batch(0, [slot("m1", "a1", "a2", "a3"), slot("e1", "b1"), slot("m1", "c1", "c2")], [])
    held: dict[str, set[Any]] = {}
    for request in model.requests:
        held.setdefault(request.prompt[0], set()).add(request.direction)
    assert [len(directions) for directions in held.values()] == [1, 1, 1]
    assert held["b"] == {None}
    assert held["a"] != held["c"]
    assert len({request.seed for request in model.requests}) == len(model.requests), "two calls drew the same tokens"


def test_everything_is_counted_by_itself(tmp_path: Path) -> None:
    """Without it a budget in one unit would be spent in another."""
    with session(tmp_path, model_of("1", "2", "")) as one:
        one.batch(START, [slot("i1"), slot("i1"), slot("i1")], [])
        one.batch(0, [slot("e1", "x", "y"), slot("e1", code="1")], [])
        ledger = one.ledger
    assert (ledger.start_candidates, ledger.candidates, ledger.model_calls) == (3, 2, 6)
    assert ledger.evaluations == 2, "a duplicate and a reply without a program cost none"
    assert (ledger.valid, ledger.new) == (1, 0)


def test_update_is_made_when_the_group_is_complete(tmp_path: Path) -> None:
    """Without it groups of one candidate would be told one by one, and nothing learnt."""
    model = model_of("3", "9", "5")
    with session(tmp_path, model) as one:
        one.batch(0, [slot("m1")], [WORST])
        assert model.updates == []
        one.batch(1, [slot("e1"), slot("m1")], [WORST])
        assert [len(update.seeds) for update in model.updates] == [2]
    assert load_history(tmp_path).updates == tuple(model.updates)


def test_reward_is_measured_from_the_parents_true_objective(tmp_path: Path) -> None:
    """Without it gains below a host's rounding would be lost."""
    model = model_of("1.0000001", "1.0000004", "1.0000002")
    with session(tmp_path, model) as one:
        one.batch(START, [slot("i1")], [])
        shown = Parent(program("1.0000001"), "an idea", 1.0)  # as the host rounds it
        one.batch(0, [slot("m1", parents=[shown]), slot("m1", parents=[shown])], [shown, WORST])
    assert model.updates[0].rewards == pytest.approx((-3e-7, -1e-7), rel=1e-6)


def test_failures_of_ours_are_no_rewards(tmp_path: Path) -> None:
    """Without it the model would learn from a machine that ran out of memory."""
    model = model_of("3", Status.INFRASTRUCTURE.value, "5")
    with session(tmp_path, model, directions=3) as one:
        one.batch(0, [slot("m1"), slot("m1"), slot("m1")], [WORST])
    assert len(model.updates[0].seeds) == 2


def test_operators_of_a_mixed_batch_are_booked_apart(tmp_path: Path) -> None:
    """Without it reports of the log would ascribe candidates to the wrong operator."""
    with session(tmp_path, model_of("1", "2", "3", "4")) as one:
        written = one.batch(0, [slot("m1"), slot("e1"), slot("m1"), slot("m2")], [])
    batches = {event["operator"]: event for event in events(tmp_path, "batch")}
    assert {name: event["ids"] for name, event in batches.items()} == {"m1": [0, 1], "e1": [2, 2], "m2": [3, 3]}
    assert batches["m1"]["objectives"] == [1.0, 3.0]
    assert [one.note["operator"] for one in written] == ["m1", "e1", "m1", "m2"]
    assert [one.outcome and one.outcome.objective for one in written] == [1.0, 2.0, 3.0, 4.0]


def test_members_of_unknown_origin_are_entered(tmp_path: Path) -> None:
    """Without it a population from a host's file would break the log, or never count as the best."""
    with session(tmp_path, model_of("5")) as one:
        member = Parent(program("0.5"), "from a file", 0.5)
        written = one.batch(0, [slot("m1", parents=[member])], [member])
        assert one.population[0].objective == 0.5
    given = events(tmp_path, "given")
    assert [event["code"] for event in given] == [program("0.5")]
    assert written[0].note["parents"] == [given[0]["id"]]


def test_directions_that_a_search_leaves_unused_are_booked(tmp_path: Path) -> None:
    """Without it a history would not show that candidates were written and nothing was learnt from them."""
    with session(tmp_path, model_of("3")) as one:
        one.batch(0, [slot("m1")], [])
        one.end()
        assert one.ledger.skips == 1
    assert events(tmp_path, "skip")[0]["reason"] == "the search ended with 1 of 2 candidates of an update of m1"


def _spend(one: Session, batches: int) -> list[list[Written]]:
    """Batches of three candidates with two calls each, until the budget is spent."""
    written = []
    for generation in range(batches):
        try:
            written.append(one.batch(generation, [slot("e1", "x", "y") for _ in range(3)], []))
        except BudgetSpent:
            break
    return written


@pytest.mark.parametrize(
    ("unit", "budget", "spent"),
    [
        ("attempts", 5, lambda ledger: ledger.candidates),
        ("model_calls", 8, lambda ledger: ledger.model_calls),
        ("evaluations", 4, lambda ledger: ledger.evaluations),
    ],
)
def test_budget_is_met_exactly(tmp_path: Path, unit: str, budget: int, spent: Callable[[Any], int]) -> None:
    """Without it a user pays for more than was allowed, or the search ends early."""
    model = ScriptedModel(lambda request, number: str(number))
    with session(tmp_path, model, budget=budget, budget_unit=unit) as one:
        written = _spend(one, batches=9)
        assert spent(one.ledger) == budget
    assert len(written) == 2
    assert [len(batch) for batch in written] == [3, 3], "one result a slot, whatever the budget cuts off"


def test_candidates_that_the_budget_cut_off_have_no_outcome(tmp_path: Path) -> None:
    """Without it a candidate that was never finished would count as a failure, and be learnt from."""
    model = ScriptedModel(lambda request, number: str(number))
    with session(tmp_path, model, budget=2, budget_unit="model_calls") as one:
        written = one.batch(0, [slot("m1", "x"), slot("m1", "x", "y")], [])
        assert [result.outcome is not None for result in written] == [True, False]
        assert one.ledger.candidates == 1
    assert events(tmp_path, "update") == []


def test_given_programs_are_no_attempts(tmp_path: Path) -> None:
    """Without it the programs of a seed file would use up the budget of attempts."""
    with session(tmp_path, model_of("1")) as one:
        written = one.given([Draft(program("4"), "from a seed file", ()), Draft(program("raised"), "broken", ())])
        assert [result.outcome and result.outcome.status for result in written] == [Status.OK, Status.RAISED]
        assert (one.ledger.start_candidates, one.ledger.candidates, one.ledger.evaluations) == (0, 0, 2)
        assert one.population[0].objective == 4.0
