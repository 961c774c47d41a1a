"""Parameter scopes: which weights a direction moves, and how.

`full` is the paper's: every weight, additive noise, one direction at a time in place.
`norms` moves the gains of the RMSNorm layers only, by multiplicative noise g * (1 + sigma * eps). A gain scales its
layer's output, so every row of a batch can carry its own direction and nothing is written to the weights.

With low-rank noise `full` means the matrices of the linear layers, which is nearly everything between the embedding and
the output layer. Embeddings, the output layer, norms, biases and convolutions are left out: a row's own noise of them
could not be had by products of two thin factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from operators.errors import UserError


@dataclass(frozen=True)
class Scope:
    """Which tensors a direction moves, and how.

    Attributes:
        name: as on the command line and in histories.
        multiplicative: noise scales the weights instead of being added to them.
        per_row: every row of a batch can carry its own direction.
        selects: whether the scope holds a parameter of this module.
        sigma: default size of the perturbation at the beginning and at the end of a search.
        alpha: default learning rate.
        rank: of the noise of each matrix, see `operators.lowrank`; None for noise of full rank.
    """

    name: str
    multiplicative: bool
    per_row: bool
    selects: Callable[[nn.Module], bool]
    sigma: tuple[float, float]
    alpha: float
    rank: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What histories and reports state of it: its name, the kind of noise (one of `NOISES`), and the rank."""
        noise = {"noise": "full"} if self.rank is None else {"noise": "lowrank", "rank": self.rank}
        return {"scope": self.name, **noise}

    def holds(self, module: nn.Module, shape: Sequence[int]) -> bool:
        """Whether a module's tensor of this shape is in scope. Low-rank noise is for matrices."""
        return self.selects(module) and (self.rank is None or len(shape) == 2)


def is_rms_norm(module: nn.Module) -> bool:
    """Whether the module is an RMSNorm: a vector of gains and no bias."""
    weight = getattr(module, "weight", None)
    named = "rmsnorm" in type(module).__name__.lower()
    return named and isinstance(weight, nn.Parameter) and weight.ndim == 1 and getattr(module, "bias", None) is None


def is_linear(module: nn.Module) -> bool:
    """Whether the module is a linear layer, torch's or vLLM's. torch's output layers are such too."""
    return isinstance(module, nn.Linear) or any(kind.__name__ == "LinearBase" for kind in type(module).__mro__)


NOISES = ("full", "lowrank")
SCOPES = {
    "full": Scope("full", False, False, lambda module: True, (1e-3, 0.0), 5e-4),
    "norms": Scope("norms", True, True, is_rms_norm, (0.06, 0.02), 0.03),
}


def get_scope(name: str, rank: int | None = None) -> Scope:
    """The scope of that name.

    Args:
        name: one of `SCOPES`.
        rank: of low-rank noise; None for noise of full rank.

    Raises:
        UserError: there is none, or it has no low-rank noise.
    """
    if name not in SCOPES:
        raise UserError(f"Unknown scope {name!r}. Choose one of: {', '.join(SCOPES)}.")
    scope = SCOPES[name]
    if rank is None:
        return scope
    if scope.multiplicative:
        raise UserError(f"There is no low-rank noise for scope {name!r}, which has no matrices. Use --scope full.")
    return replace(scope, per_row=True, selects=is_linear, rank=rank)


def scope_parameters(model: nn.Module, scope: Scope) -> dict[str, tuple[nn.Module, nn.Parameter]]:
    """The scope's parameters by their name in the model, tied ones once, with the module that holds each.

    Raises:
        UserError: weights that the scope must move cannot be reached or are quantised, or there are none.
    """
    parameters = text_parameters(model)
    found = {name: (module, one) for name, (module, one) in parameters.items() if scope.holds(module, one.shape)}
    if scope.rank is not None:
        found = {name: held for name, held in found.items() if held[0] is not _output_layer(model)}
    if not found:
        raise nothing_in(scope)
    _refuse_unreachable(model, found)
    return found


def nothing_in(scope: Scope) -> UserError:
    """The error for models that have no weights of a scope."""
    if scope.rank is not None:
        return UserError("The model has no linear layers, so there is nothing for low-rank noise. Use --noise full.")
    return UserError(f"The model has no weights of scope {scope.name!r} (RMSNorm gains). Use --scope full.")


def text_parameters(model: nn.Module) -> dict[str, tuple[nn.Module, nn.Parameter]]:
    """The parameters of the model, of a multimodal one those of its text model; tied ones once, by their first name."""
    inside = _text_modules(model)
    found: dict[str, tuple[nn.Module, nn.Parameter]] = {}
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        if inside is not None and id(module) not in inside:
            continue
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                found[f"{prefix}.{name}" if prefix else name] = (module, parameter)
    return found


def _output_layer(model: Any) -> nn.Module | None:
    """The layer that gives the logits, of models that know theirs."""
    output: nn.Module | None = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    return output


def _text_modules(model: Any) -> set[int] | None:
    """The modules of a multimodal model that write text: embedding, decoder, output; None where that is all of it."""
    config = getattr(model, "config", None)
    if config is None or config.get_text_config() is config:
        return None
    parts = (model.get_input_embeddings(), model.get_decoder(), model.get_output_embeddings())
    return {id(module) for part in parts for module in part.modules()}


def _refuse_unreachable(model: nn.Module, found: dict[str, tuple[nn.Module, nn.Parameter]]) -> None:
    """Quantised, packed and off-loaded weights would make a direction move a part of the model without a word."""
    bad = [
        name
        for name, (_, parameter) in found.items()
        if parameter.is_meta or parameter.numel() == 0 or not parameter.dtype.is_floating_point or _is_narrow(parameter)
    ]
    weights = sum(parameter.numel() for parameter in model.parameters() if _is_movable(parameter))
    hidden = sum(tensor.numel() for tensor in model.parameters() if not _is_movable(tensor))
    hidden += sum(
        buffer.numel() for buffer in model.buffers() if buffer.dtype in (torch.int8, torch.uint8, torch.int32)
    )
    covered = weights / max(weights + hidden, 1)
    if bad or covered < 0.999:
        example = f" ({bad[0]} cannot)" if bad else ""
        raise UserError(
            f"At most {min(covered, 0.999):.1%} of the weights can be moved{example}: the others are quantised, packed "
            "or off-loaded. Use the unquantised checkpoint in bfloat16, float16 or float32, wholly in memory."
        )


def _is_narrow(parameter: nn.Parameter) -> bool:
    return parameter.element_size() < 2


def _is_movable(parameter: nn.Parameter) -> bool:
    return parameter.dtype.is_floating_point and not _is_narrow(parameter) and not parameter.is_meta


def gain_offset(module: nn.Module) -> float:
    """1 for norms that scale by 1 + weight (zero-centred gains), 0 for those that scale by the weight itself."""
    weight = module.weight
    assert isinstance(weight, nn.Parameter)
    kept = weight.detach().clone()
    with torch.no_grad():
        try:
            weight.zero_()
            output = _probe(module, weight)
        finally:
            weight.copy_(kept)
    return 1.0 if bool(output.abs().max() > 0) else 0.0


def _probe(module: nn.Module, weight: nn.Parameter) -> torch.Tensor:
    ones = torch.ones(1, 1, weight.numel(), dtype=weight.dtype, device=weight.device)
    try:
        return torch.as_tensor(module(ones))
    except TypeError:  # gated norms also take the gate
        return torch.as_tensor(module(ones, ones))
