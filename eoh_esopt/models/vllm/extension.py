"""What a vLLM worker does with its weights: perturb, restore, update, tell. Called by name over vLLM's own channel.

vLLM mixes the class below into its worker, so its methods are found by name and take and give plain data. The noise
is that of the checkpoint's tensors, whatever the engine made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eoh_esopt.models.vllm import packing
from eoh_esopt.models.vllm.adapters import Adapters, unwrapped
from eoh_esopt.models.vllm.served_weights import ServedWeights
from eoh_esopt.models.vllm.token_gains import TokenGains
from operators.errors import UserError
from operators.records import Direction
from operators.update_fields import update_of

packing.keep_weights()  # this module is imported in the worker before the model is loaded


class EsWorkerExtension:
    """Methods of a vLLM worker. Names begin with `es_` so that none of vLLM's is hidden."""

    model_runner: Any

    def es_open(self, folder: str, scope: str, restore: str, rank: int | None = None) -> dict[str, Any]:
        """Find the weights in scope and make their masters; with a rank, let directions be adapters.

        Returns:
            Facts of this worker, or {"error": text} for what the user can mend.
        """
        try:
            with unwrapped(self.model_runner.model):
                self._es_weights = ServedWeights(self.model_runner.model, Path(folder), scope, restore, rank)
            facts = self._es_weights.facts()
            if rank is not None:
                shapes = {name: facts["shapes"][name] for name in facts["masters"]}
                Adapters(self.model_runner.lora_manager, shapes, rank)
        except UserError as error:
            return {"error": str(error)}
        return facts

    def es_open_rows(self) -> None:
        """Let requests carry directions that scale the gains in scope for their tokens alone. After `es_open`."""
        self._es_rows = TokenGains(self.model_runner, self._es_weights.tensors)

    def es_report_rows(self) -> dict[str, Any]:
        """See `TokenGains.report`."""
        return self._es_rows.report()

    def es_perturb(self, seed: int, sigma: float) -> None:
        """live = cast(true + sigma * eps(seed))."""
        self._es_weights.perturb(Direction(seed, sigma))

    def es_restore(self) -> None:
        """Back to the true weights."""
        self._es_weights.restore()

    def es_update(self, update: Mapping[str, Any]) -> None:
        """Move the true weights by an update, given as its fields."""
        self._es_weights.update(update_of(update))

    def es_dump(self, folder: str) -> None:
        """Write this worker's pieces of the true weights into files that stand in the folder, one a tensor."""
        self._es_weights.dump(Path(folder))
