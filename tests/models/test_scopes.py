"""Which weights a scope holds: each once, all of them, or a refusal that says what is missing."""

from __future__ import annotations

import pytest
import torch
from tiny_models import FAMILIES, tiny_checkpoint, tiny_module
from torch import nn

from eoh_esopt.models.scopes import SCOPES, gain_offset, get_scope, is_rms_norm, scope_parameters
from operators.errors import UserError

FULL, NORMS = SCOPES["full"], SCOPES["norms"]


@pytest.mark.parametrize("family", FAMILIES)
def test_full_scope_holds_every_weight_once(family: str) -> None:
    """A weight left out is never learnt; one held twice (tied embeddings) is moved twice."""
    model = tiny_checkpoint(family)
    found = scope_parameters(model, FULL)
    assert set(found) == {name for name, _ in model.named_parameters()}
    assert len({id(parameter) for _, parameter in found.values()}) == len(found)
    assert sum(parameter.numel() for _, parameter in found.values()) == sum(p.numel() for p in model.parameters())


def test_tied_embeddings_are_named_by_the_embedding() -> None:
    """The noise is keyed by name: another name for the tied weight would be another direction."""
    model = tiny_checkpoint("qwen2")
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert "model.embed_tokens.weight" in scope_parameters(model, FULL)
    assert "lm_head.weight" not in scope_parameters(model, FULL)
    assert "lm_head.weight" in scope_parameters(tiny_checkpoint("llama"), FULL)


@pytest.mark.parametrize("family", FAMILIES)
def test_norms_scope_holds_every_gain_and_nothing_else(family: str) -> None:
    """A norm that is missed would carry no direction; a bias taken for a gain would be scaled."""
    model = tiny_checkpoint(family)
    expected = {name for name, _ in model.named_parameters() if "norm" in name}
    assert set(scope_parameters(model, NORMS)) == expected
    assert len(expected) >= 5


@pytest.mark.parametrize("family", FAMILIES)
def test_gain_offset_is_found_by_trying(family: str) -> None:
    """A norm around zero scaled as if around one would hardly be perturbed at all, and learn nothing."""
    model = tiny_checkpoint(family)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    for name, (module, _) in scope_parameters(model, NORMS).items():
        centred = family == "qwen3_5" and "linear_attn" not in name
        assert gain_offset(module) == (1.0 if centred else 0.0), name
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


class FailingRMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("cannot run here")


def test_gains_survive_a_norm_that_cannot_be_tried() -> None:
    """Gains left at zero would silence the model."""
    module = FailingRMSNorm()
    with pytest.raises(RuntimeError, match="cannot run here"):
        gain_offset(module)
    assert torch.equal(module.weight, torch.ones(4))


def test_layer_norms_are_no_rms_norms() -> None:
    """A layer with a bias would be scaled in part only."""
    assert is_rms_norm(nn.RMSNorm(4))
    assert not is_rms_norm(nn.LayerNorm(4))
    assert not is_rms_norm(nn.RMSNorm(4, elementwise_affine=False))
    with pytest.raises(UserError, match="--scope full"):
        scope_parameters(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)), NORMS)


def test_unknown_scopes_are_refused_with_the_choices() -> None:
    """A typing error must not fall back to another scope."""
    with pytest.raises(UserError, match="full, norms"):
        get_scope("norm")
    assert get_scope("norms") is NORMS


def quantised(kind: torch.dtype) -> nn.Module:
    """A norm that can be moved beside weights that are packed into a buffer."""
    model = nn.Sequential(nn.RMSNorm(10), nn.Module())
    model[1].register_buffer("packed", torch.zeros(30, dtype=kind))
    return model


@pytest.mark.parametrize("scope", [FULL, NORMS], ids=["full", "norms"])
@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.int32])
def test_quantised_weights_are_refused_with_the_share_covered(kind: torch.dtype, scope: object) -> None:
    """A direction would move the norms only, and the run would report learning all the same."""
    with pytest.raises(UserError, match=r"At most 25\.0% of the weights can be moved.*bfloat16"):
        scope_parameters(quantised(kind), FULL if scope is FULL else NORMS)


def test_int8_parameters_are_refused_by_name() -> None:
    """Quantised weights that are parameters instead of buffers must not slip through."""
    model = tiny_module()
    model.up.weight = nn.Parameter(torch.zeros(33, 65, dtype=torch.int8), requires_grad=False)
    with pytest.raises(UserError, match=r"At most 67\.\d% .*up\.weight cannot"):
        scope_parameters(model, FULL)


def test_empty_and_meta_weights_are_refused_by_name() -> None:
    """Weights that lie elsewhere (off-loaded, sharded) would silently keep their values."""
    model = tiny_module()
    model.up.weight = nn.Parameter(torch.empty(0))
    with pytest.raises(UserError, match=r"At most 99\.9% .*up\.weight cannot"):
        scope_parameters(model, FULL)
    model = tiny_module()
    model.up.to(torch.device("meta"))
    with pytest.raises(UserError, match=r"At most 66\.8% .*up\.weight cannot"):
        scope_parameters(model, FULL)
