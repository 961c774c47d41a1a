"""The weights that directions move: perturb, restore, update, checksum.

Restore mode `exact`: the true weights are float32 masters beside the live ones, the live weights are a cast of them,
and a restore casts again, so it is bit-exact and no update is lost to rounding. It costs 4 bytes a weight in scope.
Restore mode `subtract` (the paper's) keeps no master: noise is added to the live weights and subtracted again, which
drifts; `drift()` says by how much, from a float32 shadow of the first elements of every tensor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from eoh_esopt.models import kernels
from eoh_esopt.models.scopes import Scope, gain_offset, scope_parameters, text_parameters
from eoh_esopt.models.spans import Span
from eoh_esopt.models.torch_noise import chunks, piece_noise
from operators.errors import UserError
from operators.noise import normal_table, stream_key
from operators.records import Direction, Update

RESTORE_MODES = ("exact", "subtract")
_SHADOW = 4096  # elements of each tensor that restore mode `subtract` is measured on


@dataclass(frozen=True)
class ScopedTensor:
    """One tensor in scope, or the piece of it that this process holds.

    Attributes:
        name: canonical checkpoint name; the noise is keyed by it.
        module: the module that holds it.
        live: the memory that the model computes with; contiguous.
        master: float32 true weights, flat, on the live tensor's device; None in restore mode `subtract`.
        shadow: float32 true weights of the first elements, in restore mode `subtract` only.
        offset: added to the weight to get the gain that multiplicative noise scales.
        span: where the piece lies in the checkpoint's tensor.
    """

    name: str
    module: nn.Module
    live: torch.Tensor
    master: torch.Tensor | None
    shadow: torch.Tensor | None
    offset: float
    span: Span


def check_restore(restore: str, scope: Scope) -> None:
    """Refuse restore modes that do not exist, or not for the scope.

    Raises:
        UserError: it is none of `RESTORE_MODES`, or `subtract` with multiplicative noise.
    """
    if restore not in RESTORE_MODES:
        raise UserError(f"Unknown restore mode {restore!r}. Choose one of: {', '.join(RESTORE_MODES)}.")
    if restore == "subtract" and scope.multiplicative:
        raise UserError(f"Restore mode 'subtract' does not exist for scope {scope.name!r}: use 'exact'.")


class MovableTensors:
    """Tensors that directions move together, and the direction that is active."""

    def __init__(self, tensors: Sequence[ScopedTensor], scope: Scope) -> None:
        self._scope = scope
        self._active: Direction | None = None
        self.tensors = tuple(tensors)

    @property
    def active(self) -> Direction | None:
        """The direction that the live weights are under; None when they are the true ones."""
        return self._active

    @property
    def elements(self) -> int:
        """Number of weights in scope."""
        return sum(tensor.live.numel() for tensor in self.tensors)

    @property
    def extra_bytes(self) -> int:
        """Memory of the masters or shadows, in bytes, beyond plain inference."""
        copies = (copy for tensor in self.tensors for copy in (tensor.master, tensor.shadow) if copy is not None)
        return sum(copy.numel() * 4 for copy in copies)

    @torch.no_grad()
    def perturb(self, direction: Direction) -> None:
        """live = cast(master + sigma * eps), or cast(master * (1 + sigma * eps)) for multiplicative noise, in place.

        Raises:
            RuntimeError: another direction is active (an error of the caller).
        """
        if self._active is not None:
            raise RuntimeError(f"Direction {self._active.seed} is still active: restore first.")
        self._active = direction
        for tensor in self.tensors:
            if self._scope.multiplicative:
                _scale_by_noise(tensor, direction)
            else:
                _add_noise(tensor, direction.seed, direction.sigma)

    @torch.no_grad()
    def restore(self) -> None:
        """Back to the true weights; nothing happens when no direction is active."""
        if self._active is None:
            return
        for tensor in self.tensors:
            if tensor.master is None:
                _add_noise(tensor, self._active.seed, -self._active.sigma)
            else:
                _cast(tensor)
        self._active = None

    @torch.no_grad()
    def update(self, update: Update) -> None:
        """Move the true weights by an update, and the live ones with them.

        Raises:
            RuntimeError: a direction is active (an error of the caller).
        """
        if self._active is not None:
            raise RuntimeError(f"Direction {self._active.seed} is still active: restore first.")
        for tensor in self.tensors:
            _apply(tensor, update, self._scope.multiplicative)

    def drift(self) -> float:
        """Root mean square of live minus true weights on the shadowed elements; 0 in restore mode `exact`."""
        squares, count = 0.0, 0
        for tensor in self.tensors:
            if tensor.shadow is not None:
                error = _flat(tensor.live)[: tensor.shadow.numel()].to(torch.float64) - tensor.shadow
                squares += float(error.square().sum())
                count += tensor.shadow.numel()
        return float((squares / max(count, 1)) ** 0.5)


class ScopedWeights(MovableTensors):
    """The weights in scope of one model in this process.

    Args:
        names: checkpoint names of the model's parameters, see `eoh_esopt.models.names`; where left out, their own.

    Attributes:
        live: the parameters that the model computes with, in and out of scope, by checkpoint name; tied ones once.

    Raises:
        UserError: unknown restore mode, or weights that cannot be moved.
    """

    def __init__(
        self, model: nn.Module, scope: Scope, restore: str = "exact", names: Mapping[str, str] | None = None
    ) -> None:
        check_restore(restore, scope)
        names = names or {}
        self.live = {names.get(name, name): parameter for name, (_, parameter) in text_parameters(model).items()}
        tensors = [
            ScopedTensor(
                name=names.get(name, name),
                module=module,
                live=parameter,
                master=_float32(_flat(parameter)) if restore == "exact" else None,
                shadow=_float32(_flat(parameter)[:_SHADOW]) if restore == "subtract" else None,
                offset=gain_offset(module) if scope.multiplicative else 0.0,
                span=Span.whole(parameter.numel()),
            )
            for name, (module, parameter) in scope_parameters(model, scope).items()
        ]
        super().__init__(tensors, scope)

    def row_factors(self, tensor: ScopedTensor, directions: list[Direction | None]) -> torch.Tensor:
        """1 + sigma * eps for each row's direction, ones where it has none.

        Returns:
            Shape (rows, elements of the tensor), float32, on the tensor's device.
        """
        factors = np.ones((len(directions), tensor.live.numel()), np.float32)
        for row, direction in zip(factors, directions, strict=True):
            if direction is not None:
                key = np.uint64(stream_key(direction.seed, tensor.name))
                kernels.fill_noise(row, key, *tensor.span.arguments, normal_table())
                row *= np.float32(direction.sigma)
                row += np.float32(1)
        return torch.from_numpy(factors).to(tensor.live.device)

    def checksum(self) -> str:
        """sha256 over the true weights by checkpoint name: float32 masters where there are any, else the live bytes.

        Raises:
            RuntimeError: a direction is active (an error of the caller).
        """
        if self._active is not None:
            raise RuntimeError("The weights are perturbed: restore first.")
        masters = {id(tensor.live): tensor.master for tensor in self.tensors if tensor.master is not None}
        digest = hashlib.sha256()
        for name, parameter in sorted(self.live.items()):
            values = masters.get(id(parameter), parameter.detach())
            digest.update(f"{name} {tuple(parameter.shape)} {values.dtype}\n".encode())
            for start, count in chunks(values.numel()):
                piece = values.reshape(-1)[start : start + count].cpu().contiguous()
                digest.update(piece.view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def snapshot(self) -> dict[str, torch.Tensor]:
        """The true weights in scope as float32 copies of their shapes, for saving."""
        return {
            tensor.name: (tensor.live.detach() if tensor.master is None else tensor.master)
            .to(torch.float32)
            .reshape(tensor.live.shape)
            .clone()
            for tensor in self.tensors
        }


def _float32(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.float32, copy=True).contiguous()


def _flat(parameter: torch.Tensor) -> torch.Tensor:
    return parameter.detach().view(-1)


def _cast(tensor: ScopedTensor) -> None:
    assert tensor.master is not None
    _flat(tensor.live).copy_(tensor.master)


def _on_cpu(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.bfloat16)


def _add_noise(tensor: ScopedTensor, seed: int, sigma: float) -> None:
    """live = cast(source + sigma * eps), where the source is the master, or the live weights without one."""
    live = _flat(tensor.live)
    if _on_cpu(live):
        source = live.to(torch.float32) if tensor.master is None else tensor.master
        key = np.uint64(stream_key(seed, tensor.name))
        perturb = kernels.perturb_float32 if live.dtype == torch.float32 else kernels.perturb_bfloat16
        perturb(_array(live), _array(source), key, np.float32(sigma), *tensor.span.arguments, normal_table())
        return
    scale = float(np.float32(sigma))
    for start, count in chunks(live.numel()):
        piece = live[start : start + count]
        source = piece.to(torch.float32) if tensor.master is None else tensor.master[start : start + count]
        piece.copy_(source + piece_noise(seed, tensor.name, tensor.span, start, count, live.device).mul_(scale))


def _scale_by_noise(tensor: ScopedTensor, direction: Direction) -> None:
    """live = cast((master + offset) * (1 + sigma * eps) - offset). Gains are few: plain arithmetic will do."""
    assert tensor.master is not None
    live = _flat(tensor.live)
    scale = float(np.float32(direction.sigma))
    for start, count in chunks(live.numel()):
        noise = piece_noise(direction.seed, tensor.name, tensor.span, start, count, live.device)
        gains = tensor.master[start : start + count] + tensor.offset
        live[start : start + count].copy_(gains * noise.mul_(scale).add_(1.0) - tensor.offset)


def _apply(tensor: ScopedTensor, update: Update, multiplicative: bool) -> None:
    """Move the true weights (and the shadow); then the live weights follow."""
    live = _flat(tensor.live)
    true_weights = live.to(torch.float32, copy=True) if tensor.master is None else tensor.master
    for values in (true_weights, tensor.shadow):
        if values is not None:
            _add_update(tensor, values, update, multiplicative)
    live.copy_(true_weights)


def _add_update(tensor: ScopedTensor, values: torch.Tensor, update: Update, multiplicative: bool) -> None:
    """values += sum c_i eps_i, or (offset + values) *= 1 + sum c_i eps_i, on the tensor's first elements."""
    coefficients = np.array(update.coefficients, np.float32)
    if tensor.offset:
        values += tensor.offset
    if values.device.type == "cpu":
        keys = np.array([stream_key(seed, tensor.name) for seed in update.seeds], np.uint64)
        kernels.update_float32(
            _array(values), keys, coefficients, multiplicative, *tensor.span.arguments, normal_table()
        )
    else:
        _add_in_torch(tensor, values, update.seeds, coefficients, multiplicative)
    if tensor.offset:
        values -= tensor.offset


def _add_in_torch(
    tensor: ScopedTensor,
    values: torch.Tensor,
    seeds: tuple[int, ...],
    coefficients: NDArray[np.float32],
    multiplicative: bool,
) -> None:
    for start, count in chunks(values.numel()):
        total = torch.zeros(count, dtype=torch.float32, device=values.device)
        for seed, coefficient in zip(seeds, coefficients, strict=True):
            total += piece_noise(seed, tensor.name, tensor.span, start, count, values.device).mul_(float(coefficient))
        piece = values[start : start + count]
        if multiplicative:
            piece.mul_(total.add_(1.0))
        else:
            piece.add_(total)


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    """The tensor's memory as a numpy array: float32, or bfloat16 as its uint16 bits."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.numpy()
