"""The methods: which operators a search has, and which of them the model learns from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eoh_esopt.engine.config import RunConfig
from operators import rewards
from operators.ablations import NoiseOnly, WithoutPerturbation
from operators.adaptation import signal_seeking
from operators.evolution_strategy import EvolutionStrategy
from operators.rewards import Reward
from operators.schedules import SCHEDULES, Schedule
from operators.search import Operator, search_operators
from operators.shaping import SHAPINGS, shuffled
from operators.task import Task


def operators_of(config: RunConfig, task: Task) -> dict[str, Operator]:
    """The operators of a method by name; those that learn (m1 and m2, or i1 when sampling) are wrapped.

    Args:
        config: settings with every default filled in, see `RunConfig.resolved`.
        task: what the prompts speak of.
    """
    assert config.prefill is not None
    operators: dict[str, Operator] = dict(search_operators(task, prefill=config.prefill))
    if config.learns:
        for name in ("i1",) if config.samples else ("m1", "m2"):
            operators[name] = ablated(config, learning(config, operators[name]))
    return operators


_ABLATIONS: Mapping[str, Callable[[Operator], Operator]] = {
    "none": lambda operator: operator,
    "noise-only": NoiseOnly,
    "no-perturbation": WithoutPerturbation,
}


def ablated(config: RunConfig, operator: Operator) -> Operator:
    """An operator that learns, without what the settings take away from it."""
    return _ABLATIONS[config.ablation](operator)


def sigma_schedule(config: RunConfig, generations: int) -> Schedule:
    """Sigma over the generations of a search.

    Args:
        config: settings with every default filled in.
        generations: how many there are.
    """
    assert config.sigma is not None
    assert config.sigma_final is not None
    return SCHEDULES[config.sigma_schedule](config.sigma, config.sigma_final, generations)


def reward_of(config: RunConfig) -> Reward:
    """What candidates are rewarded by.

    Args:
        config: settings with every default filled in.
    """
    assert config.reward is not None
    paper = rewards.sample if config.samples else rewards.paper
    return {"graded": rewards.graded, "paper": paper, "ordered": rewards.ordered}[config.reward]


def learning(config: RunConfig, inner: Operator) -> EvolutionStrategy:
    """An operator that the model learns from.

    Args:
        config: settings with every default filled in.
        inner: what writes its proposals.
    """
    assert config.alpha is not None
    shaping = SHAPINGS[config.shaping]
    return EvolutionStrategy(
        inner=inner,
        reward=reward_of(config),
        sigma=sigma_schedule(config, config.generations),
        alpha=config.alpha,
        samples_per_direction=config.samples_per_direction,
        shaping=shuffled(shaping) if config.shuffle_rewards else shaping,
        antithetic=config.antithetic,
        adapt=signal_seeking() if config.adaptive_sigma else None,
    )
