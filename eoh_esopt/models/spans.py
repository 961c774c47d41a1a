"""Where a piece of memory lies in the checkpoint's tensor: serving engines fuse, pad and shard what checkpoints hold.

Noise belongs to the elements of checkpoint tensors. A piece that an engine holds is a sequence of runs of them:
all rows of a whole tensor are one run, a slice of rows is one run, a slice of columns is one run in every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Element j of the piece is element `first + (j // run) * stride + j % run` of the tensor, both flat, row-major.

    Attributes:
        first: index of the piece's first element in the tensor.
        run: elements that follow each other in both.
        stride: elements of the tensor from the beginning of one run to that of the next.
    """

    first: int
    run: int
    stride: int

    @classmethod
    def whole(cls, size: int) -> Span:
        """A tensor of `size` elements itself."""
        return cls(0, max(size, 1), max(size, 1))

    @property
    def arguments(self) -> tuple[int, int, int]:
        """As the kernels take it."""
        return self.first, self.run, self.stride

    def parts(self, size: int, limit: int) -> Iterator[tuple[int, int, Span]]:
        """(start, count, span) of consecutive parts of a piece of `size` elements, each of at most `limit`.

        Parts begin at multiples of `limit` where the piece is one run, else with a run or at a multiple of `limit`
        inside one.
        """
        step = self.run * max(limit // self.run, 1)
        for start in range(0, size, step):
            first = self.first + start // self.run * self.stride
            count = min(step, size - start)
            if count <= limit:
                yield start, count, Span(first, self.run, self.stride)
                continue
            for inside in range(0, count, limit):
                part = min(limit, count - inside)
                yield start + inside, part, Span(first + inside, part, part)
