"""The search: EoH and Sample loops over operators, a model and an evaluator.

Resume runs the same loop again: what the log holds is taken from the log instead of the model and the sandbox, updates
are applied again, and where the log ends the search goes on. There is no other state to save.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from eoh_esopt.engine.archive import Archive, fair_outcomes
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.events import BEST, HISTORY, EventLog
from eoh_esopt.engine.fingerprint import fingerprint
from eoh_esopt.engine.history import History
from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.engine.listener import BatchReport, Listener
from eoh_esopt.engine.population import survivors
from eoh_esopt.engine.recorded import Recorded, outcome_fields, reply_fields
from eoh_esopt.engine.replies import ParsedReply, parse_reply
from eoh_esopt.engine.streams import batch_stream, reply_seed
from eoh_esopt.models.protocol import LanguageModel, Reply, Request
from operators.errors import UserError
from operators.records import Candidate, Outcome, Proposal, Skip, Status, Update
from operators.rewards import Trial
from operators.search import Operator, Situation
from operators.task import Task

START = -1
"""Generation of the start population."""


class Evaluates(Protocol):
    """Runs candidates in isolation and scores them."""

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        """(position, outcome) of each code as it finishes."""
        ...


@dataclass(frozen=True)
class Parts:
    """What a search works with.

    Attributes:
        task: the problem as the model sees it.
        operators: by name; those that learn are wrapped already.
        model: writes the candidates.
        evaluator: runs and scores them.
        log: takes every event.
        recorded: what the log held before.
        listener: hears of the progress.
        clock: seconds the run has worked so far, over all its sittings.
    """

    task: Task
    operators: Mapping[str, Operator]
    model: LanguageModel
    evaluator: Evaluates
    log: EventLog
    recorded: Recorded
    listener: Listener
    clock: Callable[[], float]


class Search:
    """One search, from its start population to the end of its budget."""

    def __init__(self, config: RunConfig, parts: Parts, history: History) -> None:
        self._config = config
        self._parts = parts
        self.history = history
        self.ledger = Ledger()
        self.population: tuple[Candidate, ...] = ()
        self._archive = Archive()
        self._next_id = 0
        self._step = 0
        self._batches = 0

    def run(self) -> None:
        """Work until the budget is spent.

        Raises:
            UserError: the folder cannot be written, or the sandbox fails on a whole batch.
        """
        self._evaluate_seeds()
        if not self._config.samples:
            self._batch(self._parts.operators["i1"], self._config.population, START)
        for generation in range(self._config.generations):
            for name, count in self._config.plan:
                left = self._config.budget - self.ledger.candidates
                if left > 0:
                    self._batch(self._parts.operators[name], min(count, left), generation)

    def _evaluate_seeds(self) -> None:
        seeds = self._parts.task.seeds
        ids = self._take_ids(len(seeds))
        parsed = [ParsedReply(seed.code, seed.idea, "seed") for seed in seeds]
        self._parts.listener.on_batch(START, "seed", len(seeds))
        outcomes = self._evaluate(ids, parsed)
        for seed, outcome in zip(seeds, outcomes, strict=True):
            if not outcome.valid:
                raise UserError(
                    f"The problem's seed heuristic {seed.idea!r} fails: {outcome.status.value}, {outcome.detail}"
                )
        self._finish(START, "seed", ids, parsed, outcomes, None)

    def _batch(self, operator: Operator, count: int, generation: int) -> None:
        """Ask, write, evaluate, tell, move the weights, renew the population."""
        rng = batch_stream(self._config.seed, generation, operator.name, "ask")
        proposals = operator.ask(count, Situation(self.population, generation, rng))
        ids = self._take_ids(count)
        self._parts.listener.on_batch(generation, operator.name, count)
        replies = self._write(ids, proposals)
        parsed = [parse_reply(reply.text, self._parts.task.function) for reply in replies]
        outcomes = self._evaluate(ids, parsed)
        self._count(generation, outcomes)
        decision = self._tell(operator, generation, ids, proposals, outcomes)
        self._finish(generation, operator.name, ids, parsed, outcomes, decision)

    def _take_ids(self, count: int) -> list[int]:
        self._next_id += count
        return list(range(self._next_id - count, self._next_id))

    def _write(self, ids: Sequence[int], proposals: Sequence[Proposal]) -> list[Reply]:
        """The replies, batch by batch: from the log where it has a whole batch, else from the model."""
        requests = [
            Request(proposal.prompt, proposal.prefill, reply_seed(self._config.seed, candidate), proposal.direction)
            for candidate, proposal in zip(ids, proposals, strict=True)
        ]
        replies: dict[int, Reply] = {}
        for batch in self._parts.model.batches(requests):
            known = [self._parts.recorded.reply(ids[i], requests[i]) for i in batch]
            written = [reply for reply in known if reply is not None]
            if len(written) < len(batch):
                written = self._parts.model.generate([requests[i] for i in batch])
                self._log_replies([ids[i] for i in batch], [proposals[i] for i in batch], written)
            replies.update(zip(batch, written, strict=True))
            self._parts.listener.on_replies(len(batch))
        for reply in replies.values():
            self.ledger.model_calls += 1
            self.ledger.prompt_tokens += reply.prompt_tokens
            self.ledger.new_tokens += reply.new_tokens
        return [replies[i] for i in range(len(ids))]

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

    def _evaluate(self, ids: Sequence[int], parsed: Sequence[ParsedReply]) -> list[Outcome]:
        """One outcome a candidate: duplicates share their original's, and only new programs are run."""
        function = self._parts.task.function
        originals: dict[int, int] = {}
        to_run: dict[int, str] = {}
        outcomes: dict[int, Outcome] = {}
        for candidate, reply in zip(ids, parsed, strict=True):
            if reply.code is None:
                outcomes[candidate] = Outcome(Status.NO_CODE, detail="the reply has no program")
                continue
            key = fingerprint(reply.code, function)
            original = self._archive.known(key)
            if original is None:
                self._archive.reserve(candidate, key)
                to_run[candidate] = reply.code
            else:
                originals[candidate] = original
        outcomes |= self._run(to_run)
        self._archive.forget(one for one in to_run if outcomes[one].status is Status.INFRASTRUCTURE)
        for candidate in ids:
            if candidate in originals:
                outcomes[candidate] = self._archive.copy_of(originals[candidate])
            else:
                outcomes[candidate] = self._archive.settle(candidate, outcomes[candidate])
        return [outcomes[candidate] for candidate in ids]

    def _run(self, codes: Mapping[int, str]) -> dict[int, Outcome]:
        """Outcomes from the log, or from the sandbox."""
        outcomes = {}
        for candidate in codes:
            known = self._parts.recorded.outcome(candidate)
            if known is not None:
                outcomes[candidate] = known
                self._parts.listener.on_outcome(candidate, known)
        left = [candidate for candidate in codes if candidate not in outcomes]
        for position, outcome in self._parts.evaluator.evaluate([codes[candidate] for candidate in left]):
            candidate = left[position]
            outcomes[candidate] = outcome
            self._parts.log.append("outcome", id=candidate, **outcome_fields(outcome))
            self._parts.listener.on_outcome(candidate, outcome)
        self.ledger.evaluations += len(codes)
        failed = [one for one in outcomes.values() if one.status is Status.INFRASTRUCTURE]
        if failed and len(failed) == len(outcomes):
            raise UserError(
                f"The sandbox failed on all {len(failed)} candidates of a batch: {failed[0].detail} "
                f"None of them was scored. Mend it, then: eoh-esopt run --resume {self._parts.log.folder}"
            )
        return outcomes

    def _count(self, generation: int, outcomes: Sequence[Outcome]) -> None:
        if generation == START:
            self.ledger.start_candidates += len(outcomes)
            return
        self.ledger.candidates += len(outcomes)
        self.ledger.valid += sum(outcome.valid for outcome in outcomes)
        self.ledger.new += sum(outcome.new for outcome in outcomes)

    def _tell(
        self,
        operator: Operator,
        generation: int,
        ids: Sequence[int],
        proposals: Sequence[Proposal],
        outcomes: Sequence[Outcome],
    ) -> Update | Skip | None:
        """Tell the operator, and do to the weights what it says."""
        worst = self.population[-1].objective if self.population else 0.0
        trials = [
            Trial(proposal, outcome, worst)
            for proposal, outcome in zip(proposals, fair_outcomes(ids, proposals, outcomes), strict=True)
        ]
        rng = batch_stream(self._config.seed, generation, operator.name, "tell")
        decision = operator.tell(self._step, trials, rng)
        if decision is None:
            return None
        self._step += 1
        logged = self._parts.recorded.holds(decision)
        if isinstance(decision, Skip):
            self.ledger.skips += 1
            if not logged:
                self._parts.log.append("skip", step=decision.step, generation=generation, reason=decision.reason)
            return decision
        if not logged:
            self._parts.log.append(
                "update",
                step=decision.step,
                generation=generation,
                operator=operator.name,
                seeds=list(decision.seeds),
                rewards=list(decision.rewards),
                weights=list(decision.weights),
                alpha=decision.alpha,
                sigma=decision.sigma,
            )
        self._parts.model.apply(decision)
        self.ledger.updates += 1
        self.history = replace(self.history, updates=(*self.history.updates, decision))
        if decision.step >= self._parts.recorded.last_update:  # earlier ones stand in the file already
            self._parts.log.write_file(HISTORY, self.history.to_json())
        return decision

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
            if self.population[0] != best_before:
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
            best=self.population[0].objective,
            seconds=round(self._parts.clock(), 1),
            ledger=self.ledger.as_dict(),
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
