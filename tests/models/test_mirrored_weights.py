"""Mirrored directions and inherited seeds on real weights: by the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_models import an_update, tiny_module
from torch import nn

from eoh_esopt.models.scopes import SCOPES
from eoh_esopt.models.weights import ScopedWeights
from operators.noise import noise
from operators.records import Direction, Update

DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def values(model: nn.Module, name: str) -> torch.Tensor:
    return model.get_parameter(name).detach().clone()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("restore", ["exact", "subtract"])
def test_a_mirror_goes_the_opposite_way(dtype: torch.dtype, restore: str) -> None:
    """Both halves of a pair would be written under weights that are no pair, and curvature would not fall out."""
    model = tiny_module(dtype)
    scoped = ScopedWeights(model, SCOPES["full"], restore)
    for tensor in scoped.tensors:
        before = values(model, tensor.name)
        eps = noise(5, tensor.name, 0, before.numel())
        for sigma in (0.03, -0.03):
            scoped.perturb(Direction(5, sigma))
            moved = before.float().reshape(-1).numpy() + np.float32(sigma) * eps
            assert torch.equal(values(model, tensor.name).reshape(-1), torch.from_numpy(moved).to(dtype)), tensor.name
            scoped.restore()
            if restore == "subtract":  # it drifts by design: begin again from the same weights
                model.load_state_dict(tiny_module(dtype).state_dict())
            assert torch.equal(values(model, tensor.name), before)


def test_a_mirror_scales_gains_the_opposite_way() -> None:
    """Rows of one batch under a direction and its mirror would not be a pair in scope norms."""
    model = tiny_module(torch.float32)
    scoped = ScopedWeights(model, SCOPES["norms"])
    [tensor] = scoped.tensors
    ahead, back = tensor.row_factors([Direction(9, 0.06), Direction(9, -0.06)]).numpy()
    eps = np.float32(0.06) * noise(9, tensor.name, 0, tensor.live.numel())
    assert np.array_equal(ahead, np.float32(1) + eps)
    assert np.array_equal(back, np.float32(1) - eps)
    scoped.perturb(Direction(9, -0.06))
    assert values(model, tensor.name).numpy() == pytest.approx(back, rel=1e-6), "in place as by row"


@pytest.mark.parametrize("scope", ["full", "norms"])
def test_inherited_seeds_move_the_weights_like_the_updates_own(scope: str) -> None:
    """Momentum would be in the history and not in the weights."""
    inherited = tuple((2**63 + i, 0.01 * (i + 1)) for i in range(3))
    update = replace(an_update(0, alpha=0.05), inherited=inherited)
    coefficients = [*update.own_coefficients, *(one for _, one in inherited)]
    spelled_out = Update(0, update.noise_seeds, tuple(coefficients), tuple(coefficients), float(len(coefficients)), 0.1)
    assert spelled_out.coefficients == pytest.approx(update.coefficients, rel=1e-15)
    one, other, plain = (ScopedWeights(tiny_module(torch.float32), SCOPES[scope]) for _ in range(3))
    one.update(update)
    other.update(spelled_out)
    plain.update(an_update(0, alpha=0.05))
    for mine, theirs, own in zip(one.tensors, other.tensors, plain.tensors, strict=True):
        assert mine.live.detach().numpy() == pytest.approx(theirs.live.detach().numpy(), rel=1e-6)
        assert not torch.equal(mine.live, own.live)


def test_a_pair_merged_into_one_seed_leaves_the_same_weights() -> None:
    """Half the noise is regenerated; the weights must be those of the pair."""
    pair = Update(0, (3, 4), (0.0, 0.0), (0.75, -0.2), 0.1, 0.01)
    apart = Update(0, (3, 3, 4, 4), (0.0,) * 4, (1.0, 0.5, -0.6, 0.2), 0.1, 0.01)
    one, other = (ScopedWeights(tiny_module(torch.float32), SCOPES["full"]) for _ in range(2))
    one.update(pair)
    other.update(apart)
    for mine, theirs in zip(one.tensors, other.tensors, strict=True):
        assert mine.live.detach().numpy() == pytest.approx(theirs.live.detach().numpy(), abs=1e-7)
