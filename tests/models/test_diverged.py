"""A model whose weights were moved too far."""

from __future__ import annotations

import math

import pytest
import torch

from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.sampling import RowSampler
from operators.errors import UserError


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_logits_that_are_not_finite_end_the_run_with_what_to_do(temperature: float, score: float) -> None:
    """Else a learning rate that is too large ends in a traceback, or goes on with a model that writes rubbish."""
    scores = torch.tensor([[0.0, 1.0, 2.0], [0.0, score, 2.0]])
    with pytest.raises(UserError, match="smaller sigma or alpha"):
        RowSampler(Sampling(temperature), [1, 2], 0)(torch.zeros(2, 0), scores)


def test_tokens_that_are_ruled_out_are_no_overflow() -> None:
    """Else a model that masks tokens cannot be used."""
    scores = torch.tensor([[0.0, -math.inf, -math.inf]])
    assert RowSampler(Sampling(), [1], 0)(torch.zeros(1, 0), scores).argmax().item() == 0
