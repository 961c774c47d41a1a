"""What a restore mode does with the weights of one piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch

from operators.records import Direction, Update


class TrueWeights(Protocol):
    """The true weights of one piece, in some form beside the live ones."""

    @property
    def device_bytes(self) -> int:
        """What it takes on the live weights' device beyond plain inference, in bytes."""

    @property
    def host_bytes(self) -> int:
        """What it takes in the host's memory, where that is another one than the device's, in bytes."""

    def perturb(self, direction: Direction) -> None:
        """Bring the live weights under a direction. They have to be the true ones."""

    def restore(self, direction: Direction) -> None:
        """Bring the live weights back from under a direction; also after an interrupted `perturb` or `restore`."""

    def update(self, update: Update) -> None:
        """Move the true weights, and the live ones with them. No direction is active."""

    def values(self) -> Iterator[torch.Tensor]:
        """The true weights in order, in flat chunks. No direction is active. A chunk holds until the next is taken."""
