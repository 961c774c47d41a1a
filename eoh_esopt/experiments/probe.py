"""What a probe measures before a run: candidates of the operators that learn, under perturbations of several sizes.

They are those of a first generation: written from the seed heuristics with the operators' own prompts, run in the
sandbox, told from copies and rewarded as in a search. Every direction is used with its mirror and at every sigma, so
that what changes sign with the direction (slope, which an update can use) is told from what does not (curvature, which
it cannot), and all sigmas measure the same slopes. The weights are never moved for good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from eoh_esopt.engine.ahead import Evaluates
from eoh_esopt.engine.archive import Archive, fair_outcomes
from eoh_esopt.engine.config import RunConfig
from eoh_esopt.engine.fingerprint import fingerprint
from eoh_esopt.engine.methods import operators_of
from eoh_esopt.engine.population import survivors
from eoh_esopt.engine.replies import parse_reply
from eoh_esopt.engine.run import loaded, machine
from eoh_esopt.engine.streams import batch_stream
from eoh_esopt.experiments.probe_record import (
    Cell,
    Measurement,
    check_same,
    read_measurement,
    settled,
    write_measurement,
)
from eoh_esopt.models.protocol import LanguageModel, Request
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.evolution_strategy import EvolutionStrategy
from operators.records import Candidate, Direction, Outcome, Proposal, Status
from operators.rewards import Trial
from operators.search import Situation
from operators.task import Task

Notify = Callable[[str], None]
Advance = Callable[[int], None]
"""Told how many more candidates are written."""

_FACTORS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Design:
    """What to measure.

    Attributes:
        sigmas: sizes of the perturbations, ascending and above 0; the weights as they are come on top.
        pairs: directions, each with its mirror.
        samples: candidates of each operator under each direction, and as many under its mirror.
    """

    sigmas: tuple[float, ...]
    pairs: int = 24
    samples: int = 2

    def __post_init__(self) -> None:
        if not self.sigmas or any(not 0 < one < float("inf") for one in self.sigmas):
            raise UserError(f"--sigmas takes numbers above 0, not {', '.join(map(str, self.sigmas)) or 'none'}.")
        if self.pairs < 2 or self.samples < 1:
            raise UserError(
                f"A probe needs at least 2 pairs and 1 sample, not {self.pairs} and {self.samples}: "
                "spread cannot be seen in one direction."
            )
        object.__setattr__(self, "sigmas", tuple(sorted(set(self.sigmas))))

    @property
    def cell_size(self) -> int:
        """Candidates of one operator at one sigma."""
        return self.pairs * 2 * self.samples


def grid(config: RunConfig) -> tuple[float, ...]:
    """Half, once and twice the sigma that the run would begin with."""
    sigma = get_scope(config.scope, config.lowrank).sigma[0] if config.sigma is None else config.sigma
    return tuple(factor * sigma for factor in _FACTORS)


def learning_operators(config: RunConfig) -> tuple[str, ...]:
    """Names of the operators that the model learns from."""
    return ("i1",) if config.samples else ("m1", "m2")


def measure(
    config: RunConfig, design: Design, out: Path | None, *, workers: int, notify: Notify, advance: Advance
) -> Measurement:
    """Measure what is not in the file yet; the model is not loaded where nothing is left to be written.

    Args:
        config: the planned run.
        design: what to measure.
        out: file that keeps the candidates' rewards, renewed after every cell; None to keep nothing.

    Returns:
        The measurement, with `config` as asked for and the defaults that depend on the model filled in.

    Raises:
        UserError: the method does not learn, the file holds another measurement, the weights are not those it was made
            with, or the model or the sandbox cannot be used.
    """
    if not config.learns:
        raise UserError(
            f"Method {config.method} has frozen weights: there is nothing to probe. Use esopt-{config.method}."
        )
    kept = read_measurement(out) if out is not None and out.exists() else None
    if out is not None and kept is not None:
        check_same(out, kept, config, design.pairs, design.samples)
        advance(sum(design.cell_size for one in kept.cells if one.sigma in (0.0, *design.sigmas)))
        if not _missing(kept, config, design):
            return replace(kept, config=settled(kept.config, config))
    spec = ProblemSpec.named(config.problem, data=config.data)
    limits = Limits(wall_s=config.timeout)
    with (
        Evaluator(spec, workers=workers, limits=limits, isolation=config.isolation) as evaluator,
        loaded(config, notify) as (model, full),
    ):
        found = Measurement(full, design.pairs, design.samples, _facts(model))
        if kept is not None:
            _check_weights(out, kept, found)
            found = replace(found, cells=kept.cells)
        return measure_with(found, design, spec.build().task, model, evaluator, out, notify, advance)


def measure_with(
    found: Measurement,
    design: Design,
    task: Task,
    model: LanguageModel,
    evaluator: Evaluates,
    out: Path | None,
    notify: Notify,
    advance: Advance,
) -> Measurement:
    """The part of `measure` that writes and evaluates: every cell that `found` lacks."""
    config = found.config
    operators = operators_of(config, task)
    seeds, population = _seed_heuristics(task, evaluator)
    for name, sigma in _missing(found, config, design):
        operator = operators[name]
        assert isinstance(operator, EvolutionStrategy)
        proposals = _proposals(operator, sigma, found, population)
        requests = _requests(proposals, name, sigma, config.seed)
        texts = _write(model, requests, advance)
        outcomes = _judge(texts, proposals, task, evaluator, seeds)
        cell = _cell(operator, sigma, proposals, outcomes, population, found)
        found = found.with_cell(cell)
        notify(f"{name} at sigma {sigma:g}: {int(np.nansum(cell.valid))} of {design.cell_size} candidates valid")
        if out is not None:
            write_measurement(out, found)
    return found


def _missing(found: Measurement, config: RunConfig, design: Design) -> list[tuple[str, float]]:
    wanted = [(name, sigma) for sigma in (0.0, *design.sigmas) for name in learning_operators(config)]
    return [(name, sigma) for name, sigma in wanted if found.cell(name, sigma) is None]


def _facts(model: LanguageModel) -> dict[str, object]:
    return {"model": model.describe(), "checksum": model.checksum(), "machine": machine()}


def _check_weights(out: Path | None, kept: Measurement, now: Measurement) -> None:
    before, after = (str(one.facts["checksum"])[:12] for one in (kept, now))
    if before != after:
        raise UserError(f"{out} was measured on weights {before}, but the model has {after} now. Give another --out.")


_Known = Sequence[tuple[str, Outcome]]
"""Fingerprint and outcome of each seed heuristic."""


def _seed_heuristics(task: Task, evaluator: Evaluates) -> tuple[_Known, tuple[Candidate, ...]]:
    outcomes = dict(evaluator.evaluate([seed.code for seed in task.seeds]))
    known = [(fingerprint(seed.code, task.function), outcomes[index]) for index, seed in enumerate(task.seeds)]
    candidates = [
        Candidate(index, "seed", seed.idea, seed.code, objective)
        for index, seed in enumerate(task.seeds)
        if (objective := outcomes[index].objective) is not None
    ]
    if not candidates:
        raise UserError(f"None of the problem's seed heuristics is valid: {outcomes[0].detail}")
    return known, survivors(candidates, len(candidates))


def _proposals(
    operator: EvolutionStrategy, sigma: float, found: Measurement, population: Sequence[Candidate]
) -> list[Proposal]:
    """Proposals in the order (pair, side, sample), each with its own draw of parents and ideas, as in a search."""
    seed, sides = found.config.seed, found.pairs * 2
    rng = batch_stream(seed, 0, f"{operator.name} at {sigma!r}", "probe")
    written = operator.inner.ask(sides * found.samples, Situation(population, 0, rng))
    drawn = batch_stream(seed, 0, "directions", "probe").integers(2**64, size=found.pairs, dtype=np.uint64)
    signed = [Direction(int(one), side) for one in drawn for side in (sigma, -sigma)]
    if sigma == 0:  # a label for each side, so that copies count as they do under a direction
        signed = [Direction(label, 0.0) for label in range(sides)]
    return [replace(one, direction=signed[index // found.samples]) for index, one in enumerate(written)]


def _requests(proposals: Sequence[Proposal], operator: str, sigma: float, seed: int) -> list[Request]:
    drawn = batch_stream(seed, 0, f"{operator} at {sigma!r}", "probe replies").integers(
        2**64, size=len(proposals), dtype=np.uint64
    )
    return [
        Request(one.prompt, one.prefill, int(number), one.direction if sigma else None)
        for one, number in zip(proposals, drawn, strict=True)
    ]


def _write(model: LanguageModel, requests: Sequence[Request], advance: Advance) -> list[str]:
    texts = [""] * len(requests)
    for batch in model.batches(requests):
        for index, reply in zip(batch, model.generate([requests[i] for i in batch]), strict=True):
            texts[index] = reply.text
        advance(len(batch))
    return texts


def _judge(
    texts: Sequence[str], proposals: Sequence[Proposal], task: Task, evaluator: Evaluates, seeds: _Known
) -> list[Outcome]:
    """Outcomes as a first generation would see them: only the seed heuristics and the cell's own are known before."""
    archive = Archive()
    for index, (key, outcome) in enumerate(seeds):
        archive.reserve(index, key)
        archive.settle(index, outcome)
    ids = range(len(seeds), len(seeds) + len(texts))
    outcomes: dict[int, Outcome] = {}
    originals: dict[int, int] = {}
    programs: dict[int, str] = {}
    for candidate, text in zip(ids, texts, strict=True):
        code = parse_reply(text, task.function).code
        if code is None:
            outcomes[candidate] = Outcome(Status.NO_CODE)
            continue
        key = fingerprint(code, task.function)
        original = archive.known(key)
        if original is None:
            archive.reserve(candidate, key)
            programs[candidate] = code
        else:
            originals[candidate] = original
    ran = dict(evaluator.evaluate(list(programs.values())))
    outcomes.update((candidate, ran[place]) for place, candidate in enumerate(programs))
    _refuse_all_lost(list(ran.values()))
    settled_ = [
        archive.copy_of(originals[one]) if one in originals else archive.settle(one, outcomes[one]) for one in ids
    ]
    return fair_outcomes(list(ids), proposals, settled_)


def _refuse_all_lost(ran: Sequence[Outcome]) -> None:
    if ran and all(one.status is Status.INFRASTRUCTURE for one in ran):
        raise UserError(f"The sandbox failed on all {len(ran)} candidates: {ran[0].detail} Mend it, and call again.")


def _cell(
    operator: EvolutionStrategy,
    sigma: float,
    proposals: Sequence[Proposal],
    outcomes: Sequence[Outcome],
    population: Sequence[Candidate],
    found: Measurement,
) -> Cell:
    trials = [Trial(one, outcome, population[-1].objective) for one, outcome in zip(proposals, outcomes, strict=True)]
    rewards = operator.reward(trials)
    lost = [one.status is Status.INFRASTRUCTURE for one in outcomes]
    shape = (found.pairs, 2, found.samples)
    return Cell(
        operator.name,
        sigma,
        np.array(rewards.values, dtype=np.float64).reshape(shape),
        np.where(lost, np.nan, [float(one.valid) for one in outcomes]).reshape(shape),
        rewards.no_signal,
    )
