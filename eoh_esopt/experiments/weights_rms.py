"""The size of a model's weights, from its files: what the size of an update is compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from operators.errors import UserError

_CHUNK = 1 << 24
_NOT_TEXT = ("visual", "vision", "mtp.")
_NOT_LOWRANK = ("embed", "lm_head")


def weights_rms(folder: Path, elements: int, *, lowrank: bool, follow: Callable[[int, int], None]) -> float:
    """Root mean square of the weights that directions move by additive noise.

    Args:
        folder: checkpoint folder.
        elements: how many weights the run's directions moved; the files have to hold as many.
        lowrank: whether by low-rank noise, which moves the matrices of the linear layers only.
        follow: told how many of the tensors are read.

    Raises:
        UserError: the files cannot be read, or are another model's.
    """
    import torch
    from safetensors import safe_open

    from eoh_esopt.models.checkpoint import stored_tensors

    stored = {
        name: one
        for name, one in stored_tensors(folder).items()
        if not any(part in name for part in _NOT_TEXT)
        and not (lowrank and (len(one.shape) != 2 or any(part in name for part in _NOT_LOWRANK)))
    }
    found = sum(math.prod(one.shape) for one in stored.values())
    if found != elements:
        raise UserError(
            f"The files in {folder} hold {found} weights that directions move, and the run moved {elements}. Give the "
            "model that the run began with by --weights."
        )
    squares = 0.0
    for number, (name, one) in enumerate(stored.items(), 1):
        with safe_open(one.file, framework="pt") as opened:
            for part in opened.get_tensor(name).view(-1).split(_CHUNK):
                squares += float(torch.sum(part.float().square(), dtype=torch.float64))
        follow(number, len(stored))
    return math.sqrt(squares / max(found, 1))
