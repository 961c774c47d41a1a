"""Low-rank noise of the matrices, or pieces of matrices, that this process holds; see `operators.lowrank`.

Factors are made on the CPU, whatever device the weights are on: they are few, and a launch of a kernel for each of them
would cost more than the copy. Pieces are rectangles of their matrix, so they need a piece of each factor alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from eoh_esopt.models import kernels
from eoh_esopt.models.lowrank_kernels import add_lowrank
from eoh_esopt.models.spans import Span
from operators.lowrank import factor_names, rank_scale
from operators.noise import normal_table, stream_key

_CHUNK = 1 << 22  # elements that are worked on at a time where there is no kernel


@dataclass(frozen=True)
class LowRankPiece:
    """A rectangle of a matrix of the checkpoint, and the rank of the noise that it gets.

    Attributes:
        name: the matrix' canonical checkpoint name.
        rows: which of its rows; a step of 1.
        columns: which of its columns; a step of 1.
        rank: of the noise of each direction.
    """

    name: str
    rows: range
    columns: range
    rank: int

    @classmethod
    def of(cls, name: str, span: Span, size: int, width: int, rank: int) -> LowRankPiece:
        """The rectangle that a span covers.

        Args:
            name: of the matrix.
            span: where the piece lies.
            size: elements of the piece.
            width: columns of the whole matrix.
            rank: of the noise.

        Raises:
            ValueError: the span covers no rectangle.
        """
        row, column = divmod(span.first, width)
        if column == 0 and span.run % width == 0 and size <= span.run and size % width == 0:
            return cls(name, range(row, row + size // width), range(width), rank)
        if span.stride != width or column + span.run > width or size % span.run:
            raise ValueError(f"{span} is no rectangle of {name}, which has {width} columns.")
        return cls(name, range(row, row + size // span.run), range(column, column + span.run), rank)

    def factors(self, seeds: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The rectangle's part of A and B under each direction.

        Returns:
            Shapes (directions, rows, rank) and (directions, columns, rank).
        """
        left, right = factor_names(self.name)
        return _factor(left, self.rows, seeds, self.rank), _factor(right, self.columns, seeds, self.rank)

    def add(self, values: torch.Tensor, seeds: Sequence[int], coefficients: NDArray[np.float32]) -> None:
        """values += sum_g coefficients[g] * eps_g, in place, by the definition's order and rounding.

        Args:
            values: the rectangle's weights, float32, flat, contiguous.
            seeds: one a direction.
            coefficients: one a direction.
        """
        left, right = self.factors(seeds)
        right = np.ascontiguousarray(right.transpose(0, 2, 1))
        matrix = values.view(len(self.rows), len(self.columns))
        if values.device.type == "cpu":
            add_lowrank(matrix.numpy(), left, right, coefficients, rank_scale(self.rank))
        else:
            add_in_torch(matrix, left, right, coefficients)


def _factor(name: str, lines: range, seeds: Sequence[int], rank: int) -> NDArray[np.float32]:
    """The lines of one factor under each direction: shape (directions, lines, rank)."""
    found = np.empty((len(seeds), len(lines) * rank), np.float32)
    span = Span(lines.start * rank, found.shape[1], found.shape[1])
    for row, seed in zip(found, seeds, strict=True):
        kernels.fill_noise(row, np.uint64(stream_key(seed, name)), *span.arguments, normal_table())
    return found.reshape(len(seeds), len(lines), rank)


def add_in_torch(
    matrix: torch.Tensor,
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    coefficients: NDArray[np.float32],
) -> None:
    """What `lowrank_kernels.add_lowrank` does, on any device. Each operation rounds by itself: the bits are equal."""
    a, b = (torch.from_numpy(factor).to(matrix.device) for factor in (left, right))
    rank, lines = left.shape[2], max(1, _CHUNK // matrix.shape[1])
    scale = float(rank_scale(rank))
    for part, rows in zip(torch.split(matrix, lines), torch.split(a, lines, dim=1), strict=True):
        total = torch.zeros_like(part)
        for g, coefficient in enumerate(coefficients.tolist()):
            products = rows[g, :, :1] * b[g, 0]
            for k in range(1, rank):
                products += rows[g, :, k : k + 1] * b[g, k]
            total += products.mul_(scale).mul_(coefficient)
        part += total
