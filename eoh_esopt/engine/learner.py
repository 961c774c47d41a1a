"""What is done to the weights when a batch has taught something: logged, applied, and booked in the history.

Shared by the search, by the loops of other engines, and by the training of agents.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from eoh_esopt.engine.events import HISTORY, EventLog
from eoh_esopt.engine.history import History
from eoh_esopt.engine.recorded import Recorded
from eoh_esopt.engine.timings import Timekeeper
from eoh_esopt.models.protocol import LanguageModel
from operators.momentum import Momentum
from operators.records import Skip, Update
from operators.update_fields import fields_of


class CountsUpdates(Protocol):
    """A ledger with counters of updates."""

    updates: int

    def skip(self, reason: str) -> None:
        """Count an update that was not made."""
        ...


class Learner:
    """Moves a model's true weights, and writes down that it did so before it does it.

    Args:
        model: whose weights move.
        momentum: what to apply in place of an update, from those before it.
        log: takes every event.
        recorded: what the log held before.
        history: of the weights so far.
        time: takes the time of the updates.
        ledger: counts them.

    Attributes:
        history: of the weights, up to the last update.
    """

    def __init__(
        self,
        model: LanguageModel,
        momentum: Momentum,
        log: EventLog,
        recorded: Recorded,
        history: History,
        time: Timekeeper,
        ledger: CountsUpdates,
    ) -> None:
        self.history = history
        self._model = model
        self._momentum = momentum
        self._log = log
        self._recorded = recorded
        self._time = time
        self._ledger = ledger

    def decide(self, decision: Update | Skip, generation: int, operator: str) -> Update | Skip:
        """Do what the operator says, unless the log holds something else at that step.

        Returns:
            The decision, with momentum.

        Raises:
            UserError: the log is of another run, or cannot be written.
        """
        if isinstance(decision, Skip):
            self.skip(decision, generation, logged=self._recorded.holds(decision))
            return decision
        decision = self._momentum(self.history.updates, decision)
        if not self._recorded.holds(decision):
            fields = fields_of(decision)
            step = fields.pop("step")
            self._log.append("update", step=step, generation=generation, operator=operator, **fields)
        with self._time.updating():
            self._model.apply(decision)
        self._ledger.updates += 1
        self.history = replace(self.history, updates=(*self.history.updates, decision))
        if decision.step >= self._recorded.last_update:  # earlier ones stand in the file already
            self._log.write_file(HISTORY, self.history.to_json())
        return decision

    def skip(self, skip: Skip, generation: int, *, logged: bool) -> None:
        """Book an update that was not made."""
        self._ledger.skip(skip.reason)
        if not logged:
            self._log.append("skip", step=skip.step, generation=generation, reason=skip.reason)
