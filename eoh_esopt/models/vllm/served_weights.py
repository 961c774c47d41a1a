"""The weights that one vLLM worker holds: found by the checkpoint's names, moved in place, packed again, dumped."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import nn

from eoh_esopt.models.checkpoint import stored_tensors
from eoh_esopt.models.lowrank import LowRankPiece
from eoh_esopt.models.scopes import Scope, gain_offset, get_scope, nothing_in
from eoh_esopt.models.spans import Span
from eoh_esopt.models.vllm import packing
from eoh_esopt.models.vllm.layout import Slot, find_slots, uncovered
from eoh_esopt.models.weights import MovableTensors, ScopedTensor, check_restore
from operators.errors import UserError
from operators.records import Direction, Update


@dataclass(frozen=True)
class Group:
    """Tensors that are moved together.

    Attributes:
        tensors: what is moved.
        pack: brings what the engine computes with up to date, after each move.
    """

    tensors: MovableTensors
    pack: Callable[[], None]


class ServedWeights:
    """The weights of one worker: which pieces of the checkpoint they are, and those in scope as masters.

    Layers that compute with a packed copy of their weight and need it for nothing else share one buffer as their live
    weight, and each is a group of its own.

    Raises:
        UserError: weights that cannot be moved, or that differ from the checkpoint's.
    """

    def __init__(self, model: nn.Module, folder: Path, scope_name: str, restore: str, rank: int | None = None) -> None:
        scope = get_scope(scope_name, rank)
        check_restore(restore, scope)
        if restore != "exact":
            raise UserError(f"Restore mode {restore!r} does not exist for served models: use 'exact'.")
        self._stored = stored_tensors(folder)
        self._shapes = {name: one.shape for name, one in self._stored.items() if one.shape}
        modules = _text_modules(model)
        parameters = {name: one for name, one in model.named_parameters() if id(one) in modules}
        _refuse_packed(parameters)
        self.slots = _slots(model, parameters, self._shapes)
        self._padding = uncovered(parameters, self.slots)
        self._check_values(parameters)
        _check_padding(self._padding, parameters)
        self._packed = packing.packed_layers(model)
        self._spare = {f"{name}.weight": layer for name, layer in packing.spare_layers(model).items()}
        self._sizes = {name: parameters[name].shape for name in self._spare}
        self._live = _live_tensors(parameters, self._spare)
        self._groups = self._grouped(parameters, modules, scope)
        for layer in self._spare.values():
            packing.release(layer)
        packing.return_memory()

    @property
    def tensors(self) -> list[ScopedTensor]:
        """The pieces in scope."""
        return [tensor for group in self._groups for tensor in group.tensors.tensors]

    def perturb(self, direction: Direction) -> None:
        """See `MovableTensors.perturb`."""
        for group in self._groups:
            group.tensors.perturb(direction)
            group.pack()

    def restore(self) -> None:
        """See `MovableTensors.restore`."""
        for group in self._groups:
            if group.tensors.active is not None:
                group.tensors.restore()
                group.pack()
        packing.return_memory()

    def update(self, update: Update) -> None:
        """See `MovableTensors.update`."""
        for group in self._groups:
            group.tensors.update(update)
            group.pack()
        packing.return_memory()

    @torch.no_grad()
    def reset(self) -> None:
        """The checkpoint's weights again, as they were loaded."""
        self.restore()
        for group in self._groups:
            for tensor in group.tensors.tensors:
                assert tensor.master is not None
                base = self._base(tensor.name, tensor.span, tensor.live.numel())
                tensor.master.copy_(base.to(tensor.live.dtype))  # masters are made of what was loaded
            group.tensors.perturb(Direction(0, 0.0))
            group.tensors.restore()  # casts the masters
            group.pack()

    @torch.no_grad()
    def give_back(self) -> None:
        """Make the model's own weights whole again, of the checkpoint's values, so that they can be opened anew."""
        self.reset()
        for name, layer in self._spare.items():
            layer.weight.data = self._live[name].new_empty(self._sizes[name])
            for slot in self.slots:
                if slot.parameter == name:
                    values = self._base(slot.tensor, slot.span, slot.size)
                    layer.weight.data.view(-1)[slot.start : slot.start + slot.size].copy_(values)

    def facts(self) -> dict[str, Any]:
        """Plain data: what is covered, what lies in scope, what it costs."""
        live = next(iter(self._live.values()))
        moved = [group.tensors for group in self._groups]
        return {
            "parameters": sum(slot.size for slot in self.slots),
            "scope_elements": sum(one.elements for one in moved),
            "extra_bytes": sum(one.extra_bytes for one in moved),
            "dtype": str(live.dtype).removeprefix("torch."),
            "device": str(live.device),
            "padding": sum(self._padding.values()),
            "packed": len(self._packed),
            "pieces": [(slot.tensor, *slot.span.arguments, slot.size) for slot in self.slots],
            "shapes": {slot.tensor: list(self._shapes[slot.tensor]) for slot in self.slots},
            "masters": sorted({tensor.name for one in moved for tensor in one.tensors}),
        }

    def dump(self, folder: Path) -> None:
        """Write the pieces into the folder's files, which have the tensors' sizes: float32 masters, else live bytes."""
        masters = {(one.name, one.span): one.master for group in self._groups for one in group.tensors.tensors}
        for slot in self.slots:
            values = masters.get((slot.tensor, slot.span))
            if values is None:
                values = self._unmoved(slot)
            values = values.cpu().contiguous()
            _write(folder / file_name(slot.tensor), slot.span, values.view(torch.uint8).numpy(), values.element_size())

    def _unmoved(self, slot: Slot) -> torch.Tensor:
        """A piece out of scope, in the live dtype."""
        live = self._live[slot.parameter]
        if slot.parameter in self._spare:
            return self._base(slot.tensor, slot.span, slot.size).to(live.dtype)
        return live[slot.start : slot.start + slot.size]

    def _base(self, tensor: str, span: Span, size: int) -> torch.Tensor:
        """A span's elements as the checkpoint has them."""
        with safe_open(self._stored[tensor].file, framework="pt") as file:
            return _piece(file.get_tensor(tensor), span, size)

    def _check_values(self, parameters: Mapping[str, nn.Parameter]) -> None:
        """Every piece has to hold the checkpoint's numbers: else something computes with others than it shows."""
        for slot in self.slots:
            live = parameters[slot.parameter].detach().view(-1)[slot.start : slot.start + slot.size]
            expected = self._base(slot.tensor, slot.span, slot.size)
            if not torch.equal(live, expected.to(device=live.device, dtype=live.dtype)):
                raise UserError(
                    f"The served model's {slot.parameter} does not hold the checkpoint's {slot.tensor} as it is, so it "
                    "cannot be moved element by element. Use --backend transformers for this architecture."
                )

    def _grouped(
        self, parameters: Mapping[str, nn.Parameter], modules: Mapping[int, nn.Module], scope: Scope
    ) -> list[Group]:
        """One group of everything that keeps its live weights, and one for each layer that does not."""
        found: dict[str, list[ScopedTensor]] = {}
        for slot in self.slots:
            module = modules[id(parameters[slot.parameter])]
            shape = self._shapes[slot.tensor]
            if scope.holds(module, shape):
                piece = slice(slot.start, slot.start + slot.size)
                master = parameters[slot.parameter].detach().view(-1)[piece].to(torch.float32, copy=True)
                live = self._live[slot.parameter][piece]
                offset = gain_offset(module) if scope.multiplicative else 0.0
                lowrank = scope.rank and LowRankPiece.of(slot.tensor, slot.span, slot.size, shape[-1], scope.rank)
                spare = slot.parameter in self._spare
                tensor = ScopedTensor(
                    slot.tensor, module, live, master, None, offset, slot.span, lowrank or None, spare
                )
                found.setdefault(slot.parameter if spare else "", []).append(tensor)
        if not found:
            raise nothing_in(scope)
        return [Group(MovableTensors(tensors, scope), self._packing(name)) for name, tensors in found.items()]

    def _packing(self, name: str) -> Callable[[], None]:
        if name in self._spare:
            return partial(packing.pack, self._spare[name], self._live[name].view(self._sizes[name]))
        kept = [layer for one, layer in self._packed.items() if f"{one}.weight" not in self._spare]

        def pack_all() -> None:
            for layer in kept:
                packing.pack(layer)

        return pack_all


