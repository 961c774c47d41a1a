"""The arithmetic of plans: what must hold for every run, and one published measurement."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.planning.cards import CARDS, find_card
from eoh_esopt.planning.machines import CardMachine
from eoh_esopt.planning.memory import memory
from eoh_esopt.planning.plan import Moved, Plan, for_vllm, make_plan, restore_modes, scope_of
from eoh_esopt.planning.shapes import KNOWN, find_shape
from eoh_esopt.planning.speeds import CardSpeeds
from eoh_esopt.planning.workload import Seconds, Team, Workload, batch_seconds
from operators.errors import UserError

LLAMA = find_shape("Llama-3.1-8B-Instruct", None)
CARD_NAMES = [card.name for card in CARDS]


def workload(**changes: object) -> Workload:
    """A search of 1000 candidates."""
    sampling = Sampling(max_new_tokens=512)
    config = RunConfig("tsp_construct", "m", **{"sampling": sampling, **changes})  # type: ignore[arg-type]
    return Workload(config, prompt=350, reply=250.0, evaluation=0.1, workers=8)


def planned(gpu: str, *, count: int = 1, load: Workload | None = None, model: str = "Llama-3.1-8B-Instruct") -> Plan:
    """The plan of a search on cards, all restore modes."""
    load = load or workload()
    shape, scope = find_shape(model, None), scope_of(load)
    machine = CardMachine(find_card(gpu), shape, Moved.of(shape, scope), 2)
    return make_plan(machine, count, shape, load, 2, restore_modes("all", scope, "bfloat16"))


def speeds(card: str, **changes: object) -> CardSpeeds:
    """Llama 3.1 8B under vLLM."""
    plain = CardSpeeds(find_card(card), LLAMA, "vllm", "exact", LLAMA.parameters, LLAMA.tensors, 2)
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_one_published_measurement_is_met() -> None:
    """Else the stated shares of bandwidth have nothing to do with cards: about 75 tokens a second were measured on an
    A100 with 40 GB (vLLM 0.23, bfloat16, one request of 1,024 tokens at a time, replies of 128)."""
    assert 1 / speeds("A100-40").step(1, 1024 + 64) == pytest.approx(75, rel=0.1)


@given(
    budget=st.integers(30, 3000),
    population=st.integers(2, 20),
    directions=st.integers(2, 30),
    method=st.sampled_from(["eoh", "esopt-eoh", "sample", "esopt-sample"]),
)
def test_a_plan_writes_what_a_run_writes(budget: int, population: int, directions: int, method: str) -> None:
    """Else the whole run is planned for another number of candidates than its budget."""
    load = workload(budget=budget, population=population, directions=directions, method=method)
    batches = list(load.batches())
    start = 0 if load.config.samples else population
    assert sum(count for _, count in batches) == budget + start
    assert [name for name, _ in batches[:3]] == (["i1"] * 3 if load.config.samples else ["i1", "e1", "e2"])[
        : len(batches)
    ]
    learning = [name for name, _ in batches[1:] if load.learns(name)]
    assert set(learning) <= ({"i1"} if load.config.samples else {"m1", "m2"})
    assert bool(learning) <= load.config.learns


@given(reply=st.floats(1, 600), rows=st.integers(1, 200))
def test_a_batch_waits_for_its_longest_reply(reply: float, rows: int) -> None:
    """Else the replies of a batch are planned as short as their mean, or longer than they can be."""
    load = replace(workload(), reply=reply)
    assert load.longest(1) == pytest.approx(min(reply, 512))
    assert load.longest(rows) <= load.longest(rows + 1) <= 512 * (1 + 1e-9)


@pytest.mark.parametrize("mean", [60, 300, 2000])
def test_the_longest_reply_is_that_of_replies_cut_at_the_limit(mean: float) -> None:
    """Else a whole batch is planned as long as the limit, though most batches end before it."""
    lengths = np.minimum(np.random.default_rng(1).exponential(mean, (20_000, 6)), 512)
    load = replace(workload(), reply=float(lengths.mean()))
    assert load.longest(6) == pytest.approx(lengths.max(axis=1).mean(), rel=0.01)


@given(
    count=st.integers(1, 60),
    samples=st.integers(1, 5),
    replicas=st.integers(1, 8),
    in_place=st.booleans(),
    card=st.sampled_from(CARD_NAMES),
)
def test_the_seconds_of_a_batch_make_sense(count: int, samples: int, replicas: int, in_place: bool, card: str) -> None:
    """Else a plan counts something twice, or more servers make a run slower."""
    load = workload(samples_per_direction=samples)
    team = Team(speeds(card), speeds(card), in_place, replicas, overlaps=True)
    alone = batch_seconds(load, "m1", count, replace(team, replicas=1, overlaps=False))
    found = batch_seconds(load, "m1", count, team)
    directions = -(-count // samples)
    assert all(one >= 0 for one in vars(found).values())
    assert found.evaluate <= alone.evaluate == pytest.approx(count * 0.1 / 8)
    assert found.total <= alone.total + 1e-9
    assert found.update == speeds(card).update(directions)
    if in_place:
        assert alone.perturb == pytest.approx(directions * speeds(card).perturb())
        assert found.perturb >= alone.perturb / replicas - 1e-9
    else:
        assert (found.perturb, found.restore) == (0, 0)
    plain = batch_seconds(load, "e1", count, team)
    assert (plain.perturb, plain.restore, plain.update) == (0, 0, 0)


@pytest.mark.parametrize("gpu", CARD_NAMES)
@pytest.mark.parametrize("model", ["SmolLM2-135M-Instruct", "Llama-3.1-8B-Instruct", "Qwen3.5-27B"])
def test_the_best_way_is_exact_and_has_room(gpu: str, model: str) -> None:
    """Else a user rents a card on which the run ends for lack of memory, or whose weights drift without need."""
    plan = planned(gpu, model=model)
    fitting = [way for way in plan.ways if way.fits]
    assert all(way.memory.device <= way.room for way in fitting)
    assert all(way.memory.device > way.room for way in plan.ways if not way.fits)
    if plan.best is None:
        assert not fitting
    else:
        exact = [way for way in fitting if way.restore != "subtract"]
        assert plan.best in (exact or fitting)
        assert plan.best.total.total == min(way.total.total for way in (exact or fitting))


def test_modes_trade_memory_as_documented() -> None:
    """Else the plan contradicts the table of restore modes."""
    by_mode = {way.restore: way for way in planned("H200").ways if way.backend == "transformers"}
    assert by_mode["exact"].memory.masters == 4 * LLAMA.parameters
    assert 2 * LLAMA.parameters < by_mode["residual"].memory.masters < 2.1 * LLAMA.parameters
    assert by_mode["host"].memory.masters < 2**26
    assert by_mode["host"].memory.host == 4 * LLAMA.parameters
    assert by_mode["subtract"].memory.masters == 0
    times = {mode: by_mode[mode].total.total for mode in by_mode}
    assert min(times, key=times.__getitem__) == "exact"


def test_the_total_is_the_sum_of_the_batches() -> None:
    """Else the last line does not follow from the table above it."""
    load = workload(budget=80)
    way = planned("H100", load=load).ways[0]
    names = [name for name, _ in load.batches()]
    assert way.total.total == pytest.approx(sum(way.batches[name].total for name in names))
    assert Seconds(1, 2, 3, 4, 5) + Seconds(1, 1, 1, 1, 1) == Seconds(2, 3, 4, 5, 6)


def test_more_cards_are_used_where_one_has_no_room() -> None:
    """Else four cards are planned as one."""
    one, two, eight = (planned("A100-40", count=count).ways[0] for count in (1, 2, 8))
    assert (one.fits, two.fits) == (False, True)
    assert (two.replicas, two.cards) == (1, 2)
    assert (eight.replicas, eight.cards) == (4, 2)
    assert eight.total.total < two.total.total


def test_what_vllm_would_need_is_said() -> None:
    """Else a user stays with the slow backend for want of one card."""
    load = workload()
    machine = CardMachine(find_card("A100-40"), LLAMA, Moved.of(LLAMA, scope_of(load)), 2)
    more = for_vllm(machine, 1, LLAMA, load, 2)
    assert more is not None
    assert more.gpus == 2
    huge = find_shape("Llama-3.1-70B-Instruct", None)
    small = CardMachine(find_card("RTX 3090"), huge, Moved.of(huge, scope_of(load)), 2)
    assert for_vllm(small, 1, huge, load, 2) is None


@pytest.mark.parametrize("shape", KNOWN, ids=lambda shape: shape.name)
def test_scopes_move_the_weights_that_they_name(shape: object) -> None:
    """Else scope `norms` is planned with masters of the whole model, or low-rank noise with those of the embedding."""
    assert isinstance(shape, type(LLAMA))
    full, norms, lowrank = (Moved.of(shape, get_scope(*one)) for one in (("full",), ("norms",), ("full", 1)))
    assert full.weights == shape.parameters
    assert norms.weights == shape.gains < shape.parameters / 1000
    assert 0 < lowrank.weights < shape.parameters - shape.vocabulary * shape.hidden
    assert 0 < lowrank.tensors < full.tensors


def test_rows_with_directions_of_their_own_are_written_at_once() -> None:
    """Else low-rank noise is planned as slow as one direction at a time."""
    full, lowrank = (planned("H100", load=workload(noise=noise)).ways[0] for noise in ("full", "lowrank"))
    assert lowrank.batches["m1"].perturb == 0
    assert lowrank.batches["m1"].total < full.batches["m1"].total / 2


def test_more_samples_for_a_direction_cost_less_than_more_directions() -> None:
    """Else the plan hides what a batch is for: the weights are read once for all its rows."""
    wide = planned("H100", load=workload(samples_per_direction=4, directions=10)).ways[0].batches["m1"].total
    long = planned("H100", load=workload(samples_per_direction=1, directions=40)).ways[0].batches["m1"].total
    assert wide < 0.7 * long


def test_larger_batches_and_contexts_take_longer() -> None:
    """Else the cache of keys and values costs nothing."""
    one = speeds("H100")
    for first, second in pairwise([1, 10, 100, 1000]):
        assert one.step(first, 500) < one.step(second, 500)
        assert one.step(10, first) < one.step(10, second)
        assert one.prompts(first, 100) <= one.prompts(second, 100)
    assert one.cause(1) == "reading the weights"
    assert one.cause(10_000) == "arithmetic"
    assert "Python" in speeds("H100", backend="transformers").cause(1)


def test_memory_counts_every_part() -> None:
    """Else a run is sent to a card that its cache does not fit on."""
    one = memory(
        LLAMA,
        backend="vllm",
        restore="exact",
        moved=LLAMA.parameters,
        element=2,
        rows=10,
        prompt=350,
        length=862,
        cards=2,
    )
    assert one.weights == 2 * LLAMA.parameters
    assert one.cache == 2 * 10 * 862 * 2 * 32 * 8 * 128
    assert one.device == one.weights + one.masters + one.cache + one.work
    assert one.work > 2 * 2**30


def test_modes_that_do_not_exist_are_refused() -> None:
    """Else a plan is made for a run that would not start."""
    full, norms = get_scope("full"), get_scope("norms")
    assert restore_modes("all", full, "bfloat16") == ("exact", "residual", "host", "subtract")
    assert restore_modes("all", full, "float32") == ("exact", "host", "subtract")
    assert restore_modes("all", norms, "bfloat16") == ("exact", "host")
    for scope, mode, dtype in ((norms, "subtract", "bfloat16"), (full, "residual", "float32"), (full, "magic", "x")):
        with pytest.raises(UserError):
            restore_modes(mode, scope, dtype)
