"""What is timed on this machine: a part of the model stands for the whole, whatever is counted as time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook
from transformers import AutoModelForCausalLM, GenerationConfig

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.planning import here
from eoh_esopt.planning.here import Slices
from eoh_esopt.planning.machines import measure_here
from eoh_esopt.planning.plan import make_plan
from eoh_esopt.planning.shapes import ModelShape
from eoh_esopt.planning.workload import Workload

PROMPT, TOKENS = 11, 5


def small(layers: int = 7, *, tied: bool = True) -> ModelShape:
    """A Llama whose weights are counted below."""
    hidden, intermediate, vocabulary = 32, 48, 64
    layer = 32 * 32 * 2 + 32 * 16 * 2 + 3 * hidden * intermediate + 2 * hidden
    parameters = layers * layer + hidden + vocabulary * hidden * (1 if tied else 2)
    gains = (2 * layers + 1) * hidden
    tensors = 9 * layers + (2 if tied else 3)
    return ModelShape(
        "small", parameters, layers, layers, hidden, intermediate, 4, 2, 8, vocabulary, tied, gains, tensors
    )


@dataclass
class Products:
    """A clock that counts the multiplications of linear layers."""

    done: float = 0.0

    def __call__(self) -> float:
        return self.done

    def note(self, module: torch.nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if isinstance(module, torch.nn.Linear):
            self.done += float(inputs[0].numel() * module.out_features)


@pytest.fixture
def products() -> Iterator[Products]:
    clock = Products()
    handle = register_module_forward_hook(clock.note)
    yield clock
    handle.remove()


@pytest.fixture
def thin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of three layers of seven: a layer of `small` is about 30 kB."""
    monkeypatch.setattr(here, "_BEYOND_CACHES", 80e3)


def written(shape: ModelShape, rows: int, clock: Callable[[], float]) -> float:
    """What the whole model takes for a batch of replies."""
    model = AutoModelForCausalLM.from_config(here._llama(shape), dtype=torch.float32)
    tokens = torch.ones((rows, PROMPT), dtype=torch.long)
    config = GenerationConfig(max_new_tokens=TOKENS, do_sample=False, eos_token_id=[1 << 30], pad_token_id=0)
    began = clock()
    model.generate(tokens, attention_mask=torch.ones_like(tokens), generation_config=config)
    return clock() - began


@pytest.mark.usefixtures("thin")
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_few_layers_stand_for_the_whole_model(products: Products, rows: int, tied: bool) -> None:
    """Else embedding, output matrix or layers are counted wrongly, and every prediction is off by that."""
    shape = small(tied=tied)
    slices = Slices(shape, None, torch.float32, "cpu", products)
    assert slices.layers == 3
    found = slices.generation({rows: PROMPT}, None, repeats=1)
    predicted = PROMPT * found.prompt[0] + (TOKENS - 1) * found.step[0]
    assert predicted == pytest.approx(written(shape, rows, products), rel=1e-12)


@pytest.mark.usefixtures("thin")
def test_moving_is_scaled_to_all_weights_in_scope() -> None:
    """Else a few layers' perturbation is taken for the model's."""
    shape, calls = small(), iter(range(10**9))
    slices = Slices(shape, None, torch.bfloat16, "cpu", lambda: float(next(calls)))  # every operation takes a second
    in_slice = small(slices.layers).parameters
    for mode in ("exact", "residual", "subtract"):
        found = slices.moving(get_scope("full"), mode, shape.parameters, repeats=1)
        scale = shape.parameters / in_slice
        assert (found.perturb, found.restore, found.update) == pytest.approx((scale, scale, scale))
        assert found.direction == 0


@pytest.mark.usefixtures("thin")
def test_the_generator_of_the_process_is_left_alone() -> None:
    """Else a plan made before a run changes the run's random numbers."""
    torch.manual_seed(5)
    first = torch.rand(3)
    torch.manual_seed(5)
    Slices(small(), None, torch.float32, "cpu").generation({1: 4}, None, repeats=1)
    assert torch.equal(torch.rand(3), first)


@pytest.mark.usefixtures("thin")
@pytest.mark.parametrize("method", ["esopt-eoh", "esopt-sample"])
@pytest.mark.parametrize(("scope", "noise"), [("full", "full"), ("norms", "full"), ("full", "lowrank")])
def test_every_kind_of_run_is_planned_from_what_was_timed(scope: str, noise: str, method: str) -> None:
    """Else `plan --gpu cpu` breaks off for some scope, or plans a run that takes no time."""
    config = RunConfig(
        "tsp_construct",
        "small",
        scope=scope,
        noise=noise,
        method=method,
        population=3,
        directions=2,
        samples_per_direction=2,
        budget=14,
        sampling=Sampling(max_new_tokens=20),
    )
    load = Workload(config, prompt=8, reply=6.0, evaluation=0.01, workers=1)
    machine = measure_here("cpu", small(), None, load, torch.bfloat16, ["exact"])
    [way] = make_plan(machine, 1, small(), load, 2, ["exact"]).ways
    assert way.fits
    learning = way.batches["i1" if method == "esopt-sample" else "m1"]
    assert learning.write > 0
    assert learning.update > 0
    assert (learning.perturb > 0) == (scope == "full" and noise == "full")
    assert learning.evaluate == pytest.approx(4 * 0.01), "candidates run on the model's own processor"
    [longer] = make_plan(machine, 1, small(), replace(load, reply=12.0), 2, ["exact"]).ways
    assert longer.total.write > way.total.write
