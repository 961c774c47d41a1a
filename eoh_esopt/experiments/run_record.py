"""One run as it is read back from its folder: settings, batches, updates, ledger. What reports and comparisons read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eoh_esopt.engine.batches import START
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import BEST, Event, read_events
from eoh_esopt.engine.ledger import Ledger, skip_kind
from eoh_esopt.engine.timings import Timings
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.reports.objective import Scale
from operators.errors import UserError
from operators.records import Skip, Status, Update
from operators.update_fields import update_of

UNFINISHED = "is not finished"


@dataclass(frozen=True)
class Batch:
    """One operator batch.

    Attributes:
        generation: -1 for what comes before the search: seed heuristics and the start population.
        operator: "seed", "given", i1, e1, e2, m1 or m2.
        ids: of its candidates, ascending.
        statuses: one a candidate, see `operators.records.Status`.
        duplicate_of: the earlier candidate it is a copy of, one a candidate; None for those that are new or failed.
        objectives: one a candidate, lower is better; None for those that are not valid.
        best: best objective of the run so far; None where nothing was valid yet.
        seconds: work on the run so far.
        ledger: what was spent so far.
        decision: what was done to the weights after it; None for an operator that does not learn.
        timings: where the time went so far; None in logs of releases that did not note it.
    """

    generation: int
    operator: str
    ids: tuple[int, ...]
    statuses: tuple[str, ...]
    duplicate_of: tuple[int | None, ...]
    objectives: tuple[float | None, ...]
    best: float | None
    seconds: float
    ledger: Ledger
    decision: Update | Skip | None
    timings: Timings | None = None

    @property
    def valid(self) -> tuple[bool, ...]:
        """Whether each candidate solved every instance."""
        return tuple(one is not None for one in self.objectives)

    @property
    def new(self) -> tuple[bool, ...]:
        """Whether each candidate is valid and no copy."""
        pairs = zip(self.valid, self.duplicate_of, strict=True)
        return tuple(valid and original is None for valid, original in pairs)


@dataclass(frozen=True)
class RunRecord:
    """A run.

    Attributes:
        folder: where it lies.
        config: its settings, defaults filled in.
        facts: the first event of its log: model, machine, references, checksum.
        scale: what its objectives mean.
        batches: in order.
        summary: what it ended with; None where it has not ended.
        events: the whole log, for what is asked rarely.
    """

    folder: Path
    config: RunConfig
    facts: Mapping[str, Any]
    scale: Scale
    batches: tuple[Batch, ...]
    summary: Mapping[str, Any] | None
    events: Sequence[Event]

    @property
    def ledger(self) -> Ledger:
        """What was spent in all."""
        return self.batches[-1].ledger if self.batches else Ledger()

    @property
    def timings(self) -> Timings | None:
        """Where the time went, up to the end of the last batch; None where the log does not say."""
        return self.batches[-1].timings if self.batches else None

    @property
    def best(self) -> float | None:
        """Best objective that was found, lower is better; None where nothing was valid."""
        return self.batches[-1].best if self.batches else None

    @property
    def best_code(self) -> str:
        """The file of the best heuristic.

        Raises:
            UserError: it is gone.
        """
        path = self.folder / BEST
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UserError(f"Cannot read {path}: {error}. Restore the run's folder from a copy.") from error

    @property
    def updates(self) -> tuple[Update, ...]:
        """The updates that were applied, in order."""
        return tuple(one.decision for one in self.batches if isinstance(one.decision, Update))

    @property
    def skips(self) -> tuple[Skip, ...]:
        """The updates that were not made, in order."""
        return tuple(one.decision for one in self.batches if isinstance(one.decision, Skip))


def read_run(folder: Path, *, finished: bool = True) -> RunRecord:
    """Read a run back.

    Args:
        folder: the folder of the run.
        finished: whether it has to be finished.

    Raises:
        UserError: the folder holds no run, its log is damaged or cut short, or the run is not finished though it has
            to be.
    """
    events = read_events(folder)
    if not events or events[0]["event"] != "start":
        raise UserError(f"The log in {folder} does not begin with a run's start. Restore it from a copy.")
    ends = [event for event in events if event["event"] == "end"]
    if finished and not ends:
        raise UserError(f"The run in {folder} {UNFINISHED}. Go on with: eoh-esopt run --resume {folder}")
    facts = events[0]
    try:
        config, batches = _config(facts["config"]), tuple(_batches(events))
        return RunRecord(folder, config, facts, Scale.of(facts), batches, ends[-1] if ends else None, events)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"The log in {folder} is damaged: {error!r}. Restore it from a copy.") from error


def _config(values: Mapping[str, Any]) -> RunConfig:
    return RunConfig(**{**values, "sampling": Sampling(**values["sampling"])})


def _batches(events: Sequence[Event]) -> list[Batch]:
    """The batches, each with the decision that was logged before its end."""
    batches: list[Batch] = []
    ledger = Ledger()
    reasons: Counter[str] = Counter()
    decision: Update | Skip | None = None
    for event in events:
        if event["event"] == "update":
            decision = update_of({name: event[name] for name in event.keys() - {"event", "generation", "operator"}})
        elif event["event"] == "skip":
            decision = Skip(event["step"], event["reason"])
            reasons[skip_kind(decision.reason)] += 1
        elif event["event"] == "batch":
            ledger = _ledger(event, ledger, reasons)
            batches.append(_batch(event, ledger, decision))
            decision = None
    return batches


def _ledger(event: Event, before: Ledger, reasons: Mapping[str, int]) -> Ledger:
    """What was spent up to a batch's end. Counters that the log's release did not have are counted here."""
    ledger = Ledger.of(event["ledger"])
    if "parsed" in event["ledger"]:
        return ledger
    searched = event["generation"] != START
    return replace(
        ledger,
        parsed=before.parsed + searched * sum(status != Status.NO_CODE for status in event["statuses"]),
        duplicates=before.duplicates + searched * sum(one is not None for one in event["duplicate_of"]),
        skip_reasons=dict(reasons),
    )


def _batch(event: Event, ledger: Ledger, decision: Update | Skip | None) -> Batch:
    timings = event.get("timings")
    first, last = event["ids"]
    return Batch(
        generation=event["generation"],
        operator=event["operator"],
        ids=tuple(range(first, last + 1)),
        statuses=tuple(event["statuses"]),
        duplicate_of=tuple(event["duplicate_of"]),
        objectives=tuple(event["objectives"]),
        best=event["best"],
        seconds=event["seconds"],
        ledger=ledger,
        decision=decision,
        timings=None if timings is None else Timings.of(timings),
    )
