"""What a run's log already holds, looked up by place, so that a resumed search does not do it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eoh_esopt.engine.events import Event
from eoh_esopt.engine.timings import Timings
from eoh_esopt.models import chat
from eoh_esopt.models.protocol import Reply, Request
from operators.errors import UserError
from operators.records import Outcome, Skip, Status, Update
from operators.update_fields import fields_of


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """An outcome as an event holds it."""
    return {
        "status": outcome.status.value,
        "objective": outcome.objective,
        "per_instance": list(outcome.per_instance),
        "calls": outcome.calls,
        "detail": outcome.detail,
        "trace": outcome.trace,
    }


def reply_fields(reply: Reply) -> dict[str, Any]:
    """A reply as an event holds it."""
    return {
        "text": reply.text,
        "prompt_tokens": reply.prompt_tokens,
        "new_tokens": reply.new_tokens,
        "truncated": reply.truncated,
    }


class Recorded:
    """Replies, outcomes and decisions of earlier sittings of the same run.

    Attributes:
        batches: how many came to their end.
        contexts: how often the context was renewed.
        last_update: running number of the last update; -1 before the first.
        timings: where their time went, up to the end of the last batch.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._replies: dict[int, dict[str, Any]] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._decisions: dict[int, Event] = {}
        self.batches = 0
        self.contexts = 0
        self.last_update = -1
        self.timings = Timings()
        unsettled: list[int] = []
        for event in events:
            kind = event["event"]
            if kind == "replies":
                self._replies.update({one["id"]: one for one in event["candidates"]})
            elif kind == "outcome":
                self._outcomes[event["id"]] = _outcome(event)
                unsettled.append(event["id"])
            elif kind in ("update", "skip"):
                self._decisions[event["step"]] = event
                if kind == "update":
                    self.last_update = event["step"]
                unsettled.clear()
            elif kind == "context":
                self.contexts += 1
            elif kind == "batch":
                self.batches += 1
                self.timings = Timings.of(event.get("timings", {}))
                unsettled.clear()
        for candidate in unsettled:
            if self._outcomes[candidate].status is Status.INFRASTRUCTURE:
                del self._outcomes[candidate]

    def reply(self, candidate: int, request: Request) -> Reply | None:
        """The reply that was written for a candidate.

        Raises:
            UserError: it was written for another prompt or under another direction: the log is not of this search.
        """
        fields = self._replies.get(candidate)
        if fields is None:
            return None
        direction = (request.direction.seed, request.direction.sigma) if request.direction else (None, None)
        if (fields["prompt"], fields["direction"], fields["sigma"]) != (chat.as_json(request.prompt), *direction):
            raise UserError(
                f"The log's candidate {candidate} was asked for by another prompt or direction than this search's. "
                "Resume the run with the release that began it, or begin a new one."
            )
        return Reply(fields["text"], fields["prompt_tokens"], fields["new_tokens"], fields["truncated"])

    def outcome(self, candidate: int) -> Outcome | None:
        """What became of a candidate. An infrastructure failure that no update rests on yet is tried again."""
        return self._outcomes.get(candidate)

    def holds(self, decision: Update | Skip) -> bool:
        """Whether the update or skip is in the log.

        Raises:
            UserError: another one is there in its place: the log is not of this search.
        """
        event = self._decisions.get(decision.step)
        if event is None:
            return False
        same = event.get("reason") == decision.reason if isinstance(decision, Skip) else _moves_alike(event, decision)
        if not same:
            raise UserError(
                f"The log's update {decision.step} is not the one that its outcomes lead to. "
                "Resume the run with the release that began it, or begin a new one."
            )
        return True


def _moves_alike(event: Event, update: Update) -> bool:
    fields = fields_of(update)
    return all(event.get(name) == fields.get(name) for name in ("seeds", "weights", "inherited"))


def _outcome(event: Event) -> Outcome:
    return Outcome(
        status=Status(event["status"]),
        objective=event["objective"],
        per_instance=tuple(event["per_instance"]),
        calls=event["calls"],
        detail=event["detail"],
        trace=event["trace"],
    )
