"""What the workers of a server do besides: its weights outlive a run, so the next one begins with the base weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from eoh_esopt.models.checkpoint import stored_tensors
from eoh_esopt.models.vllm import extension
from eoh_esopt.models.vllm.extension import EsWorkerExtension
from operators.records import Direction


class EsServerExtension(EsWorkerExtension):
    """The worker extension of a server."""

    def es_begin(self, folder: str, scope: str, restore: str) -> dict[str, Any]:
        """As `es_open`, where other weights may have been movable before. They have to be the base ones."""
        self._es_weights: Any = None  # its masters would lie beside the new ones
        self._es_folder = Path(folder)
        return self.es_open(folder, scope, restore)

    def es_restore(self) -> None:
        """Back to the true weights; nothing happens before the first `es_begin`."""
        if getattr(self, "_es_weights", None) is not None:
            super().es_restore()

    @torch.no_grad()
    def es_reset(self) -> None:
        """The checkpoint's weights again, as they were loaded; nothing happens before the first `es_begin`."""
        weights = getattr(self, "_es_weights", None)
        if weights is None:
            return
        weights.restore()
        stored = stored_tensors(self._es_folder)
        for tensor in weights._tensors.tensors:
            with safe_open(stored[tensor.name].file, framework="pt") as file:
                base = extension._piece(file.get_tensor(tensor.name), tensor.span, tensor.live.numel())
            tensor.master.copy_(base.to(tensor.live.dtype))  # masters are made of what was loaded
        weights.perturb(Direction(0, 0.0))
        weights.restore()  # casts the masters
