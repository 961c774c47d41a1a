"""What a vLLM worker does with its weights: perturb, restore, update, tell. Called by name over vLLM's own channel.

vLLM mixes the class below into its worker, so its methods are found by name and take and give plain data. The noise
is that of the checkpoint's tensors, whatever the engine made of them.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import nn

from eoh_esopt.models.checkpoint import StoredTensor, stored_tensors
from eoh_esopt.models.scopes import gain_offset, get_scope
from eoh_esopt.models.spans import Span
from eoh_esopt.models.vllm import packing
from eoh_esopt.models.vllm.layout import Slot, find_slots, uncovered
from eoh_esopt.models.weights import MovableTensors, ScopedTensor, check_restore
from operators.errors import UserError
from operators.records import Direction, Update

packing.keep_weights()  # this module is imported in the worker before the model is loaded


class EsWorkerExtension:
    """Methods of a vLLM worker. Names begin with `es_` so that none of vLLM's is hidden."""

    model_runner: Any

    def es_open(self, folder: str, scope: str, restore: str) -> dict[str, Any]:
        """Find the weights in scope and make their masters.

        Returns:
            Facts of this worker, or {"error": text} for what the user can mend.
        """
        try:
            self._es_weights = ServedWeights(self.model_runner.model, Path(folder), scope, restore)
        except UserError as error:
            return {"error": str(error)}
        return self._es_weights.facts()

    def es_perturb(self, seed: int, sigma: float) -> None:
        """live = cast(true + sigma * eps(seed))."""
        self._es_weights.perturb(Direction(seed, sigma))

    def es_restore(self) -> None:
        """Back to the true weights."""
        self._es_weights.restore()

    def es_update(self, update: Mapping[str, Any]) -> None:
        """Move the true weights by an update, given as its fields."""
        self._es_weights.update(update_of(update))

    def es_drift(self) -> tuple[float, int]:
        """Sum of squared differences between live and true weights, and how many were compared."""
        return self._es_weights.squared_drift()

    def es_dump(self, folder: str) -> None:
        """Write this worker's pieces of the true weights into files that stand in the folder, one a tensor."""
        self._es_weights.dump(Path(folder))


def update_of(fields: Mapping[str, Any]) -> Update:
    """An update from its fields, as a message carries them."""
    sequences = {name: tuple(fields[name]) for name in ("seeds", "rewards", "weights")}
    return Update(step=fields["step"], alpha=fields["alpha"], sigma=fields["sigma"], **sequences)


class ServedWeights:
    """The weights of one worker: which pieces of the checkpoint they are, and those in scope as masters.

    Raises:
        UserError: weights that cannot be moved, or that differ from the checkpoint's.
    """

    def __init__(self, model: nn.Module, folder: Path, scope_name: str, restore: str) -> None:
        scope = get_scope(scope_name)
        check_restore(restore, scope)
        if restore != "exact":
            raise UserError("Restore mode 'subtract' does not exist for served models: use 'exact'.")
        self._model = model
        self._restore = restore
        stored = stored_tensors(folder)
        self._shapes = {name: one.shape for name, one in stored.items() if one.shape}
        text = _text_model(model)
        modules = {id(one): module for module in text.modules() for one in module.parameters(recurse=False)}
        parameters = {name: one for name, one in model.named_parameters() if id(one) in modules}
        _refuse_packed(parameters)
        true = {name: parameter.detach().to(torch.float32, copy=True) for name, parameter in parameters.items()}
        self.slots = _slots(model, parameters, self._shapes, true)
        self._padding = uncovered(parameters, self.slots)
        _check_values(stored, parameters, self.slots)
        _check_padding(self._padding, parameters)
        self._live = {name: parameter.detach().view(-1) for name, parameter in parameters.items()}
        tensors = []
        for slot in self.slots:
            module = modules[id(parameters[slot.parameter])]
            if scope.selects(module):
                offset = gain_offset(module) if scope.multiplicative else 0.0
                tensors.append(self._scoped(slot, module, true, offset))
        if not tensors:
            raise UserError(f"The model has no weights of scope {scope_name!r} (RMSNorm gains). Use --scope full.")
        self._tensors = MovableTensors(tensors, scope)
        packing.pack_again(model)

    def perturb(self, direction: Direction) -> None:
        """See `MovableTensors.perturb`."""
        self._tensors.perturb(direction)
        packing.pack_again(self._model)

    def restore(self) -> None:
        """See `MovableTensors.restore`."""
        if self._tensors.active is not None:
            self._tensors.restore()
            packing.pack_again(self._model)

    def update(self, update: Update) -> None:
        """See `MovableTensors.update`."""
        self._tensors.update(update)
        packing.pack_again(self._model)

    def squared_drift(self) -> tuple[float, int]:
        """0: masters do not drift."""
        return 0.0, 0

    def facts(self) -> dict[str, Any]:
        """Plain data: what is covered, what lies in scope, what it costs."""
        live = next(iter(self._live.values()))
        return {
            "parameters": sum(slot.size for slot in self.slots),
            "scope_elements": self._tensors.elements,
            "extra_bytes": self._tensors.extra_bytes,
            "dtype": str(live.dtype).removeprefix("torch."),
            "device": str(live.device),
            "padding": sum(self._padding.values()),
            "packed": len(packing.packed_modules(self._model)),
            "pieces": [(slot.tensor, *slot.span.arguments, slot.size) for slot in self.slots],
            "shapes": {slot.tensor: list(self._shapes[slot.tensor]) for slot in self.slots},
            "masters": sorted({tensor.name for tensor in self._tensors.tensors}),
        }

    def dump(self, folder: Path) -> None:
        """Write the pieces into the folder's files, which have the tensors' sizes: float32 masters, else live bytes."""
        masters = {(one.name, one.span): one.master for one in self._tensors.tensors}
        for slot in self.slots:
            live = self._live[slot.parameter][slot.start : slot.start + slot.size]
            master = masters.get((slot.tensor, slot.span))
            values = (live if master is None else master).cpu().contiguous()
            _write(folder / file_name(slot.tensor), slot.span, values.view(torch.uint8).numpy(), values.element_size())

    def _scoped(self, slot: Slot, module: nn.Module, true: Mapping[str, torch.Tensor], offset: float) -> ScopedTensor:
        piece = slice(slot.start, slot.start + slot.size)
        master = true[slot.parameter].view(-1)[piece]
        return ScopedTensor(slot.tensor, module, self._live[slot.parameter][piece], master, None, offset, slot.span)


