"""The size of a model's weights from its files: those that directions move, and no others."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from eoh_esopt.experiments.weights_rms import weights_rms
from operators.errors import UserError

SHAPES = {
    "model.embed_tokens.weight": (5, 4),
    "model.layers.0.q_proj.weight": (4, 4),
    "model.norm.weight": (4,),
    "lm_head.weight": (5, 4),
    "model.visual.patch.weight": (9, 9),
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> tuple[Path, dict[str, torch.Tensor]]:
    """A folder with a checkpoint of an embedding, a matrix, a norm, an output layer and a vision weight."""
    generator = torch.Generator().manual_seed(0)
    tensors = {name: torch.randn(shape, generator=generator).to(torch.bfloat16) for name, shape in SHAPES.items()}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    return tmp_path, tensors


def rms(*tensors: torch.Tensor) -> float:
    return math.sqrt(float(torch.cat([one.double().flatten() for one in tensors]).square().mean()))


@pytest.mark.parametrize(("lowrank", "names"), [(False, [*SHAPES][:4]), (True, [*SHAPES][1:2])])
def test_only_weights_that_move_count(
    checkpoint: tuple[Path, dict[str, torch.Tensor]], lowrank: bool, names: list[str]
) -> None:
    """Else updates are compared with weights that they never touch."""
    folder, tensors = checkpoint
    moving = [tensors[name] for name in names]
    told: list[tuple[int, int]] = []
    elements = sum(one.numel() for one in moving)
    found = weights_rms(folder, elements, lowrank=lowrank, follow=lambda done, total: told.append((done, total)))
    assert found == pytest.approx(rms(*moving), rel=1e-6)
    assert told == [(number, len(names)) for number in range(1, len(names) + 1)]


def test_the_files_of_another_model_are_refused(checkpoint: tuple[Path, dict[str, torch.Tensor]]) -> None:
    """Else a run's updates are compared with some other model's weights."""
    with pytest.raises(UserError, match=r"hold 60 weights .* moved 61.*--weights"):
        weights_rms(checkpoint[0], 61, lowrank=False, follow=lambda done, total: None)
