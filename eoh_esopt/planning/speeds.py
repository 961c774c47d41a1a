"""How long the parts of a search take: by a card's data sheet. Measured on this machine: `eoh_esopt.planning.here`.

Everything is bytes over bandwidth or operations over peak, whichever is longer, at a stated share of either, plus a
fixed time for what is launched. The shares are assumptions, none was measured on a card by this project. One published
measurement stands against them: Llama 3.1 8B in bfloat16 on an A100 with 40 GB, vLLM 0.23, one request of 1,024 tokens
at a time, about 75 tokens a second (johnmusgrave.com/p/vllm-throughput-latency-sweep-on), 0.77 of the bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from eoh_esopt.planning.cards import Card
from eoh_esopt.planning.shapes import ModelShape

BANDWIDTH_SHARE = 0.75
FLOPS_SHARE = 0.5
INSTRUCTION_SHARE = 0.5
LINK_SHARE = 0.8
LAUNCH = 20e-6
"""Seconds for one kernel of ours: one a tensor."""

STEP = {"vllm": 0.5e-3, "transformers": 2e-3}
LAYER = {"vllm": 5e-6, "transformers": 0.7e-3}
"""Seconds of a token beyond the products, once and for each layer: scheduling and sampling, CUDA graphs or Python."""

SPLIT = 30e-6
"""Seconds that a layer takes longer where cards share it."""

BY_ROW = {"full": 0.6, "norms": 0.9}
"""Throughput of rows under directions of their own, low-rank noise in scope `full` or gains, against plain rows."""

PERTURB_INSTRUCTIONS, NORMAL_INSTRUCTIONS = 28.5, 19.5
"""For a weight, and for each further value of noise: counted in what Triton compiles, see docs/performance.md."""


class Speeds(Protocol):
    """Seconds of the parts."""

    def prompts(self, rows: int, tokens: int) -> float:
        """Read prompts of that many tokens each, and draw the first token of each reply."""
        ...

    def step(self, rows: int, context: float) -> float:
        """Draw one more token of each reply, at that many tokens before it."""
        ...

    def perturb(self) -> float:
        """Bring the weights under a direction."""
        ...

    def restore(self) -> float:
        """Bring them back."""
        ...

    def update(self, directions: int) -> float:
        """Move the true weights by an update of that many directions."""
        ...


@dataclass(frozen=True)
class Traffic:
    """Bytes a weight through a card's memory, and over its link to the host, for one operation of a restore mode."""

    device: float
    link: float = 0.0


def traffic(mode: str, element: int) -> tuple[Traffic, Traffic, Traffic]:
    """Of perturb, restore and update in a restore mode, with live weights of `element` bytes.

    Float32 masters are read, moved (an update reads and writes them) and rounded into the live weights. `residual` has
    no fused kernel for cards: torch passes over a chunk about twenty times. `host` streams masters up, an update also
    down again, and a restore only the live weights.
    """
    live = element
    return {
        "exact": (Traffic(4 + live), Traffic(4 + live), Traffic(8 + 4 + live)),
        "residual": (Traffic(120), Traffic(100), Traffic(120)),
        "host": (Traffic(4 + 4 + live, 4), Traffic(live, live), Traffic(4 + 8 + 4 + live, 8)),
        "subtract": (Traffic(2 * live + 8), Traffic(2 * live + 8), Traffic(2 * live + 16)),
    }[mode]


@dataclass(frozen=True)
class CardSpeeds:
    """By the data sheet.

    Attributes:
        card: the card.
        shape: the model.
        backend: vllm or transformers.
        mode: the restore mode.
        moved: weights in scope.
        moved_tensors: tensors in scope.
        element: bytes of a live weight.
        split: cards that share every layer.
        by_row: share of the plain throughput that rows under directions of their own have; 1 for plain ones.
    """

    card: Card
    shape: ModelShape
    backend: str
    mode: str
    moved: int
    moved_tensors: int
    element: int
    split: int = 1
    by_row: float = 1.0

    def prompts(self, rows: int, tokens: int) -> float:
        """See `Speeds`."""
        products = self._products(rows * tokens)
        return (products + self._fixed()) / self.by_row

    def step(self, rows: int, context: float) -> float:
        """See `Speeds`."""
        cache = rows * context * self.shape.cached * self.element / (self._bandwidth() * self.split)
        return (self._products(rows) + cache + self._fixed()) / self.by_row

    def perturb(self) -> float:
        """See `Speeds`."""
        return self._moving(0, PERTURB_INSTRUCTIONS)

    def restore(self) -> float:
        """See `Speeds`."""
        return self._moving(1, PERTURB_INSTRUCTIONS if self.mode in ("residual", "subtract") else 0.0)

    def update(self, directions: int) -> float:
        """See `Speeds`."""
        return self._moving(2, NORMAL_INSTRUCTIONS * directions)

    def cause(self, rows: int) -> str:
        """What a token of that many rows mostly waits for."""
        if self._fixed() > self._products(rows):
            return "launching kernels from Python" if self.backend == "transformers" else "launching kernels"
        return "reading the weights" if self._reading() > self._multiplying(rows) else "arithmetic"

    def _products(self, tokens: int) -> float:
        return max(self._reading(), self._multiplying(tokens))

    def _reading(self) -> float:
        return self.shape.read * self.element / (self._bandwidth() * self.split)

    def _multiplying(self, tokens: int) -> float:
        halved = 2 if self.element == 4 else 1  # float32 products run at half the rate, as TF32
        return 2 * self.shape.read * tokens * halved / (self.card.flops * FLOPS_SHARE * self.split)

    def _fixed(self) -> float:
        layer = LAYER[self.backend] + (SPLIT if self.split > 1 else 0.0)
        return STEP[self.backend] + layer * self.shape.layers

    def _moving(self, operation: int, instructions: float) -> float:
        moved = traffic(self.mode, self.element)[operation]
        weights = self.moved / self.split
        memory = weights * moved.device / self._bandwidth()
        link = weights * moved.link / (self.card.link * LINK_SHARE)
        arithmetic = weights * instructions / (self.card.instructions * INSTRUCTION_SHARE)
        return max(memory, link, arithmetic) + LAUNCH * self.moved_tensors

    def _bandwidth(self) -> float:
        return self.card.bandwidth * BANDWIDTH_SHARE
