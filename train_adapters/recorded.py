"""What a training's log already holds, looked up by place, so that a resumed one does not do it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from eoh_esopt.engine.events import Event
from eoh_esopt.engine.recorded import Recorded
from eoh_esopt.engine.timings import Timings
from operators.errors import UserError
from train_adapters.adapter import Ending, Episode
from train_adapters.rollout import Job

_OPENS = ("start", "resume")
_DECIDES = ("update", "skip", "evaluation", "generation", "skill_proposal", "skill_verdict")


def episode_fields(episode: Episode) -> dict[str, Any]:
    """An episode as an event holds it."""
    return {**asdict(episode), "ending": episode.ending.value}


def directions_of(jobs: Sequence[Job]) -> list[list[Any]]:
    """The directions of some episodes, as an event holds them; none where they are played on the current weights."""
    found = dict.fromkeys(job.direction for job in jobs if job.direction is not None)
    return [[one.seed, one.sigma] for one in found]


class RecordedTraining:
    """Episodes and decisions of earlier sittings of the same training.

    Attributes:
        decisions: updates and skips.
        generations: how many came to their end.
        evaluations: how many came to their end.
        timings: where their time went.
        inference_bytes: peak memory before anything was learnt; None where it was not measured.
        proposals: revisions of the skill, by their number.
        verdicts: on them, by the same.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.decisions = Recorded(events)
        self.generations = 0
        self.evaluations = 0
        self.timings = Timings()
        self.inference_bytes: int | None = None
        self.proposals: dict[int, Event] = {}
        self.verdicts: dict[int, Event] = {}
        self._waves: dict[tuple[str, int], Event] = {}
        unsettled: list[tuple[str, int]] = []
        attempt: int | None = None
        for event in events:
            kind = event["event"]
            attempt = event["revision"] if kind == "skill_proposal" else attempt if kind in _OPENS else None
            if kind == "episodes":
                key = event["place"], event["wave"]
                self._waves[key] = event
                unsettled.append(key)
            if kind in _DECIDES:
                unsettled.clear()
            if kind == "skill_proposal":
                self.proposals[event["revision"]] = event
            if kind == "skill_verdict":
                self.verdicts[event["revision"]] = event
            self.generations += kind == "generation"
            self.evaluations += kind == "evaluation"
            self.timings = Timings.of(event["timings"]) if "timings" in event else self.timings
            self.inference_bytes = event.get("inference_bytes", self.inference_bytes)
        for key in unsettled:  # failures of ours that nothing rests on yet are tried again
            if any(not Ending(one["ending"]).counts for one in self._waves[key]["episodes"]):
                del self._waves[key]
        if attempt is not None and self.proposals[attempt]["outcome"] == "failed":
            del self.proposals[attempt]  # so is a revision that the language model gave no answer to

    def wave(self, place: str, wave: int, jobs: Sequence[Job]) -> list[Episode] | None:
        """The episodes that were played side by side there.

        Raises:
            UserError: they were others: the log is not of this training.
        """
        event = self._waves.get((place, wave))
        if event is None:
            return None
        found = [Episode(**{**one, "ending": Ending(one["ending"])}) for one in event["episodes"]]
        same = [(one.task, one.sample) for one in found] == [(job.task.id, job.sample) for job in jobs]
        if not same or event["directions"] != directions_of(jobs):
            raise UserError(
                f"The log's episodes of {place} are of other tasks or directions than this training's. "
                "Resume it with the release that began it, or begin a new one."
            )
        return found
