"""The search: EoH and Sample loops over operators, a model and an evaluator.

Resume runs the same loop again: what the log holds is taken from the log instead of the model and the sandbox, updates
are applied again, and where the log ends the search goes on. There is no other state to save.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eoh_esopt.engine.ahead import Ahead
from eoh_esopt.engine.archive import fair_outcomes
from eoh_esopt.engine.batches import START, Batches, InFlight, Parts
from eoh_esopt.engine.coevolution import CoEvolution, ContextReport
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.history import History
from eoh_esopt.engine.methods import reward_of
from eoh_esopt.engine.replies import ParsedReply, parse_reply
from eoh_esopt.engine.streams import batch_stream, reply_seed
from eoh_esopt.models.protocol import Reply, Request
from operators.context import OPERATOR, insights_of, reflection
from operators.errors import UserError
from operators.records import Outcome, Proposal
from operators.rewards import Trial
from operators.search import Operator, Situation
from operators.task import SeedHeuristic


class Search(Batches):
    """One search, from its start population to the end of its budget."""

    def __init__(self, config: RunConfig, parts: Parts, history: History) -> None:
        super().__init__(config, parts, history)
        self._evolution = CoEvolution(reward_of(config)) if config.co_evolve else None
        self._reflections = 0

    def run(self) -> None:
        """Work until the budget is spent.

        Raises:
            UserError: the folder cannot be written, or the sandbox fails on a whole batch.
        """
        self._evaluate_known("seed", self._parts.task.seeds)
        if self._parts.given:
            self._evaluate_known("given", self._parts.given)
        elif not self._config.samples:
            self._batch(self._parts.operators["i1"], self._config.population, START)
        for generation in range(self._config.generations):
            for name, count in self._config.plan:
                left = self._config.budget - self.ledger.candidates
                if left > 0:
                    self._batch(self._parts.operators[name], min(count, left), generation)
            if self._evolution is not None and self.ledger.candidates < self._config.budget:
                self._renew_context(self._evolution, generation)

    def _evaluate_known(self, name: str, programs: Sequence[SeedHeuristic]) -> None:
        """Evaluate programs that nobody has to write; the problem's own seeds must be valid."""
        ids = self._take_ids(len(programs))
        parsed = [ParsedReply(one.code, one.idea, name) for one in programs]
        self._parts.listener.on_batch(START, name, len(programs))
        outcomes = self._evaluate(ids, parsed)
        for program, outcome in zip(programs, outcomes, strict=True):
            if name == "seed" and not outcome.valid:
                raise UserError(
                    f"The problem's seed heuristic {program.idea!r} fails: {outcome.status.value}, {outcome.detail}"
                )
        self._finish(START, name, ids, parsed, outcomes, None)

    def _batch(self, operator: Operator, count: int, generation: int) -> None:
        """Ask, write, evaluate, tell, move the weights, renew the population."""
        rng = batch_stream(self._config.seed, generation, operator.name, "ask")
        insights = () if self._evolution is None else self._evolution.context.insights
        proposals = operator.ask(count, Situation(self.population, generation, rng, self.history.updates, insights))
        ids = self._take_ids(count)
        self._parts.listener.on_batch(generation, operator.name, count)
        with Ahead(self._parts.evaluator) as ahead:
            flight = InFlight(ahead)
            self._write(ids, proposals, flight)
            outcomes = self._settle(flight)
        self._count(generation, outcomes)
        trials = self._trials(ids, proposals, outcomes)
        if self._evolution is not None and generation != START:
            self._evolution.note(operator.name, [reply.idea for reply in flight.parsed], trials)
        decision = self._learn(operator, generation, trials)
        self._finish(generation, operator.name, ids, flight.parsed, outcomes, decision)

    def _renew_context(self, evolution: CoEvolution, generation: int) -> None:
        """Judge the context by the generation, and ask the model for the next one. The question is one attempt."""
        failures = evolution.failures
        tried, reward, reverted = evolution.judge()
        question = reflection(self._parts.task, evolution.context, self.population, failures)
        [replies] = self._replies(self._take_ids(1), [Proposal(OPERATOR, question, "", ())])
        self.ledger.candidates += 1
        self.ledger.reflections += 1
        evolution.renew(insights_of(replies[0].text))
        report = ContextReport(generation, tried, reward, reverted, evolution.context)
        self._reflections += 1
        if self._reflections > self._parts.recorded.contexts:
            self._parts.log.append("context", **report.as_fields())
        self._parts.listener.on_context(report)

    def _write(self, ids: Sequence[int], proposals: Sequence[Proposal], flight: InFlight) -> None:
        """The replies. Those of one of the model's batches are evaluated while the next is written.

        In the order of their ids, because the first of two equal programs is the one that is run.
        """
        replies: dict[int, Reply] = {}
        for batch in self._replies(ids, proposals):
            replies.update(batch)
            self._parts.listener.on_replies(len(batch))
            while (place := len(flight.ids)) in replies:
                self._take(flight, ids[place], parse_reply(replies[place].text, self._parts.task.function))

    def _replies(self, ids: Sequence[int], proposals: Sequence[Proposal]) -> Iterator[dict[int, Reply]]:
        """Replies by their place, a batch of the model's at a time: from the log where it has a whole one."""
        requests = [
            Request(proposal.prompt, proposal.prefill, reply_seed(self._config.seed, candidate), proposal.direction)
            for candidate, proposal in zip(ids, proposals, strict=True)
        ]
        for batch in self._parts.model.batches(requests):
            known = [self._parts.recorded.reply(ids[i], requests[i]) for i in batch]
            written = [reply for reply in known if reply is not None]
            if len(written) < len(batch):
                with self.time.writing():
                    written = self._parts.model.generate([requests[i] for i in batch])
                self._log_replies([ids[i] for i in batch], [proposals[i] for i in batch], written)
            self._count_replies(written)
            yield dict(zip(batch, written, strict=True))

    def _trials(self, ids: Sequence[int], proposals: Sequence[Proposal], outcomes: Sequence[Outcome]) -> list[Trial]:
        """What the operator is told of a batch."""
        worst = self.population[-1].objective if self.population else 0.0
        fair = fair_outcomes(ids, proposals, outcomes)
        return [Trial(proposal, outcome, worst) for proposal, outcome in zip(proposals, fair, strict=True)]
