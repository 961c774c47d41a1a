"""One attached search: each batch of a host's loop written, evaluated, learnt from and booked.

The host decides what is asked for and when. This decides under which direction of the weights each candidate is
written, holds it over all that the host asks the model for that candidate, and moves the weights when a group of
directions is complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from eoh_esopt.engine.batches import START, Batches, Parts
from eoh_esopt.engine.history import History
from eoh_esopt.engine.population import survivors
from eoh_esopt.engine.replies import ParsedReply
from eoh_esopt.engine.streams import batch_stream, reply_seed
from eoh_esopt.hosts import together
from eoh_esopt.hosts.groups import Group, Groups
from eoh_esopt.hosts.host import BudgetSpent, Draft, HostFacts, Parent, Slot, Written
from eoh_esopt.hosts.settings import Settings
from eoh_esopt.models.protocol import Reply, Request
from operators import prompts
from operators.records import Candidate, Outcome, Proposal, Skip, Update
from operators.search import Situation


@dataclass
class _Place:
    """A slot on its way through a batch."""

    id: int
    slot: Slot
    proposal: Proposal
    group: Group | None
    calls: int = 0
    draft: Draft | None = None
    outcome: Outcome | None = None
    parents: list[int] = field(default_factory=list)


class Session(Batches):
    """What an adapter drives.

    Args:
        settings: what the user asked for.
        facts: of the host.
        parts: what the search works with; its operators are those that learn.
        history: of the weights, without updates.
        notify: says a line to the user.
    """

    _go_on = "run the search again."

    def __init__(
        self, settings: Settings, facts: HostFacts, parts: Parts, history: History, notify: Callable[[str], None]
    ) -> None:
        super().__init__(settings.run, parts, history)
        self.facts = facts
        self.seed = settings.run.seed
        self.plan: Mapping[str, int] | None = settings.plan(facts)
        self.notify = notify
        self._settings = settings
        self._groups = {
            name: Groups(operator, settings.run.learning_batch) for name, operator in parts.operators.items()
        }
        self._by_code: dict[str, Candidate] = {}
        self._statuses: Counter[str] = Counter()
        self._last_generation = START
        self._beginning = prompts.prefill(parts.task) if settings.run.prefill == "signature" else ""

    @staticmethod
    def ask(prompt: str) -> str:
        """What the host's code calls in place of its language model, from inside a slot."""
        reply: str = together.ask(prompt)
        return reply

    def batch(self, generation: int, slots: Sequence[Slot], population: Sequence[Parent]) -> list[Written]:
        """Write, evaluate and learn from what the host asks for together.

        Args:
            generation: from 0; `START` for the start population.
            slots: one a candidate, in the host's order.
            population: the host's, as it stands.

        Returns:
            One a slot, in their order.

        Raises:
            BudgetSpent: nothing is left of the budget.
            UserError: the log cannot be written, or the evaluation is broken.
        """
        if self._settings.left(self.ledger) == 0:
            raise BudgetSpent
        members = [self._candidate(parent) for parent in population]
        worst = max((member.objective for member in members), default=0.0)
        places = self._places(generation, slots[: self._left("attempts")], members)
        finished = self._write(places)
        self._judge(finished)
        settled = [place for place in finished if place.outcome is not None]
        outcomes = [place.outcome for place in settled if place.outcome is not None]
        self._count(generation, outcomes)
        self._statuses.update(outcome.label for outcome in outcomes)
        for name in dict.fromkeys(place.slot.operator for place in settled):
            self._learn_and_book(generation, name, [place for place in settled if place.slot.operator == name], worst)
        return [self._written(place) for place in places] + [Written(None, None, {})] * (len(slots) - len(places))

    def given(self, drafts: Sequence[Draft]) -> list[Written]:
        """Evaluate start programs that nobody wrote here: a seed file's, or the template."""
        places = [
            _Place(candidate, Slot("seed", lambda: None), Proposal("seed", "", "", ()), None, draft=draft)
            for candidate, draft in zip(self._take_ids(len(drafts)), drafts, strict=True)
        ]
        self._judge(places)
        settled = [place for place in places if place.outcome is not None]
        self._learn_and_book(START, "seed", settled, worst=0.0)
        return [self._written(place) for place in places]

    def causes(self) -> str:
        """How the attempts so far ended, as "3 no_code, 1 timeout"."""
        return ", ".join(f"{count} {status}" for status, count in self._statuses.most_common())

    def end(self) -> None:
        """Book the directions that the search leaves unused."""
        for name, groups in self._groups.items():
            for group in groups.left_over():
                reason = f"the search ended with {len(group.settled)} of {group.size} candidates of an update of {name}"
                self._book_skip(Skip(self._step, reason), self._last_generation, logged=False)
                self._step += 1

    def _left(self, unit: str) -> int | None:
        """What is left of a budget in that unit; None where there is none."""
        return self._settings.left(self.ledger) if self._settings.budget_unit == unit else None

    def _candidate(self, parent: Parent) -> Candidate:
        """A member of the host's population as this search knows it; a new one came from a file of the host."""
        known = self._by_code.get(parent.code)
        if known is None:
            known = Candidate(self._take_ids(1)[0], "given", parent.idea, parent.code, parent.objective)
            self._by_code[parent.code] = known
            self.population = survivors([*self.population, known], self._config.population)
            self._parts.log.append("given", id=known.id, idea=known.idea, code=known.code, objective=known.objective)
        return known

    def _remember(self, candidate: int, operator: str, draft: Draft, outcome: Outcome) -> None:
        if outcome.objective is not None:
            entry = Candidate(candidate, operator, draft.idea, draft.code, outcome.objective)
            self._by_code.setdefault(draft.code, entry)

    def _places(self, generation: int, slots: Sequence[Slot], members: Sequence[Candidate]) -> list[_Place]:
        """Ids, one run of them an operator, and directions for those that the model learns from."""
        self._last_generation = generation
        names = [slot.operator for slot in slots]
        ids = {name: iter(self._take_ids(names.count(name))) for name in dict.fromkeys(names)}
        places = []
        for slot in slots:
            group = self._group(slot.operator, generation, members)
            proposal = Proposal(slot.operator, "", "", ()) if group is None else group.hand_out()
            places.append(_Place(next(ids[slot.operator]), slot, proposal, group))
        return places

    def _group(self, operator: str, generation: int, members: Sequence[Candidate]) -> Group | None:
        groups = self._groups.get(operator)
        if groups is None:
            return None
        rng = batch_stream(self._config.seed, groups.begun, operator, "ask")
        return groups.current(Situation(members, max(generation, 0), rng, self.history.updates))

    def _write(self, places: Sequence[_Place]) -> list[_Place]:
        """Run the host's code for all places together; returns those that came to their end."""

        def answer(asked: Sequence[tuple[int, str]]) -> list[str | None]:
            calls = self._left("model_calls")
            if self._left("tokens") == 0:
                calls = 0
            heard = self._reply([(places[at], prompt) for at, prompt in asked[:calls]])
            return [*heard, *[None] * (len(asked) - len(heard))]

        ended = together.write_together([place.slot.write for place in places], answer)
        for place, (_, draft) in zip(places, ended, strict=True):
            place.draft = draft
            place.parents = [self._candidate(parent).id for parent in draft.parents] if draft else []
        return [place for place, (whole, _) in zip(places, ended, strict=True) if whole]

    def _reply(self, asked: Sequence[tuple[_Place, str]]) -> list[str]:
        """The model's replies, each under its place's direction."""
        requests = [
            Request(prompt, self._beginning, self._seed(place), place.proposal.direction) for place, prompt in asked
        ]
        replies: dict[int, Reply] = {}
        for batch in self._parts.model.batches(requests) if requests else []:
            with self.time.writing():
                written = self._parts.model.generate([requests[at] for at in batch])
            ids = [asked[at][0].id for at in batch]
            shown = [Proposal(place.slot.operator, prompt, "", (), place.proposal.direction) for place, prompt in asked]
            self._log_replies(ids, [shown[at] for at in batch], written)
            replies.update(zip(batch, written, strict=True))
        self._count_replies(replies.values())
        return [replies[at].text for at in range(len(asked))]

    def _seed(self, place: _Place) -> int:
        place.calls += 1
        return reply_seed(self._config.seed, place.id, place.calls - 1)

    def _judge(self, places: Sequence[_Place]) -> None:
        """Evaluate; programs that the budget has no evaluation for stay without an outcome."""
        left = self._left("evaluations")
        drafts = [place for place in places if place.draft is not None]
        beyond = [] if left is None else [place.id for place in drafts[left:]]
        judged = [place for place in places if place.id not in beyond]
        outcomes = self._evaluate([place.id for place in judged], [_parsed(place) for place in judged])
        for place, outcome in zip(judged, outcomes, strict=True):
            place.outcome = outcome
            if place.draft is not None:
                self._remember(place.id, place.slot.operator, place.draft, outcome)

    def _learn_and_book(self, generation: int, operator: str, places: Sequence[_Place], worst: float) -> None:
        """Learn from what is complete, and book one operator's candidates of a batch."""
        decision: Update | Skip | None = None
        for place in places:
            if place.group is not None and place.outcome is not None:
                shown = tuple(self._by_code[one.code] for one in place.draft.parents) if place.draft else ()
                proposal = Proposal(operator, "", "", shown, place.proposal.direction)
                place.group.settle(place.id, proposal, place.outcome, worst)
        for group in self._groups[operator].complete() if operator in self._groups else []:
            decision = self._learn(group.operator, generation, group.trials())
        self._parts.log.append("written", operator=operator, candidates=[self._note(place) for place in places])
        outcomes = [place.outcome for place in places if place.outcome is not None]
        self._finish(generation, operator, [one.id for one in places], [*map(_parsed, places)], outcomes, decision)

    def _written(self, place: _Place) -> Written:
        return Written(place.draft, place.outcome, self._note(place))

    @staticmethod
    def _note(place: _Place) -> dict[str, object]:
        direction, outcome = place.proposal.direction, place.outcome
        return {
            "id": place.id,
            "operator": place.slot.operator,
            "parents": place.parents,
            "direction": None if direction is None else direction.seed,
            "sigma": None if direction is None else direction.sigma,
            "model_calls": place.calls,
            "status": None if outcome is None else outcome.status.value,
            "objective": None if outcome is None else outcome.objective,
        }


def _parsed(place: _Place) -> ParsedReply:
    draft = place.draft
    return ParsedReply(None, "", "no program") if draft is None else ParsedReply(draft.code, draft.idea, "host")
