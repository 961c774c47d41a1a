"""Where a piece of memory lies in the checkpoint's tensor: serving engines fuse, pad and shard what checkpoints hold.

Noise belongs to the elements of checkpoint tensors. A piece that an engine holds is a sequence of runs of them:
all rows of a whole tensor are one run, a slice of rows is one run, a slice of columns is one run in every row.
"""

from __future__ import annotations

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