def file_name(tensor: str) -> str:
    """Name of the file that a tensor is dumped to."""
    return hashlib.sha256(tensor.encode()).hexdigest()[:32]


def _text_model(model: Any) -> nn.Module:
    """The part that writes text; of a text model all of it."""
    text: nn.Module = model.get_language_model() if hasattr(model, "get_language_model") else model
    return text


def _slots(
    model: Any, parameters: Mapping[str, nn.Parameter], shapes: Mapping[str, tuple[int, ...]], true: Mapping[str, Any]
) -> list[Slot]:
    """Find the slots; the weights are lost on the way and come back from their copies."""
    tensors = {name: parameter.data for name, parameter in parameters.items()}
    try:
        return find_slots(tensors, model.load_weights, shapes)
    finally:
        for name, tensor in tensors.items():
            tensor.copy_(true[name])


def _refuse_packed(parameters: Mapping[str, nn.Parameter]) -> None:
    for name, parameter in parameters.items():
        unusable = parameter.numel() == 0 or parameter.element_size() < 2 or not parameter.dtype.is_floating_point
        if unusable or not parameter.is_contiguous():
            raise UserError(
                f"The served model's {name} is packed or quantised ({parameter.dtype}, {tuple(parameter.shape)}), so "
                "directions would miss it. Serve the unquantised checkpoint in bfloat16, float16 or float32."
            )


def _check_values(
    stored: Mapping[str, StoredTensor], parameters: Mapping[str, nn.Parameter], slots: list[Slot]
) -> None:
    """Every piece has to hold the checkpoint's numbers: else something computes with others than it shows."""
    for slot in slots:
        live = parameters[slot.parameter].detach().view(-1)[slot.start : slot.start + slot.size]
        with safe_open(stored[slot.tensor].file, framework="pt") as file:
            expected = _piece(file.get_tensor(slot.tensor), slot.span, slot.size)
        if not torch.equal(live, expected.to(device=live.device, dtype=live.dtype)):
            raise UserError(
                f"The served model's {slot.parameter} does not hold the checkpoint's {slot.tensor} as it is, so it "
                "cannot be moved element by element. Use --backend transformers for this architecture."
            )


def _check_padding(padding: Mapping[str, int], parameters: Mapping[str, nn.Parameter]) -> None:
    """Only rows that pad a vocabulary may stay untouched."""
    for name, count in padding.items():
        vocabulary = "embed" in name or "lm_head" in name
        if not vocabulary or count == parameters[name].numel():
            raise UserError(
                f"{count} numbers of the served model's {name} come from no tensor of the checkpoint, so a history "
                "could not be replayed elsewhere. Use --backend transformers for this architecture."
            )


def _piece(values: torch.Tensor, span: Span, size: int) -> torch.Tensor:
    """A span's elements of a whole tensor."""
    flat = values.reshape(-1)
    if span.run >= size:
        return flat[span.first : span.first + size]
    return flat.as_strided((size // span.run, span.run), (span.stride, 1), span.first).reshape(-1)


def _write(path: Path, span: Span, data: Any, width: int) -> None:
    """Put a piece's bytes where they belong in the tensor's file."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        whole = np.frombuffer(memory, np.uint8)
        runs = np.ascontiguousarray(data).reshape(-1, min(span.run * width, data.size))
        for number, run in enumerate(runs):
            at = (span.first + number * span.stride) * width
            whole[at : at + run.size] = run
        del whole
