"""Where the elements of a checkpoint lie in a served model, found by asking its own loader.

Serving engines fuse, pad, shard and replicate what checkpoints hold, each architecture in its own way. Their loader
knows how, so each tensor's own number, its rows' and its columns' go through it, and the parameters then hold the
answer: exact for any architecture and any sharding, without a list of names. Digits in base 256 are exact in any dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from eoh_esopt.models.spans import Span
from operators.errors import UserError

Load = Callable[[Iterable[tuple[str, torch.Tensor]]], object]
Shapes = Mapping[str, tuple[int, ...]]

_BASE = 256
_UNTOUCHED = -1.0


@dataclass(frozen=True)
class Slot:
    """A piece of a checkpoint tensor in a parameter's memory.

    Attributes:
        tensor: name in the checkpoint.
        parameter: name in the served model.
        start: index of the piece's first element in the flat parameter.
        size: number of its elements, which follow each other in the parameter.
        span: where they lie in the checkpoint's tensor.
    """

    tensor: str
    parameter: str
    start: int
    size: int
    span: Span


def find_slots(parameters: Mapping[str, torch.Tensor], load: Load, shapes: Shapes) -> list[Slot]:
    """Send numbers through the loader and read them back. The parameters' values are lost.

    Args:
        parameters: the model's floating-point parameters, tied ones once, contiguous.
        load: the model's loader of (checkpoint name, tensor) pairs.
        shapes: of the checkpoint's tensors.

    Raises:
        UserError: a parameter is not made of runs of checkpoint rows, so it could not be moved element by element.
    """
    names = list(shapes)
    rows = max(_height(shape) for shape in shapes.values())
    columns = max(math.prod(shape[1:]) for shape in shapes.values())
    asked = _Asked(parameters, load, shapes)
    owner = asked.number(len(names), lambda index, shape: torch.tensor(index), _by_row)
    row = asked.number(rows, lambda _, shape: torch.arange(_height(shape)).reshape(-1, *_ones(shape)), _by_row)
    column = asked.number(
        columns, lambda _, shape: torch.arange(math.prod(shape[1:])).reshape(1, *shape[1:]), _by_column
    )
    return [
        slot for name in parameters for slot in _slots_of(name, names, shapes, owner[name], row[name], column[name])
    ]


def uncovered(parameters: Mapping[str, torch.Tensor], slots: Sequence[Slot]) -> dict[str, int]:
    """Elements of each parameter that no checkpoint tensor fills: padding, or parameters that are not loaded."""
    left = {name: parameter.numel() for name, parameter in parameters.items()}
    for slot in slots:
        left[slot.parameter] -= slot.size
    return {name: count for name, count in left.items() if count}


def _height(shape: tuple[int, ...]) -> int:
    return shape[0] if shape else 1


def _ones(shape: tuple[int, ...]) -> list[int]:
    return [1] * (len(shape) - 1)


@dataclass(frozen=True)
class _Asked:
    """A loader that is sent numbers.

    Attributes:
        parameters, load, shapes: as `find_slots` takes them.
    """

    parameters: Mapping[str, torch.Tensor]
    load: Load
    shapes: Shapes

    def number(
        self,
        count: int,
        numbers: Callable[[int, tuple[int, ...]], torch.Tensor],
        reduce: Callable[[str, torch.Tensor], torch.Tensor],
    ) -> dict[str, torch.Tensor]:
        """What each parameter holds after every checkpoint element was given a number below `count`.

        Args:
            count: the numbers' upper limit.
            numbers: (index of the tensor, its shape) -> numbers, of a shape that expands to the tensor's.
            reduce: a parameter's rows -> what is kept of them.

        Returns:
            What is kept, by parameter: int64, -1 for elements that were not loaded.
        """
        found: dict[str, torch.Tensor] = {}
        digits = 1 + (int(math.log2(max(count - 1, 1))) // 8)
        for digit in range(digits):
            for parameter in self.parameters.values():
                parameter.fill_(_UNTOUCHED)
            self.load(self._tensors(numbers, digit))
            for name, parameter in self.parameters.items():
                rows = parameter.detach().reshape(_height(tuple(parameter.shape)), -1)
                read = reduce(name, rows).to(torch.int64)
                found[name] = read if digit == 0 else torch.where(read < 0, read, found[name] + read * _BASE**digit)
        return found

    def _tensors(
        self, numbers: Callable[[int, tuple[int, ...]], torch.Tensor], digit: int
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """The checkpoint's tensors, of one digit of the numbers. They are views that take no memory of their size."""
        some = next(iter(self.parameters.values()))
        for index, (name, shape) in enumerate(self.shapes.items()):
            values = numbers(index, shape) // _BASE**digit % _BASE
            yield name, values.to(device=some.device, dtype=some.dtype).expand(shape)


def _by_row(name: str, rows: torch.Tensor) -> torch.Tensor:
    """One number a row: shape (rows,)."""
    if not bool((rows == rows[:, :1]).all()):
        raise _refusal(name)
    return rows[:, 0].clone()


def _by_column(name: str, rows: torch.Tensor) -> torch.Tensor:
    """One number a column, of the rows that were loaded: shape (columns,)."""
    loaded = rows[rows[:, 0] >= 0]
    if not len(loaded):
        return rows[0].clone()
    if not bool((loaded == loaded[:1]).all()):
        raise _refusal(name)
    return loaded[0].clone()


def _slots_of(
    name: str,
    names: Sequence[str],
    shapes: Shapes,
    owner: torch.Tensor,
    row: torch.Tensor,
    column: torch.Tensor,
) -> Iterator[Slot]:
    """The parameter's pieces: maximal runs of rows that follow each other in one checkpoint tensor."""
    rows, width = len(row), len(column)
    first = int(column[0])
    follows = bool((column == torch.arange(first, first + width, device=column.device)).all())
    owners, places = owner.tolist(), row.tolist()
    begin = 0
    while begin < rows:
        end = begin + 1
        while end < rows and owners[end] == owners[begin] and (owners[end] < 0 or places[end] == places[end - 1] + 1):
            end += 1
        if owners[begin] >= 0:
            if not follows:
                raise _refusal(name)
            tensor = names[owners[begin]]
            span = _span(shapes[tensor], places[begin], end - begin, first, width)
            yield Slot(tensor, name, begin * width, (end - begin) * width, span)
        begin = end


def _span(shape: tuple[int, ...], row: int, rows: int, first: int, width: int) -> Span:
    stride = math.prod(shape[1:])
    if width == stride:
        return Span(row * stride, rows * stride, rows * stride)
    return Span(row * stride + first, width, stride)


def _refusal(name: str) -> UserError:
    return UserError(
        f"The served model's {name} is no sequence of checkpoint rows (transposed, packed or computed weights), so its "
        "elements cannot be moved. Serve the unquantised model, or use --backend transformers."
    )
