"""The settings of the baseline, and the check that both arms have the same budget of rollouts."""

from __future__ import annotations

import importlib
import importlib.util
import math
from dataclasses import dataclass, replace

from eoh_esopt.experiments.grouping import TOLERANCE
from operators.errors import UserError
from train_adapters.config import TrainConfig

_LIBRARY = "trl"
_REMEDY = "Run: pip install 'eoh-esopt[grpo]'"


@dataclass(frozen=True)
class GrpoConfig:
    """How the baseline learns. The defaults are the published settings of its Sudoku runs, where those are known.

    Attributes:
        steps: batches of rollouts; None for as many as spend the rollouts of evolution strategies.
        prompts: tasks of a step.
        group: episodes of each of them, whose rewards are compared with one another.
        minibatches: updates that are made from the rollouts of a step, each from another part of them.
        learning_rate: of AdamW, constant.
        beta: weight of the divergence from the model as it was before the training; 0 for none.
        clip: how far the ratio of new to old probability of a token may leave 1, in (0, 1).
        pass_rows: replies of one forward and backward pass. It decides over memory and speed, not over the update.
        gradient_checkpointing: compute activations twice instead of keeping them.
        checkpoint_every: steps between two checkpoints that an interrupted arm goes on from.
    """

    steps: int | None = None
    prompts: int = 32
    group: int = 8
    minibatches: int = 1
    learning_rate: float = 1e-6
    beta: float = 1e-3
    clip: float = 0.2
    pass_rows: int = 8
    gradient_checkpointing: bool = False
    checkpoint_every: int = 10

    def __post_init__(self) -> None:
        least = {"prompts": 1, "group": 2, "minibatches": 1, "pass_rows": 1, "checkpoint_every": 1}
        least |= {} if self.steps is None else {"steps": 1}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise UserError(f"grpo: {name} must be at least {value}, not {getattr(self, name)}.")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise UserError(f"grpo: learning_rate must be a finite number above 0, not {self.learning_rate}.")
        if not (math.isfinite(self.beta) and self.beta >= 0):
            raise UserError(f"grpo: beta must be a finite number of at least 0, not {self.beta}.")
        if not 0 < self.clip < 1:
            raise UserError(f"grpo: clip must lie in (0, 1), not {self.clip}.")
        if self.step_rollouts % self.minibatches:
            raise UserError(
                f"grpo: {self.minibatches} minibatches do not divide the {self.step_rollouts} rollouts of a step "
                f"({self.prompts} prompts x {self.group}). Choose a number that does."
            )

    @property
    def step_rollouts(self) -> int:
        """Rollouts of one step."""
        return self.prompts * self.group


def es_rollouts(config: TrainConfig) -> int:
    """Rollouts that evolution strategies learn from."""
    return config.generations * config.directions * config.episodes


def matched(config: TrainConfig, grpo: GrpoConfig, *, force: bool) -> GrpoConfig:
    """The baseline's settings with its steps filled in, for the budget of evolution strategies.

    Raises:
        UserError: the two would spend rollouts that differ by more than 1 % of the fewer, and it is not forced; or
            the settings of the training do not do for the baseline.
    """
    _check_arms(config)
    budget = es_rollouts(config)
    steps = max(1, round(budget / grpo.step_rollouts)) if grpo.steps is None else grpo.steps
    spent = steps * grpo.step_rollouts
    if unequal(budget, spent) and not force:
        raise UserError(
            f"The arms would not have the same budget: {budget:,} rollouts of evolution strategies "
            f"({config.generations} generations x {config.directions} directions x {config.episodes}), {spent:,} of "
            f"GRPO ({steps} steps x {grpo.prompts} prompts x {grpo.group}). Choose others, or add --force."
        )
    return replace(grpo, steps=steps)


def unequal(first: int, second: int) -> bool:
    """Whether two budgets differ by more than is let pass."""
    return abs(first - second) > TOLERANCE * min(first, second)


def _check_arms(config: TrainConfig) -> None:
    if config.backend != "transformers":
        raise UserError(
            f"Both arms of a comparison write with --backend transformers, not {config.backend}: GRPO needs gradients "
            "of the weights that write."
        )
    if config.revises or config.skill is not None:
        raise UserError("A comparison trains weights alone: leave out skill and co_evolve.")
    if config.sampling.temperature == 0:
        raise UserError("At temperature 0 all episodes of a GRPO group are the same. Choose one above 0.")


def check_library() -> None:
    """See whether the library of the baseline is there, before anything is run.

    Raises:
        UserError: it is not installed.
    """
    if importlib.util.find_spec(_LIBRARY) is None:
        raise UserError(f"GRPO needs the package trl, which is not installed. {_REMEDY}")


def import_library() -> None:
    """Import what trains the baseline, which takes seconds.

    Raises:
        UserError: it cannot be imported: another release, or parts of it are missing.
    """
    check_library()
    try:
        importlib.import_module("train_adapters.grpo.trl_trainer")
    except (ImportError, RuntimeError) as error:  # trl turns what goes wrong in an import of its own into the latter
        reason = str(error).strip().splitlines()[-1]
        raise UserError(f"The package trl that is installed cannot be used: {reason}. {_REMEDY}") from error
