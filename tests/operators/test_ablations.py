"""Ablations: the same proposals and random numbers as the method, with one half of it taken away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from making import TASK, population, trial

from operators.ablations import NoiseOnly, WithoutPerturbation
from operators.evolution_strategy import EvolutionStrategy
from operators.records import Skip, Update
from operators.rewards import Trial, paper
from operators.schedules import cosine
from operators.search import Operator, Situation, search_operators

M1 = search_operators(TASK, prefill="none")["m1"]
METHOD = EvolutionStrategy(M1, paper, cosine(1e-3, 0.0, 5), 5e-4, samples_per_direction=2)


def situation(generation: int = 0) -> Situation:
    return Situation(population(6), generation, np.random.default_rng(3))


def trials_of(operator: Operator, generation: int = 0) -> list[Trial]:
    """What an operator asked for, scored 9, 8, 7 and so on."""
    proposals = operator.ask(6, situation(generation))
    return [replace(trial(9.0 - number), proposal=one) for number, one in enumerate(proposals)]


def tell(operator: Operator, trials: list[Trial]) -> Update | Skip | None:
    return operator.tell(3, trials, np.random.default_rng(0))


@pytest.mark.parametrize("ablation", [NoiseOnly, WithoutPerturbation])
def test_an_ablation_asks_for_what_the_method_asks_for(ablation: type[NoiseOnly | WithoutPerturbation]) -> None:
    """Else its arm starts from other parents and directions, and the difference is no longer the ablation's."""
    asked, wanted = ablation(METHOD).ask(6, situation()), METHOD.ask(6, situation())
    assert [replace(one, direction=None) for one in asked] == [replace(one, direction=None) for one in wanted]
    assert [one.direction and one.direction.seed for one in asked] == [
        one.direction and one.direction.seed for one in wanted
    ]
    assert ablation(METHOD).name == METHOD.name


def test_noise_only_writes_under_directions_and_never_updates() -> None:
    """Else the arm that shows what perturbing alone is worth learns, or is not perturbed."""
    operator = NoiseOnly(METHOD)
    assert operator.ask(6, situation()) == METHOD.ask(6, situation())
    update = tell(METHOD, trials_of(METHOD))
    skip = tell(operator, trials_of(operator))
    assert isinstance(update, Update)
    assert isinstance(skip, Skip)
    assert skip.step == 3
    rewards = np.array(update.rewards)
    assert f"reward {rewards.mean():.4g} +- {rewards.std():.4g}" in skip.reason
    assert "3 directions" in skip.reason


def test_noise_only_keeps_the_methods_own_reasons() -> None:
    """Else a batch without any signal looks like one that would have taught something."""
    failed = [replace(one, outcome=trial().outcome) for one in trials_of(METHOD)]
    assert tell(NoiseOnly(METHOD), failed) == tell(METHOD, failed)


def test_without_perturbation_candidates_are_written_under_sigma_0() -> None:
    """Else the control is perturbed, and its rewards know of its directions."""
    asked = WithoutPerturbation(METHOD).ask(6, situation())
    assert {one.direction.sigma for one in asked if one.direction} == {0.0}
    assert all(one.direction for one in asked)


def test_without_perturbation_the_update_is_the_methods() -> None:
    """Else the control moves the weights less or more than the method, and proves nothing."""
    operator = WithoutPerturbation(METHOD)
    update = tell(operator, trials_of(operator))
    assert isinstance(update, Update)
    assert replace(update, sigma=1e-3) == tell(METHOD, trials_of(METHOD))
    assert update.sigma == 0.0


def test_without_perturbation_the_last_generation_does_not_update_either() -> None:
    """Else the control makes more updates than the method, whose last sigma is 0."""
    operator = WithoutPerturbation(METHOD)
    asked = operator.ask(6, situation(4))
    assert [one.direction for one in asked] == [None] * 6
    assert tell(operator, trials_of(operator, 4)) == tell(METHOD, trials_of(METHOD, 4))
