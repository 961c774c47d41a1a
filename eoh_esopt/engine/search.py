"""The search: EoH and Sample loops over operators, a model and an evaluator.

Resume runs the same loop again: what the log holds is taken from the log instead of the model and the sandbox, updates
are applied again, and where the log ends the search goes on. There is no other state to save.
"""

from __future__ import annotations

from collections.abc import Sequence

from eoh_esopt.engine.ahead import Ahead
from eoh_esopt.engine.batches import START, Batches, InFlight
from eoh_esopt.engine.replies import ParsedReply, parse_reply
from eoh_esopt.engine.streams import batch_stream, reply_seed
from eoh_esopt.models.protocol import Reply, Request
from operators.errors import UserError
from operators.records import Proposal
from operators.search import Operator, Situation
from operators.task import SeedHeuristic


class Search(Batches):
    """One search, from its start population to the end of its budget."""

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
        proposals = operator.ask(count, Situation(self.population, generation, rng, self.history.updates))
        ids = self._take_ids(count)
        self._parts.listener.on_batch(generation, operator.name, count)
        with Ahead(self._parts.evaluator) as ahead:
            flight = InFlight(ahead)
            self._write(ids, proposals, flight)
            outcomes = self._settle(flight)
        self._count(generation, outcomes)
        decision = self._tell(operator, generation, ids, proposals, outcomes)
        self._finish(generation, operator.name, ids, flight.parsed, outcomes, decision)

    def _write(self, ids: Sequence[int], proposals: Sequence[Proposal], flight: InFlight) -> None:
        """The replies, a batch of the model's at a time: from the log where it has a whole one, else from the model.

        Those of one batch are evaluated while the next is written; in the order of their ids, because the first of
        two equal programs is the one that is run.
        """
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
            while (place := len(flight.ids)) in replies:
                self._take(flight, ids[place], parse_reply(replies[place].text, self._parts.task.function))
        self._count_replies(replies.values())
