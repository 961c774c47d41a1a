"""What a search does with an operator batch once it is written: evaluates it, judges it, learns from it, books it.

Shared by our own loop (`eoh_esopt.engine.search`) and by the loops of other engines (`eoh_esopt.hosts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eoh_esopt.engine.ahead import Ahead, Evaluates
from eoh_esopt.engine.archive import Archive
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import BEST, EventLog
from eoh_esopt.engine.fingerprint import fingerprint
from eoh_esopt.engine.history import History
from eoh_esopt.engine.learner import Learner
from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.engine.listener import BatchReport, Listener
from eoh_esopt.engine.population import survivors
from eoh_esopt.engine.recorded import Recorded, outcome_fields, reply_fields
from eoh_esopt.engine.replies import ParsedReply
from eoh_esopt.engine.streams import batch_stream
from eoh_esopt.engine.timings import Timekeeper
from eoh_esopt.models.protocol import LanguageModel, Reply
from operators.errors import UserError
from operators.momentum import Momentum
from operators.records import Candidate, Outcome, Proposal, Skip, Status, Update
from operators.rewards import Trial
from operators.search import Operator
from operators.task import SeedHeuristic, Task

START = -1
"""Generation of the start population."""


@dataclass(frozen=True)
class Parts:
    """What a search works with.

    Attributes:
        task: the problem as the model sees it.
        operators: by name; those that learn are wrapped already.
        momentum: what to apply in place of an update, from those before it.
        model: writes the candidates.
        evaluator: runs and scores them.
        log: takes every event.
        recorded: what the log held before.
        listener: hears of the progress.
        clock: seconds the run has worked so far, over all its sittings.
        given: programs to start from in place of an i1 batch; empty to have that written.
    """

    task: Task
    operators: Mapping[str, Operator]
    momentum: Momentum
    model: LanguageModel
    evaluator: Evaluates
    log: EventLog
    recorded: Recorded
    listener: Listener
    clock: Callable[[], float]
    given: tuple[SeedHeuristic, ...] = ()


@dataclass
class InFlight:
    """The candidates of one batch that were taken for evaluation so far.

    Attributes:
        ahead: evaluates them.
        ids: of all of them, ascending.
        parsed: their replies, in the same order.
        originals: of duplicates, the earlier candidate with the same program.
        programs: those that are run, or were, according to the log.
        outcomes: by id, as far as they are known.
    """

    ahead: Ahead
    ids: list[int] = field(default_factory=list)
    parsed: list[ParsedReply] = field(default_factory=list)
    originals: dict[int, int] = field(default_factory=dict)
    programs: list[int] = field(default_factory=list)
    outcomes: dict[int, Outcome] = field(default_factory=dict)


class Batches:
    """The batches of one search: what they cost, what is known of their candidates, and the best of them."""

    _go_on = "go on with: eoh-esopt run --resume {}"
    """What a user does when a search has stopped and the cause is mended."""

    def __init__(self, config: RunConfig, parts: Parts, history: History) -> None:
        self._config = config
        self._parts = parts
        self.ledger = Ledger()
        self.time = Timekeeper(parts.model, parts.evaluator, parts.recorded.timings)
        self._learner = Learner(parts.model, parts.momentum, parts.log, parts.recorded, history, self.time, self.ledger)
        self.population: tuple[Candidate, ...] = ()
        self._archive = Archive()
        self._next_id = 0
        self._step = 0
        self._batches = 0

    @property
    def history(self) -> History:
        """Of the weights, up to the last update."""
        return self._learner.history

    def _take_ids(self, count: int) -> list[int]:
        self._next_id += count
        return list(range(self._next_id - count, self._next_id))

    def _log_replies(self, ids: Sequence[int], proposals: Sequence[Proposal], replies: Sequence[Reply]) -> None:
        candidates = [
            {
                "id": candidate,
                "parents": [parent.id for parent in proposal.parents],
                "direction": proposal.direction.seed if proposal.direction else None,
                "sigma": proposal.direction.sigma if proposal.direction else None,
                "prompt": proposal.prompt,
                **reply_fields(reply),
            }
            for candidate, proposal, reply in zip(ids, proposals, replies, strict=True)
        ]
        self._parts.log.append("replies", operator=proposals[0].operator, candidates=candidates)

    def _count_replies(self, replies: Iterable[Reply]) -> None:
        for reply in replies:
            self.ledger.model_calls += 1
            self.ledger.prompt_tokens += reply.prompt_tokens
            self.ledger.new_tokens += reply.new_tokens

    def _evaluate(self, ids: Sequence[int], parsed: Sequence[ParsedReply]) -> list[Outcome]:
        """One outcome a candidate: duplicates share their original's, and only new programs are run."""
        with Ahead(self._parts.evaluator) as ahead:
            flight = InFlight(ahead)
            for candidate, reply in zip(ids, parsed, strict=True):
                self._take(flight, candidate, reply)
            return self._settle(flight)

    def _take(self, flight: InFlight, candidate: int, reply: ParsedReply) -> None:
        """Have one more candidate of a batch evaluated, if that is needed. They come in the order of their ids."""
        flight.ids.append(candidate)
        flight.parsed.append(reply)
        if reply.code is None:
            flight.outcomes[candidate] = Outcome(Status.NO_CODE, detail="the reply has no program")
            return
        key = fingerprint(reply.code, self._parts.task.function)
        original = self._archive.known(key)
        if original is not None:
            flight.originals[candidate] = original
            return
        self._archive.reserve(candidate, key)
        flight.programs.append(candidate)
        known = self._parts.recorded.outcome(candidate)
        if known is None:
            flight.ahead.add(candidate, reply.code)
        else:
            flight.outcomes[candidate] = known

    def _settle(self, flight: InFlight) -> list[Outcome]:
        """Wait for the outcomes of all candidates of a batch, and enter them in the archive."""
        outcomes = flight.outcomes
        self._wait(flight)
        self._archive.forget(one for one in flight.programs if outcomes[one].status is Status.INFRASTRUCTURE)
        for candidate in flight.ids:
            if candidate in flight.originals:
                outcomes[candidate] = self._archive.copy_of(flight.originals[candidate])
            else:
                outcomes[candidate] = self._archive.settle(candidate, outcomes[candidate])
        return [outcomes[candidate] for candidate in flight.ids]

    def _wait(self, flight: InFlight) -> None:
        """Outcomes of the batch's programs: those from the log are there, the others are logged as they finish."""
        for candidate in flight.programs:
            if candidate in flight.outcomes:
                self._parts.listener.on_outcome(candidate, flight.outcomes[candidate])
        with self.time.waiting():
            for candidate, outcome in flight.ahead.outcomes():
                flight.outcomes[candidate] = outcome
                self._parts.log.append("outcome", id=candidate, **outcome_fields(outcome))
                self._parts.listener.on_outcome(candidate, outcome)
        self.ledger.evaluations += len(flight.programs)
        ran = [flight.outcomes[candidate] for candidate in flight.programs]
        failed = [one for one in ran if one.status is Status.INFRASTRUCTURE]
        if failed and len(failed) == len(ran):
            raise UserError(
                f"The sandbox failed on all {len(failed)} candidates of a batch: {failed[0].detail} "
                f"None of them was scored. Mend it, then {self._go_on.format(self._parts.log.folder)}"
            )

    def _count(self, generation: int, outcomes: Sequence[Outcome]) -> None:
        if generation == START:
            self.ledger.start_candidates += len(outcomes)
            return
        self.ledger.candidates += len(outcomes)
        self.ledger.parsed += sum(outcome.status is not Status.NO_CODE for outcome in outcomes)
        self.ledger.duplicates += sum(outcome.duplicate_of is not None for outcome in outcomes)
        self.ledger.valid += sum(outcome.valid for outcome in outcomes)
        self.ledger.new += sum(outcome.new for outcome in outcomes)

    def _learn(self, operator: Operator, generation: int, trials: Sequence[Trial]) -> Update | Skip | None:
        """Tell the operator, and do to the weights what it says."""
        rng = batch_stream(self._config.seed, generation, operator.name, "tell")
        decision = operator.tell(self._step, trials, rng)
        if decision is None:
            return None
        self._step += 1
        return self._learner.decide(decision, generation, operator.name)

    def _book_skip(self, skip: Skip, generation: int, *, logged: bool) -> None:
        self._learner.skip(skip, generation, logged=logged)

    def _finish(
        self,
        generation: int,
        operator: str,
        ids: Sequence[int],
        parsed: Sequence[ParsedReply],
        outcomes: Sequence[Outcome],
        decision: Update | Skip | None,
    ) -> None:
        """Renew the population and note the end of the batch."""
        fresh = [
            Candidate(candidate, operator, reply.idea, reply.code, outcome.objective)
            for candidate, reply, outcome in zip(ids, parsed, outcomes, strict=True)
            if outcome.new and reply.code is not None and outcome.objective is not None
        ]
        best_before = self.population[0] if self.population else None
        self.population = survivors([*self.population, *fresh], self._config.population)
        self._batches += 1
        if self._batches > self._parts.recorded.batches:
            if self.population and self.population[0] != best_before:
                self._parts.log.write_file(BEST, best_file(self.population[0]))
            self._log_batch(generation, operator, ids, parsed, outcomes)
        report = BatchReport(generation, operator, outcomes, decision, self.population, replace(self.ledger))
        self._parts.listener.on_batch_end(report)

    def _log_batch(
        self,
        generation: int,
        operator: str,
        ids: Sequence[int],
        parsed: Sequence[ParsedReply],
        outcomes: Sequence[Outcome],
    ) -> None:
        self._parts.log.append(
            "batch",
            generation=generation,
            operator=operator,
            ids=[ids[0], ids[-1]],
            statuses=[outcome.status.value for outcome in outcomes],
            duplicate_of=[outcome.duplicate_of for outcome in outcomes],
            objectives=[outcome.objective for outcome in outcomes],
            ideas=[reply.idea for reply in parsed],
            population=[candidate.id for candidate in self.population],
            best=self.population[0].objective if self.population else None,
            seconds=round(self._parts.clock(), 1),
            ledger=self.ledger.as_dict(),
            timings=self.time.timings.as_dict(),
        )


def best_file(best: Candidate) -> str:
    """The text of the best heuristic's file."""
    idea = " ".join(best.idea.split()).replace("\\", "/")
    head = (
        "# The best heuristic of a run of eoh-esopt.\n"
        f"# Objective: {best.objective!r} (lower is better); candidate {best.id}, operator {best.operator}\n"
        f"# Idea: {idea}\n"  # third: in the first two lines Python would read "coding: x" as the file's encoding
    )
    return f"{head}{best.code.strip()}\n"