def file_name(tensor: str) -> str:
    """Name of the file that a tensor is dumped to."""
    return hashlib.sha256(tensor.encode()).hexdigest()[:32]


def _text_modules(model: Any) -> dict[int, nn.Module]:
    """The modules of the part that writes text (of a text model all of it), by the id of each of their parameters."""
    text: nn.Module = model.get_language_model() if hasattr(model, "get_language_model") else model
    return {id(one): module for module in text.modules() for one in module.parameters(recurse=False)}


def _live_tensors(parameters: Mapping[str, nn.Parameter], spare: Iterable[str]) -> dict[str, torch.Tensor]:
    """What is moved, flat, by parameter: its own memory, or for spare layers a buffer that they share."""
    shared = [parameters[name] for name in spare]
    sizes = {one.dtype: max(other.numel() for other in shared if other.dtype == one.dtype) for one in shared}
    buffers = {dtype: torch.empty(size, dtype=dtype) for dtype, size in sizes.items()}
    live = {name: parameter.detach().view(-1) for name, parameter in parameters.items()}
    return live | {name: buffers[parameters[name].dtype][: parameters[name].numel()] for name in spare}


def _slots(model: Any, parameters: Mapping[str, nn.Parameter], shapes: Mapping[str, tuple[int, ...]]) -> list[Slot]:
    """Find the slots; the weights are lost on the way and come back from copies in the host's memory."""
    tensors = {name: parameter.data for name, parameter in parameters.items()}
    true = {name: tensor.to("cpu", copy=True) for name, tensor in tensors.items()}
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
