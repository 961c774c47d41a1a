"""GPUs by their data sheets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from operators.errors import UserError


@dataclass(frozen=True)
class Card:
    """One GPU.

    Attributes:
        name: as the maker has it.
        memory: in bytes.
        bandwidth: of its memory, bytes a second.
        flops: bfloat16 matrix products with float32 sums, dense, operations a second.
        instructions: a second, of all multiprocessors, one for each of their 128 lanes and clock.
        link: to the host's memory, bytes a second each way.
    """

    name: str
    memory: float
    bandwidth: float
    flops: float
    instructions: float
    link: float


def _card(name: str, gib: float, tb_s: float, tflops: float, processors: int, ghz: float, link_gb_s: float) -> Card:
    return Card(name, gib * 2**30, tb_s * 1e12, tflops * 1e12, processors * 128 * ghz * 1e9, link_gb_s * 1e9)


CARDS = (
    # memory GiB, bandwidth TB/s, bfloat16 TFLOP/s, multiprocessors, boost clock GHz, link GB/s (PCIe 4.0 or 5.0 x16,
    # less a fifth for its protocol). NVIDIA's data sheets and architecture papers; SXM versions of A100, H100 and H200.
    _card("RTX 3090", 24, 0.936, 71, 82, 1.70, 25),
    _card("RTX 4090", 24, 1.008, 165, 128, 2.52, 25),
    _card("RTX 5090", 32, 1.792, 210, 170, 2.41, 50),
    _card("A100-40", 40, 1.555, 312, 108, 1.41, 25),
    _card("A100-80", 80, 2.039, 312, 108, 1.41, 25),
    _card("L40S", 48, 0.864, 362, 142, 2.52, 25),
    _card("H100", 80, 3.35, 989, 132, 1.98, 50),
    _card("H200", 141, 4.8, 989, 132, 1.98, 50),
    _card("B200", 180, 7.7, 2250, 148, 1.98, 50),
)

_NOISE = re.compile(r"nvidia|geforce|sxm\d?|gib|gb|[^a-z0-9]")


def find_card(name: str) -> Card:
    """The card of that name; case, spaces, the maker and `GB` do not matter. `A100` is the one with 80 GB.

    Raises:
        UserError: it is not in the table.
    """
    wanted = _NOISE.sub("", name.lower())
    for card in CARDS:
        if wanted and wanted in (_NOISE.sub("", card.name.lower()), card.name.lower().partition(" ")[2]):
            return card
    if wanted == "a100":
        return find_card("A100-80")
    known = ", ".join(card.name for card in CARDS)
    raise UserError(f"Unknown GPU {name!r}. Known: {known}; or cpu, to measure this machine.")
