"""Finding checkpoint tensors inside fused, padded, sharded and replicated parameters, through loaders like servers'."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eoh_esopt.models.spans import Span
from eoh_esopt.models.vllm.layout import Slot, find_slots, uncovered
from operators.errors import UserError

SHAPES = {
    "q": (6, 300),
    "k": (2, 300),
    "v": (2, 300),
    "o": (300, 6),
    "norm": (300,),
    "embed": (513, 300),
    "conv": (8, 1, 4),
}


class Served:
    """A small model as a server holds it: one of `world` shards.

    q, k and v are fused by rows, o is split by columns, the embedding is split by rows and padded, k and v are
    replicated, conv is kept as it is.
    """

    def __init__(self, rank: int, world: int, dtype: torch.dtype) -> None:
        self.rank, self.world = rank, world
        self.vocabulary = -(-513 // (64 * world)) * 64
        self.parameters = {
            "qkv": torch.zeros(6 // world + 4, 300, dtype=dtype),
            "o": torch.zeros(300, 6 // world, dtype=dtype),
            "norm": torch.zeros(300, dtype=dtype),
            "embed": torch.zeros(self.vocabulary, 300, dtype=dtype),
            "conv": torch.zeros(8, 1, 4, dtype=dtype),
        }

    def load(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        share = 6 // self.world
        for name, values in weights:
            if name == "q":
                self.parameters["qkv"][:share] = values[self.rank * share : (self.rank + 1) * share]
            elif name in ("k", "v"):
                at = share + 2 * (name == "v")
                self.parameters["qkv"][at : at + 2] = values
            elif name == "o":
                self.parameters["o"].copy_(values[:, self.rank * share : (self.rank + 1) * share])
            elif name == "embed":
                mine = values[self.rank * self.vocabulary : (self.rank + 1) * self.vocabulary]
                self.parameters["embed"][: len(mine)] = mine
            else:
                self.parameters[name].copy_(values)


def values_of(slots: list[Slot], checkpoint: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What the slots say that each parameter holds; zero where they say nothing."""
    found: dict[str, torch.Tensor] = {}
    for slot in slots:
        j = torch.arange(slot.size)
        index = slot.span.first + j // slot.span.run * slot.span.stride + j % slot.span.run
        flat = found.setdefault(slot.parameter, torch.zeros(300_000))
        flat[slot.start : slot.start + slot.size] = checkpoint[slot.tensor].reshape(-1)[index]
    return found


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("world", [1, 2])
def test_every_element_is_found_where_the_loader_puts_it(world: int, dtype: torch.dtype) -> None:
    """Weights of a fused, split or padded layer would be moved by the noise of others."""
    generator = torch.Generator().manual_seed(1)
    checkpoint = {name: torch.rand(shape, generator=generator).to(dtype).float() for name, shape in SHAPES.items()}
    for rank in range(world):
        served = Served(rank, world, dtype)
        slots = find_slots(served.parameters, served.load, SHAPES)
        for parameter in served.parameters.values():
            parameter.zero_()
        served.load(checkpoint.items())
        found = values_of(slots, checkpoint)
        for name, parameter in served.parameters.items():
            assert torch.equal(found[name][: parameter.numel()], parameter.reshape(-1).float()), name
        padded = max(0, (rank + 1) * served.vocabulary - 513) * 300
        assert uncovered(served.parameters, slots) == ({"embed": padded} if padded else {})


def test_whole_tensors_are_one_run() -> None:
    """The fast path of the kernels would be missed, or a history would depend on how a server splits its layers."""
    served = Served(0, 1, torch.bfloat16)
    slots = {(slot.tensor, slot.parameter): slot for slot in find_slots(served.parameters, served.load, SHAPES)}
    assert slots["k", "qkv"] == Slot("k", "qkv", 6 * 300, 600, Span(0, 600, 600))
    assert slots["norm", "norm"].span == Span(0, 300, 300)
    assert slots["conv", "conv"].span == Span(0, 32, 32)
    assert len(slots) == len(SHAPES)


@given(st.permutations(range(7)), st.integers(1, 5))
def test_any_order_of_rows_is_found(order: list[int], width: int) -> None:
    """An architecture that interleaves its heads would be refused, or moved by the wrong noise."""
    parameter = torch.zeros(7, width, dtype=torch.bfloat16)

    def load(weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        for _, values in weights:
            parameter.copy_(values[order])

    checkpoint = {"w": torch.arange(7.0 * width).reshape(7, width)}
    slots = find_slots({"p": parameter}, load, {"w": (7, width)})
    found = values_of(slots, checkpoint)["p"][: 7 * width]
    assert torch.equal(found, checkpoint["w"][order].reshape(-1))


@pytest.mark.parametrize(
    "change",
    [lambda values: values.t(), lambda values: values.flip(1), lambda values: torch.roll(values, 1, 1)],
    ids=["transposed", "reversed", "rolled"],
)
def test_rearranged_columns_are_refused(change: object) -> None:
    """A layer that computes with rearranged weights would learn noise that no other engine can make again."""
    parameter = torch.zeros(5, 5)
    assert callable(change)

    def load(weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        for _, values in weights:
            parameter.copy_(change(values))

    with pytest.raises(UserError, match="served model's p is no sequence of checkpoint rows"):
        find_slots({"p": parameter}, load, {"w": (5, 5)})
