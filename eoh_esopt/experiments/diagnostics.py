"""Is a run learning, or is it noise? What its log says of rewards, updates, candidates and time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from eoh_esopt.engine.batches import START
from eoh_esopt.engine.timings import Timings
from eoh_esopt.experiments.run_record import Batch, RunRecord
from eoh_esopt.experiments.update_size import (
    Coefficients,
    coefficients,
    cosine,
    noise_factors,
    noise_size,
    share_within,
    size,
)
from eoh_esopt.models.scopes import get_scope
from operators.records import Skip, Status, Update

_NO_SPREAD = re.compile(r"all \d+ directions had the same reward|all weights are 0")
"""How the reasons of those skips begin."""


@dataclass(frozen=True)
class LearningBatches:
    """The batches that were meant to move the weights.

    Attributes:
        count: of them.
        updated: those that did.
        all_invalid: those without a valid candidate, whether or not they moved the weights.
        without_spread: those that moved nothing because all directions had the same reward.
        skip_reasons: how many moved nothing for each reason.
    """

    count: int
    updated: int
    all_invalid: int
    without_spread: int
    skip_reasons: Mapping[str, int]


@dataclass(frozen=True)
class Moved:
    """How far weights moved.

    Attributes:
        size: root mean square change of a weight; relative to the weight for multiplicative noise.
        noise_size: the same had the rewards been random.
        within_sigma: share of the weights that moved by at most sigma; None where sigma is 0.
        noise_within_sigma: the same had the rewards been random.
        norm: of the change, Euclidean, in expectation: size * sqrt(number of weights); None for multiplicative noise,
            or where the number of weights is not known.
        relative: norm of the change over that of the weights; None where that is not known.
    """

    size: float
    noise_size: float
    within_sigma: float | None
    noise_within_sigma: float | None
    norm: float | None
    relative: float | None


@dataclass(frozen=True)
class UpdateDiagnosis:
    """One update.

    Attributes:
        step: its running number.
        generation: in which it was made.
        operator: whose candidates it rests on.
        sigma: size of the perturbations that the rewards were measured under.
        rewards: of its directions.
        spread: their standard deviation (ddof 0).
        contrast: largest less smallest of them.
        moved: how far it moved the weights.
        cosine: with the update before it, over shared seeds; 0 in expectation without momentum, None for the first.
        signal: share of the rewards' variance that belongs to the directions; None where it was not measured.
    """

    step: int
    generation: int
    operator: str
    sigma: float
    rewards: tuple[float, ...]
    spread: float
    contrast: float
    moved: Moved
    cosine: float | None
    signal: float | None


@dataclass(frozen=True)
class Candidates:
    """The candidates of one generation or of one operator, start population and given programs left out.

    Attributes:
        of: the generation or the operator.
        count: of them.
        parsed: whose reply held a program.
        valid: that solved every instance.
        new: valid ones that were no copies.
        distinct: different objectives among the valid ones.
        best: lowest objective among them; None where none was valid.
    """

    of: str
    count: int
    parsed: int
    valid: int
    new: int
    distinct: int
    best: float | None


@dataclass(frozen=True)
class Diagnosis:
    """What a run's log says.

    Attributes:
        run: name of its folder.
        learning: the batches that were meant to move the weights.
        updates: in order.
        total: all updates together, measured by the first one's sigma; None where there were none.
        generations: candidates by generation.
        operators: candidates by operator.
        timings: where the time went; None in logs of releases that did not note it.
        seconds: wall time of the run.
    """

    run: str
    learning: LearningBatches
    updates: tuple[UpdateDiagnosis, ...]
    total: Moved | None
    generations: tuple[Candidates, ...]
    operators: tuple[Candidates, ...]
    timings: Timings | None
    seconds: float

    @property
    def overhead(self) -> float | None:
        """Seconds that moving the weights took over those of all else: what learning costs in time.

        None where that is not known: perturbations that are not told from writing would be missing.
        """
        if self.timings is None or (self.updates and self.timings.perturb is None):
            return None
        rest = self.seconds - self.timings.moves
        return self.timings.moves / rest if rest > 0 else None


def diagnose(record: RunRecord, weights_rms: float | None = None) -> Diagnosis:
    """Diagnose a run, finished or not.

    Args:
        record: the run.
        weights_rms: root mean square of the weights that its directions move, see `weights_rms.weights_rms`; not needed
            for multiplicative noise, which is relative by itself.
    """
    searched = [batch for batch in record.batches if batch.generation != START]
    updates = record.updates
    weigh = _Scales.of(record, weights_rms)
    return Diagnosis(
        run=record.folder.name,
        learning=_learning(record),
        updates=tuple(_updates(record.batches, weigh)),
        total=weigh(coefficients(updates), updates[0].sigma) if updates else None,
        generations=tuple(_candidates(searched, lambda batch: str(batch.generation))),
        operators=tuple(_candidates(sorted(searched, key=lambda batch: batch.operator), lambda batch: batch.operator)),
        timings=record.timings,
        seconds=record.batches[-1].seconds if record.batches else 0.0,
    )


@dataclass(frozen=True)
class _Scales:
    """What turns coefficients into sizes."""

    factors: Coefficients
    multiplicative: bool
    elements: int | None
    rms: float | None

    @classmethod
    def of(cls, record: RunRecord, weights_rms: float | None) -> _Scales:
        config = record.config
        return cls(
            factors=noise_factors(record.updates, config.shaping, config.antithetic),
            multiplicative=get_scope(config.scope).multiplicative,
            elements=record.facts["model"].get("scope_elements"),
            rms=weights_rms,
        )

    def __call__(self, moved: Coefficients, sigma: float) -> Moved:
        own, noise = size(moved), noise_size(moved, self.factors)
        additive = not self.multiplicative
        return Moved(
            size=own,
            noise_size=noise,
            within_sigma=share_within(sigma, own) if sigma else None,
            noise_within_sigma=share_within(sigma, noise) if sigma else None,
            norm=own * math.sqrt(self.elements) if additive and self.elements is not None else None,
            relative=own if self.multiplicative else own / self.rms if self.rms else None,
        )


def _learning(record: RunRecord) -> LearningBatches:
    learning = [batch for batch in record.batches if batch.decision is not None]
    skips = [batch.decision for batch in learning if isinstance(batch.decision, Skip)]
    return LearningBatches(
        count=len(learning),
        updated=len(learning) - len(skips),
        all_invalid=sum(not any(batch.valid) for batch in learning),
        without_spread=sum(_NO_SPREAD.match(skip.reason) is not None for skip in skips),
        skip_reasons=record.ledger.skip_reasons,
    )


def _updates(batches: Sequence[Batch], weigh: Callable[[Coefficients, float], Moved]) -> Iterator[UpdateDiagnosis]:
    before: Coefficients | None = None
    for batch in batches:
        update = batch.decision
        if not isinstance(update, Update):
            continue
        moved = coefficients([update])
        yield UpdateDiagnosis(
            step=update.step,
            generation=batch.generation,
            operator=batch.operator,
            sigma=update.sigma,
            rewards=update.rewards,
            spread=float(np.std(update.rewards)),
            contrast=max(update.rewards) - min(update.rewards),
            moved=weigh(moved, update.sigma),
            cosine=None if before is None else cosine(before, moved),
            signal=update.signal,
        )
        before = moved


def _candidates(batches: Iterable[Batch], key: Callable[[Batch], str]) -> Iterator[Candidates]:
    """By key; batches with the same one follow one another."""
    for of, group in groupby(batches, key):
        together = list(group)
        found = [value for batch in together for value in batch.objectives if value is not None]
        statuses = [status for batch in together for status in batch.statuses]
        yield Candidates(
            of=of,
            count=len(statuses),
            parsed=sum(status != Status.NO_CODE for status in statuses),
            valid=len(found),
            new=sum(sum(batch.new) for batch in together),
            distinct=len(set(found)),
            best=min(found, default=None),
        )
