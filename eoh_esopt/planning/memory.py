"""What a search needs of a card's memory, and of the host's."""

from __future__ import annotations

from dataclasses import dataclass

from eoh_esopt.planning.shapes import ModelShape

USABLE = {"vllm": 0.90, "transformers": 0.95}
"""Share of a card that a backend may fill: vLLM's own default; the rest of it is the driver's and fragments."""

OVERHEAD = {"vllm": 2.5 * 2**30, "transformers": 1.0 * 2**30}
"""Bytes on each card for the CUDA context and libraries, and vLLM's graphs and buffers. Assumed, not measured."""

_HOST_CHUNKS = 2 * 4 * (1 << 22)  # see eoh_esopt.models.precision.host
_RESIDUAL = 2.01  # bytes a weight: the low half, and the exceptions; measured, see docs/performance.md


@dataclass(frozen=True)
class Memory:
    """Bytes on all cards of one replica together, and in the host's memory.

    Attributes:
        weights: that the model computes with.
        masters: what the restore mode keeps beside them.
        cache: keys and values of the batch.
        work: activations, scores, and what libraries take on each card.
        host: in the host's memory.
    """

    weights: float
    masters: float
    cache: float
    work: float
    host: float

    @property
    def device(self) -> float:
        """Sum on the cards."""
        return self.weights + self.masters + self.cache + self.work


def memory(
    shape: ModelShape,
    *,
    backend: str,
    restore: str,
    moved: int,
    element: int,
    rows: int,
    prompt: int,
    length: int,
    cards: int,
) -> Memory:
    """The memory of one replica.

    Args:
        backend: vllm or transformers.
        restore: the restore mode.
        moved: weights in scope.
        element: bytes of a live weight.
        rows: most replies written at once.
        prompt: tokens of a prompt.
        length: tokens of a prompt and its longest reply.
        cards: that share the model.
    """
    on_device = {"exact": 4.0 * moved, "residual": _RESIDUAL * moved, "host": _HOST_CHUNKS, "subtract": 0.0}[restore]
    scores = 4.0 * rows * shape.vocabulary * 3  # in float32: what the model gives, what is drawn from, what is decided
    work = OVERHEAD[backend] * cards + scores
    if backend == "transformers":  # reads whole prompts at once; vLLM reads them in chunks, within its overhead
        work += element * rows * prompt * (2 * shape.intermediate + 6 * shape.hidden)
    return Memory(
        weights=float(element * shape.parameters),
        masters=on_device,
        cache=float(element * rows * length * shape.cached),
        work=work,
        host=4.0 * moved if restore == "host" else 0.0,
    )
