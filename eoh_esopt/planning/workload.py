"""What a run asks of a model and of the sandbox, and the seconds of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

from scipy.optimize import brentq

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.planning.speeds import Speeds
from operators.errors import UserError
from operators.search import LEARNING


@dataclass(frozen=True)
class Workload:
    """A run, and what its settings do not say.

    Attributes:
        config: its settings.
        prompt: tokens of a prompt, on average.
        reply: tokens of a reply, on average; at most the limit.
        evaluation: seconds of one worker for one candidate.
        workers: of the sandbox.

    Raises:
        UserError: a number is not finite or too small.
    """

    config: RunConfig
    prompt: int
    reply: float
    evaluation: float
    workers: int

    def __post_init__(self) -> None:
        limits = (
            ("prompt-tokens", self.prompt, 1),
            ("tokens", self.reply, 1),
            ("evaluation", self.evaluation, 0),
            ("workers", self.workers, 1),
        )
        for name, value, least in limits:
            if not (math.isfinite(value) and value >= least):
                raise UserError(f"{name} must be a finite number of at least {least}, not {value}.")

    def longest(self, rows: int) -> float:
        """Tokens of the longest of several replies, which a batch waits for.

        The expected maximum where lengths are exponentially distributed and cut at the limit. If a share u ends by
        itself and m is the mean without the limit, the mean is m u and the maximum m (u + u^2 / 2 + ... + u^n / n).
        """
        limit = self.config.sampling.max_new_tokens
        if self.reply >= limit:
            return float(limit)

        def too_long(mean: float) -> float:
            return -mean * math.expm1(-limit / mean) - self.reply

        mean = brentq(too_long, self.reply, limit**2 / (limit - self.reply))  # its value there is above zero
        ended = -math.expm1(-limit / mean)
        return float(mean * sum(ended**number / number for number in range(1, rows + 1)))

    def batches(self) -> Iterator[tuple[str, int]]:
        """(operator, candidates) of every batch of the run, that of the start population included."""
        if not self.config.samples:
            yield "i1", self.config.population
        left = self.config.budget
        for _ in range(self.config.generations):
            for name, count in self.config.plan:
                if left > 0:
                    yield name, min(count, left)
                    left -= count

    def learns(self, operator: str) -> bool:
        """Whether a batch of the operator is written under directions."""
        return self.config.learns and (self.config.samples or operator in LEARNING)


@dataclass(frozen=True)
class Seconds:
    """Of one batch or more.

    Attributes:
        perturb: bringing the weights under directions.
        write: prompts and replies.
        restore: bringing the weights back.
        evaluate: candidates, as far as the model waits for them.
        update: moving the true weights.
    """

    perturb: float = 0.0
    write: float = 0.0
    restore: float = 0.0
    evaluate: float = 0.0
    update: float = 0.0

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def total(self) -> float:
        """The sum."""
        return self.perturb + self.write + self.restore + self.evaluate + self.update


@dataclass(frozen=True)
class Team:
    """Who does the work.

    Attributes:
        plain: speeds of rows without directions.
        learning: of rows under directions, and of moving the weights.
        in_place: whether the weights are moved for each direction; else every row of a batch has its own.
        replicas: that share directions and rows.
        overlaps: whether candidates run beside the writing of the next direction, on processors of their own.
    """

    plain: Speeds
    learning: Speeds
    in_place: bool
    replicas: int
    overlaps: bool


def batch_seconds(workload: Workload, operator: str, count: int, team: Team) -> Seconds:
    """The seconds of one batch of `count` candidates."""
    evaluation = count * workload.evaluation / workload.workers
    if not workload.learns(operator):
        return Seconds(write=_write(workload, _share(count, team), team.plain), evaluate=evaluation)
    samples = workload.config.samples_per_direction
    directions = -(-count // samples)
    update = team.learning.update(directions)
    if not team.in_place:
        write = _write(workload, _share(count, team), team.learning)
        return Seconds(write=write, evaluate=evaluation, update=update)
    in_turn = _share(directions, team)
    moves = in_turn * -(-samples // workload.config.max_batch)
    write = in_turn * _write(workload, min(samples, count), team.plain)
    if team.overlaps and directions > 1:  # all but the last direction's candidates have had time while others came
        evaluation = max(evaluation / directions, evaluation - write * (1 - 1 / directions))
    return Seconds(moves * team.learning.perturb(), write, moves * team.learning.restore(), evaluation, update)


def _share(count: int, team: Team) -> int:
    return -(-count // team.replicas)


def _write(workload: Workload, rows: int, speeds: Speeds) -> float:
    """Seconds of writing that many replies, in as many batches as their limit makes of them."""
    whole, rest = divmod(rows, workload.config.max_batch)
    parts = [workload.config.max_batch] * whole + [rest] * (rest > 0)
    return sum(_write_batch(workload, part, speeds) for part in parts)


def _write_batch(workload: Workload, rows: int, speeds: Speeds) -> float:
    tokens = workload.longest(rows)
    context = workload.prompt + tokens / 2
    return speeds.prompts(rows, workload.prompt) + max(0.0, tokens - 1) * speeds.step(rows, context)
