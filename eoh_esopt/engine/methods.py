"""The methods: which operators a search has, and which of them the model learns from."""

from __future__ import annotations

from eoh_esopt.engine.config import RunConfig
from operators import rewards
from operators.adaptation import signal_seeking
from operators.evolution_strategy import EvolutionStrategy
from operators.schedules import cosine
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
            operators[name] = learning(config, operators[name])
    return operators


def learning(config: RunConfig, inner: Operator) -> EvolutionStrategy:
    """An operator that the model learns from.

    Args:
        config: settings with every default filled in.
        inner: what writes its proposals.
    """
    assert config.sigma is not None
    assert config.sigma_final is not None
    assert config.alpha is not None
    assert config.reward is not None
    paper = rewards.sample if config.samples else rewards.paper
    shaping = SHAPINGS[config.shaping]
    return EvolutionStrategy(
        inner=inner,
        reward={"graded": rewards.graded, "paper": paper, "ordered": rewards.ordered}[config.reward],
        sigma=cosine(config.sigma, config.sigma_final, config.generations),
        alpha=config.alpha,
        samples_per_direction=config.samples_per_direction,
        shaping=shuffled(shaping) if config.shuffle_rewards else shaping,
        antithetic=config.antithetic,
        adapt=signal_seeking() if config.adaptive_sigma else None,
    )
