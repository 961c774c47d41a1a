"""Low-rank directions by row: while a batch is generated, each row's own thin products are added to the linear layers.

Under a direction a layer computes x (W + sigma * A B^T / sqrt(r))^T. That is x W^T, one product for the whole batch,
and (x B) (sigma / sqrt(r) * A)^T, two thin products for each row. Nothing is written to the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from eoh_esopt.models.weights import ScopedTensor, ScopedWeights
from operators.errors import UserError
from operators.lowrank import rank_scale
from operators.records import Direction


@contextmanager
def row_products(weights: ScopedWeights, directions: list[Direction | None]) -> Iterator[None]:
    """Inside the block, row i of every batch of len(directions) rows runs under directions[i].

    Raises:
        UserError: a layer is given something else than one sequence a row, or is never asked, so that directions would
            miss it.
    """
    if not any(directions):
        yield
        return
    layers = [_Layer(tensor, directions) for tensor in weights.tensors]
    handles = [layer.module.register_forward_hook(layer.add) for layer in layers]
    try:
        yield
        missed = [layer.name for layer in layers if not layer.asked]
        if missed:
            raise _refusal(missed[0], "it was not asked for the product")
    finally:
        for handle in handles:
            handle.remove()


class _Layer:
    """One linear layer under the rows' directions: factors of shape (rows, columns, rank) and (rows, rank, outputs)."""

    def __init__(self, tensor: ScopedTensor, directions: list[Direction | None]) -> None:
        assert tensor.lowrank is not None
        self.name, self.module, self.asked = tensor.name, tensor.module, False
        distinct = list(dict.fromkeys(one for one in directions if one is not None))
        left, right = tensor.lowrank.factors([one.seed for one in distinct])
        scale = rank_scale(tensor.lowrank.rank)
        left *= np.array([one.sigma * scale for one in distinct], np.float32)[:, None, None]
        places = [distinct.index(one) if one is not None else len(distinct) for one in directions]
        self._right = _by_row(right, places, tensor.live)
        self._left = _by_row(left, places, tensor.live).transpose(1, 2)

    @torch.no_grad()
    def add(self, module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        """The output plus each row's products. In two-dimensional inputs the rows' vectors follow each other."""
        rows = len(self._right)
        given = inputs[0]
        if not (given.shape[0] == rows or (given.ndim == 2 and given.shape[0] % rows == 0)):
            raise _refusal(self.name, f"it was given {tuple(given.shape)} for {rows} rows")
        self.asked = True
        vectors = given.to(output.device).reshape(rows, -1, given.shape[-1])
        sums = output.reshape(rows, -1, output.shape[-1])
        if self._right.shape[2] == 1:  # batched matrix products of one column cost more than they compute
            sums.addcmul_((vectors * self._right.mT).sum(dim=2, keepdim=True), self._left)
        else:
            sums.baddbmm_(torch.bmm(vectors, self._right), self._left)
        return sums.view(output.shape)


def _by_row(factor: NDArray[np.float32], places: list[int], live: torch.Tensor) -> torch.Tensor:
    """Each row's factor in the live dtype, zeros where the place is beyond the last."""
    factors = torch.from_numpy(factor).to(device=live.device, dtype=live.dtype)
    return torch.cat([factors, torch.zeros_like(factors[:1])])[places]


def _refusal(name: str, what: str) -> UserError:
    return UserError(f"Low-rank noise cannot reach {name} of this architecture: {what}. Use --noise full.")
