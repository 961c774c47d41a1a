"""Canonical names: what a loaded model's parameters are called in the files of its checkpoint.

Noise and checksums are keyed by these, so that a history means the same weights whatever serves the model. Module names
will not do: transformers renames some checkpoints' tensors when it loads them (the text model of a multimodal
checkpoint), and other engines have names of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from eoh_esopt.models.checkpoint import StoredTensor
from eoh_esopt.models.scopes import text_parameters
from operators.errors import UserError

_FLOATS = ("F64", "F32", "BF16", "F16")
_WORKS = "What works: dense models in bfloat16, float16 or float32 whose tensors are loaded as they are stored."


def checkpoint_names(model: Any, folder: Path, stored: Mapping[str, StoredTensor]) -> dict[str, str]:
    """The name in the checkpoint of every parameter of the model (of a multimodal one: of its text model).

    Args:
        model: as transformers loaded it.
        folder: where from; for messages.
        stored: the tensors of the checkpoint.

    Returns:
        Checkpoint names by parameter name; aliases of tied parameters have theirs too, stored or not.

    Raises:
        UserError: a parameter is not stored as one tensor of its shape in floating point; the message names it.
    """
    names = _names_when_saved(model, folder)
    for name, (_, parameter) in text_parameters(model).items():
        tensor = stored.get(names[name])
        if tensor is None:
            raise UserError(
                f"The model in {folder} cannot be loaded: its files lack the tensor {names[name]}. Copy or download "
                "it again."
            )
        if tensor.dtype not in _FLOATS or tensor.shape != tuple(parameter.shape):
            raise UserError(
                f"The model in {folder} cannot be loaded: its files hold {names[name]} as {tensor.dtype} of shape "
                f"{tensor.shape}, the model needs floating-point numbers of shape {tuple(parameter.shape)}. {_WORKS}"
            )
    return names


def _names_when_saved(model: Any, folder: Path) -> dict[str, str]:
    """transformers notes what it renamed while loading, and undoes it when saving: ask it with empty tensors."""
    from transformers.core_model_loading import revert_weight_conversion

    parameters = dict(model.named_parameters(remove_duplicate=False))
    marks = {name: torch.empty_like(parameter, device="meta") for name, parameter in parameters.items()}
    try:
        saved = revert_weight_conversion(model, dict(marks))
    except (ValueError, RuntimeError, KeyError) as error:
        raise _refusal(next(iter(marks)), folder) from error
    found = {id(tensor): name for name, tensor in saved.items()}
    for name, mark in marks.items():
        if id(mark) not in found:
            raise _refusal(name, folder)
    return {name: found[id(mark)] for name, mark in marks.items()}


def _refusal(name: str, folder: Path) -> UserError:
    return UserError(
        f"The model in {folder} cannot be loaded: {name} is joined from several tensors of the checkpoint, or part "
        f"of one, so its noise could not be made again elsewhere. {_WORKS}"
    )
