"""What a log already holds: replies, outcomes and decisions by place, and what is tried again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eoh_esopt.engine.events import Event
from eoh_esopt.engine.recorded import Recorded, outcome_fields, reply_fields
from eoh_esopt.models.protocol import Reply, Request
from operators.errors import UserError
from operators.records import Direction, Outcome, Skip, Status, Update

OK = Outcome(Status.OK, 0.1 + 0.2, (0.1, 0.5), 40)
LOST = Outcome(Status.INFRASTRUCTURE, detail="lost")
REPLY = Reply("text", 12, 3, True)
UPDATE = Update(0, (5, 6), (1.0, 0.0), (1.0, -1.0), 0.03, 0.06)


def through_json(*events: Event) -> Recorded:
    return Recorded([json.loads(json.dumps(event)) for event in events])


def outcome(candidate: int, what: Outcome) -> Event:
    return {"event": "outcome", "id": candidate, **outcome_fields(what)}


def replies(direction: Direction | None) -> Event:
    where: dict[str, Any] = {
        "direction": direction.seed if direction else None,
        "sigma": direction.sigma if direction else None,
    }
    return {"event": "replies", "candidates": [{"id": 7, "prompt": "ask", **where, **reply_fields(REPLY)}]}


def update(weights: tuple[float, ...] = UPDATE.weights) -> Event:
    return {"event": "update", "step": 0, "seeds": list(UPDATE.seeds), "weights": list(weights)}


@pytest.mark.parametrize("direction", [None, Direction(2**64 - 1, 0.06)])
def test_a_reply_comes_back_as_it_was(direction: Direction | None) -> None:
    """Else a resumed run works with another candidate than the one that was written."""
    recorded = through_json(replies(direction))
    assert recorded.reply(7, Request("ask", "", 0, direction)) == REPLY
    assert recorded.reply(8, Request("ask", "", 0, direction)) is None


@pytest.mark.parametrize(
    "request_",
    [
        Request("another", "", 0, Direction(1, 0.5)),
        Request("ask", "", 0, Direction(2, 0.5)),
        Request("ask", "", 0, Direction(1, 0.25)),
        Request("ask", "", 0, None),
    ],
)
def test_a_reply_to_something_else_is_refused(request_: Request) -> None:
    """Else the log of another search is taken for this one's, and directions are rewarded for others' replies."""
    with pytest.raises(UserError, match=r"candidate 7 .* another prompt or direction"):
        through_json(replies(Direction(1, 0.5))).reply(7, request_)


def test_an_outcome_comes_back_to_the_last_bit() -> None:
    """Else a resumed run rewards other numbers."""
    assert through_json(outcome(3, OK)).outcome(3) == OK
    assert through_json(outcome(3, OK)).outcome(4) is None


def test_a_lost_evaluation_is_tried_again_while_nothing_rests_on_it() -> None:
    """Else a crash of ours counts against a candidate for ever although the run was mended and resumed."""
    assert through_json(outcome(3, LOST)).outcome(3) is None
    assert through_json(outcome(3, LOST), outcome(3, OK)).outcome(3) == OK


@pytest.mark.parametrize(
    "decision",
    [update(), {"event": "skip", "step": 0, "reason": "none"}, {"event": "batch"}],
    ids=lambda one: one["event"],
)
def test_a_lost_evaluation_stays_once_the_weights_or_the_population_rest_on_it(decision: Event) -> None:
    """Else a resumed run makes another update than the log holds, and is refused."""
    assert through_json(outcome(3, LOST), decision, outcome(4, LOST)).outcome(3) == LOST


def test_batches_are_counted() -> None:
    """Else a resumed run notes a batch twice."""
    assert through_json({"event": "batch"}, outcome(1, OK), {"event": "batch"}).batches == 2


def test_a_decision_is_held_only_in_its_place() -> None:
    """Else an update is logged twice, or not at all."""
    recorded = through_json(update(), {"event": "skip", "step": 1, "reason": "no spread"})
    assert recorded.holds(UPDATE)
    assert recorded.holds(Skip(1, "no spread"))
    assert not recorded.holds(Skip(2, "no spread"))
    assert recorded.last_update == 0


@pytest.mark.parametrize(
    ("logged", "decision"),
    [
        (update((1.0, -0.5)), UPDATE),
        (update(), Skip(0, "no spread")),
        ({"event": "skip", "step": 0, "reason": "no spread"}, UPDATE),
        ({"event": "skip", "step": 0, "reason": "no spread"}, Skip(0, "sigma is 0")),
    ],
)
def test_another_decision_in_its_place_is_refused(logged: Event, decision: Update | Skip) -> None:
    """Else a resumed run goes on with weights that its history does not give."""
    with pytest.raises(UserError, match="update 0 is not the one that its outcomes lead to"):
        through_json(logged).holds(decision)
