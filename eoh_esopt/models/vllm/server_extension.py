"""What the workers of a server do besides: its weights outlive a run, so the next one begins with the base weights."""

from __future__ import annotations

from typing import Any

from eoh_esopt.models.vllm.extension import EsWorkerExtension


class EsServerExtension(EsWorkerExtension):
    """The worker extension of a server."""

    def es_begin(self, folder: str, scope: str, restore: str) -> dict[str, Any]:
        """As `es_open`, where other weights may have been movable before."""
        if self._es_opened:
            self._es_weights.give_back()
            del self._es_weights  # its masters would lie beside the new ones
        return self.es_open(folder, scope, restore)

    def es_restore(self) -> None:
        """Back to the true weights; nothing happens before the first `es_begin`."""
        if self._es_opened:
            super().es_restore()

    def es_reset(self) -> None:
        """The checkpoint's weights again, as they were loaded; nothing happens before the first `es_begin`."""
        if self._es_opened:
            self._es_weights.reset()

    @property
    def _es_opened(self) -> bool:
        return hasattr(self, "_es_weights")
