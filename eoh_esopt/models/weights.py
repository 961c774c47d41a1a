"""The weights that directions move: perturb, restore, update, checksum.

Restore modes say what stands for the true weights. `exact`: float32 masters beside the live weights. `residual`: 16
more bits beside each bfloat16 weight. `host`: float32 masters in the host's memory. In these three the true weights are
the same float32 numbers and the live weights are a cast of them, so restores are bit-exact and no update is lost to
rounding. `subtract` (the paper's) keeps no true weights: noise is added to the live weights and subtracted again, which
drifts; `drift()` says by how much, from a float32 shadow of the first elements of every tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from eoh_esopt.models import kernels
from eoh_esopt.models.digest import digest
from eoh_esopt.models.lowrank import LowRankPiece
from eoh_esopt.models.precision import host, streaming, subtracted
from eoh_esopt.models.precision.exact import ExactWeights
from eoh_esopt.models.precision.host import HostWeights
from eoh_esopt.models.precision.piece import Piece
from eoh_esopt.models.precision.protocol import TrueWeights
from eoh_esopt.models.precision.residual import residual_weights
from eoh_esopt.models.precision.subtracted import SubtractedWeights
from eoh_esopt.models.scopes import Scope, gain_offset, scope_parameters, text_parameters
from eoh_esopt.models.spans import Span
from operators.errors import UserError
from operators.noise import normal_table, stream_key
from operators.records import Direction, Update

RESTORE_MODES = ("exact", "residual", "host", "subtract")


@dataclass(frozen=True)
class ScopedTensor:
    """One tensor in scope, or the piece of it that this process holds.

    Attributes:
        name: canonical checkpoint name; the noise is keyed by it.
        module: the module that holds it.
        live: the memory that the model computes with; contiguous.
        master: float32 true weights, flat, in restore mode `exact` on the live tensor's device, in `host` in the host's
            memory; None in the others.
        shadow: float32 true weights of the first elements, in restore mode `subtract` only.
        offset: added to the weight to get the gain that multiplicative noise scales.
        span: where the piece lies in the checkpoint's tensor.
        lowrank: where its noise is of low rank, what it is made of.
        buffer: the live memory is a buffer that holds the weights only while they are moved.
    """

    name: str
    module: nn.Module
    live: torch.Tensor
    master: torch.Tensor | None
    shadow: torch.Tensor | None
    offset: float
    span: Span
    lowrank: LowRankPiece | None = None
    buffer: bool = False

    def row_factors(self, directions: Sequence[Direction | None]) -> torch.Tensor:
        """1 + sigma * eps for each row's direction, ones where it has none.

        Returns:
            Shape (rows, elements of the tensor), float32, on the tensor's device.
        """
        factors = np.ones((len(directions), self.live.numel()), np.float32)
        for row, direction in zip(factors, directions, strict=True):
            if direction is not None:
                key = np.uint64(stream_key(direction.seed, self.name))
                kernels.fill_noise(row, key, *self.span.arguments, normal_table())
                row *= np.float32(direction.sigma)
                row += np.float32(1)
        return torch.from_numpy(factors).to(self.live.device)


def check_restore(restore: str, scope: Scope) -> None:
    """Refuse restore modes that do not exist, or not for the scope.

    Raises:
        UserError: it is none of `RESTORE_MODES`, `residual` with multiplicative noise, or `subtract` with noise by row.
    """
    if restore not in RESTORE_MODES:
        raise UserError(f"Unknown restore mode {restore!r}. Choose one of: {', '.join(RESTORE_MODES)}.")
    if (restore == "residual" and scope.multiplicative) or (restore == "subtract" and scope.per_row):
        what = f"scope {scope.name!r}" if scope.rank is None else "low-rank noise"
        raise UserError(f"Restore mode {restore!r} does not exist for {what}: use 'exact'.")


def drifts(restore: str) -> bool:
    """Whether live weights drift away from the true ones under a restore mode."""
    return restore == "subtract"


class MovableTensors:
    """Tensors that directions move together, and the direction that is active.

    Raises:
        UserError: the restore mode is `residual` and a tensor is not bfloat16.
    """

    def __init__(self, tensors: Sequence[ScopedTensor], scope: Scope, restore: str = "exact") -> None:
        self._active: Direction | None = None
        self.tensors = tuple(tensors)
        self._true = _true_weights(self.tensors, scope, restore)

    @property
    def active(self) -> Direction | None:
        """The direction that the live weights are under; None when they are the true ones."""
        return self._active

    @property
    def elements(self) -> int:
        """Number of weights in scope."""
        return sum(tensor.live.numel() for tensor in self.tensors)

    @property
    def device_bytes(self) -> int:
        """Memory on the live weights' device, in bytes, beyond plain inference."""
        return sum(true.device_bytes for true in self._true)

    @property
    def host_bytes(self) -> int:
        """Memory of the host, in bytes, beyond plain inference and beyond the device's, where that is another one."""
        return sum(true.host_bytes for true in self._true)

    @property
    def extra_bytes(self) -> int:
        """Memory on device and host, in bytes, beyond plain inference."""
        return self.device_bytes + self.host_bytes

    @torch.no_grad()
    def perturb(self, direction: Direction) -> None:
        """live = cast(true + sigma * eps), or cast(true * (1 + sigma * eps)) for multiplicative noise, in place.

        Raises:
            RuntimeError: another direction is active (an error of the caller).
        """
        self._check_restored()
        self._active = direction
        for true in self._true:
            true.perturb(direction)

    @torch.no_grad()
    def restore(self) -> None:
        """Back to the true weights; nothing happens when no direction is active."""
        if self._active is None:
            return
        for true in self._true:
            true.restore(self._active)
        self._active = None

    @torch.no_grad()
    def update(self, update: Update) -> None:
        """Move the true weights by an update, and the live ones with them.

        Raises:
            RuntimeError: a direction is active (an error of the caller).
        """
        self._check_restored()
        for true in self._true:
            true.update(update)

    def drift(self) -> float:
        """Root mean square of live minus true weights on the shadowed elements; 0 unless the restore mode drifts."""
        errors = [true.squared_drift() for true in self._true if isinstance(true, SubtractedWeights)]
        squares, count = sum(one for one, _ in errors), sum(number for _, number in errors)
        return float((squares / max(count, 1)) ** 0.5)

    def _check_restored(self) -> None:
        if self._active is not None:
            raise RuntimeError(f"The weights are under direction {self._active.seed}: restore first.")


