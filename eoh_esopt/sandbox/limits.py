"""What one candidate may use."""

from __future__ import annotations

import math
from dataclasses import dataclass

from operators.errors import UserError


@dataclass(frozen=True)
class Limits:
    """Caps on one evaluation.

    Attributes:
        wall_s: seconds from the start of the candidate's process to its complete answer.
        memory_bytes: address space the candidate may add to that of the warm worker it starts in.
        output_bytes: size of the answer.

    Raises:
        UserError: a cap is too small to run anything.
    """

    wall_s: float = 20.0
    memory_bytes: int = 2 * 1024**3
    output_bytes: int = 16 * 1024**2

    def __post_init__(self) -> None:
        if not (math.isfinite(self.wall_s) and self.wall_s > 0):
            raise UserError(f"The time limit of a candidate must be a positive number of seconds, not {self.wall_s}.")
        if self.memory_bytes < 16 * 1024**2:
            raise UserError(f"The memory limit of a candidate must be at least 16 MiB, not {self.memory_bytes} bytes.")
        if self.output_bytes < 8192:
            raise UserError(f"The answer of a candidate needs at least 8192 bytes, not {self.output_bytes}.")