class ScopedWeights(MovableTensors):
    """The weights in scope of one model in this process.

    Args:
        names: checkpoint names of the model's parameters, see `eoh_esopt.models.names`; where left out, their own.

    Attributes:
        live: the parameters that the model computes with, in and out of scope, by checkpoint name; tied ones once.

    Raises:
        UserError: unknown restore mode, one that the scope or the weights' dtype does not have, or weights that cannot
            be moved.
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
                master=_master(parameter, restore),
                shadow=_float32(_flat(parameter)[: subtracted.SHADOWED]) if restore == "subtract" else None,
                offset=gain_offset(module) if scope.multiplicative else 0.0,
                span=Span.whole(parameter.numel()),
                lowrank=_lowrank(names.get(name, name), parameter, scope),
            )
            for name, (module, parameter) in scope_parameters(model, scope).items()
        ]
        super().__init__(tensors, scope, restore)

    @torch.no_grad()
    def checksum(self) -> str:
        """sha256 over the true weights by checkpoint name: float32 where the restore mode keeps them so, else live.

        Raises:
            RuntimeError: a direction is active (an error of the caller).
        """
        self._check_restored()
        true = {id(tensor.live): true for tensor, true in zip(self.tensors, self._true, strict=True)}
        return digest(
            (name, live.shape, true[id(live)].values() if id(live) in true else live.detach())
            for name, live in sorted(self.live.items())
        )

    @torch.no_grad()
    def snapshot(self) -> dict[str, torch.Tensor]:
        """The true weights in scope as float32 copies of their shapes in the host's memory, for saving.

        Raises:
            RuntimeError: a direction is active (an error of the caller).
        """
        self._check_restored()
        return {
            tensor.name: _gathered(true, tensor.live.numel()).view(tensor.live.shape)
            for tensor, true in zip(self.tensors, self._true, strict=True)
        }


def _true_weights(tensors: Sequence[ScopedTensor], scope: Scope, restore: str) -> Sequence[TrueWeights]:
    pieces = [
        Piece(one.name, _flat(one.live), one.span, one.offset, scope.multiplicative, one.lowrank) for one in tensors
    ]
    if restore == "residual":
        return residual_weights(pieces)
    return [_kept(restore, piece, tensor) for piece, tensor in zip(pieces, tensors, strict=True)]


def _kept(restore: str, piece: Piece, tensor: ScopedTensor) -> TrueWeights:
    """The true weights of one piece, in the modes that keep float32 numbers."""
    if restore == "subtract":
        assert tensor.shadow is not None
        return SubtractedWeights(piece, tensor.shadow)
    assert tensor.master is not None
    return HostWeights(piece, tensor.master) if restore == "host" else ExactWeights(piece, tensor.master, tensor.buffer)


def _master(live: torch.Tensor, restore: str) -> torch.Tensor | None:
    if restore == "host":
        return streaming.host_copy(_flat(live), host.LIMIT)
    return _float32(_flat(live)) if restore == "exact" else None


def _gathered(true: TrueWeights, size: int) -> torch.Tensor:
    """All values, shape (size,), float32, in the host's memory."""
    gathered = torch.empty(size, dtype=torch.float32)
    start = 0
    for chunk in true.values():
        gathered[start : start + chunk.numel()] = chunk
        start += chunk.numel()
    return gathered


def _lowrank(name: str, parameter: torch.Tensor, scope: Scope) -> LowRankPiece | None:
    if scope.rank is None:
        return None
    return LowRankPiece.of(name, Span.whole(parameter.numel()), parameter.numel(), parameter.shape[1], scope.rank)


def _float32(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.float32, copy=True).contiguous()


def _flat(parameter: torch.Tensor) -> torch.Tensor:
    return parameter.detach().view(-1)
