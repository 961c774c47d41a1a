"""The fast kernels and the torch noise against the plain reference, bit for bit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eoh_esopt.models import kernels, torch_noise
from eoh_esopt.models.spans import Span
from operators.noise import noise, normal_table, stream_key

SIZES = (1, 7, 8, 9, 63, 65, 4095, 4096, 4097, 100_003, 131_071, 131_073)
SEED, NAME = 2**63 + 11, "model.layers.0.mlp.up_proj.weight"
KEY = np.uint64(stream_key(SEED, NAME))
TABLE = normal_table()
CPU = torch.device("cpu")
COEFFICIENTS = np.array([0.5, 0.25], np.float32)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    if request.param > (os.cpu_count() or 1):
        pytest.skip("one core")
    before = numba.get_num_threads()
    numba.set_num_threads(request.param)
    yield request.param
    numba.set_num_threads(before)


def weights(size: int, scale: float = 0.02) -> NDArray[np.float32]:
    return (noise(1, "weights", 0, size) * np.float32(scale)).astype(np.float32)


def whole(size: int) -> tuple[int, int, int]:
    return Span.whole(size).arguments


def bits(array: NDArray[Any]) -> NDArray[np.uint32]:
    return array.view(np.uint32)


@pytest.mark.parametrize("size", SIZES)
def test_noise_is_the_references(size: int, threads: int) -> None:
    """Other noise at a tile's edge, or with other threads, would replay a history to other weights."""
    out = np.full(size, 7, np.float32)
    kernels.fill_noise(out, KEY, *whole(size), TABLE)
    assert np.array_equal(bits(out), bits(noise(SEED, NAME, 0, size)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sigma", [1e-3, -1e-3, 0.3])
def test_perturbed_float32_rounds_product_and_sum_apart(size: int, sigma: float, threads: int) -> None:
    """A fused multiply-add on one machine would give other weights than on the next."""
    master, live = weights(size), np.zeros(size, np.float32)
    kernels.perturb_float32(live, master, KEY, np.float32(sigma), *whole(size), TABLE)
    expected = master + np.float32(sigma) * noise(SEED, NAME, 0, size)
    assert np.array_equal(bits(live), bits(expected))
    kernels.perturb_float32(master, master, KEY, np.float32(sigma), *whole(size), TABLE)
    assert np.array_equal(bits(master), bits(expected))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sigma", [1e-3, 0.3])
def test_perturbed_bfloat16_is_the_cast_of_float32(size: int, sigma: float, threads: int) -> None:
    """Another rounding than torch's would make a restore differ from the weights before."""
    master, live = weights(size), np.zeros(size, np.uint16)
    kernels.perturb_bfloat16(live, master, KEY, np.float32(sigma), *whole(size), TABLE)
    assert np.array_equal(live, bfloat16(master + np.float32(sigma) * noise(SEED, NAME, 0, size)))


def bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    return torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)


def test_bfloat16_rounds_every_kind_of_number_like_torch() -> None:
    """Ties, subnormals, zeros of both signs and overflow each have their own way to go wrong."""
    patterns = np.arange(2**32, step=65_521, dtype=np.uint64).astype(np.uint32)
    ties = (np.arange(2**16, dtype=np.uint32) << 16) | np.uint32(0x8000)
    master = np.concatenate([patterns, ties, ties - 1, ties + 1]).view(np.float32)
    master = master[~np.isnan(master)]
    live = np.zeros(master.size, np.uint16)
    kernels.perturb_bfloat16(live, master, KEY, np.float32(0), *whole(master.size), TABLE)
    assert np.array_equal(live, bfloat16(master + np.float32(0) * noise(SEED, NAME, 0, master.size)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("multiplicative", [False, True])
def test_update_adds_the_terms_in_order(size: int, multiplicative: bool, threads: int) -> None:
    """Another order of the sum, or a total kept in more bits, would end at other weights than a replay."""
    seeds = [3, 2**40, SEED, 5, 0]
    coefficients = np.array([1e-3, -7e-4, 3.3e-5, 0.0, 0.02], np.float32)
    master = weights(size)
    total = np.zeros(size, np.float32)
    for seed, coefficient in zip(seeds, coefficients, strict=True):
        total = total + coefficient * noise(seed, NAME, 0, size)
    expected = master * (np.float32(1) + total) if multiplicative else master + total
    keys = np.array([stream_key(seed, NAME) for seed in seeds], np.uint64)
    kernels.update_float32(master, keys, coefficients, multiplicative, *whole(size), TABLE)
    assert np.array_equal(bits(master), bits(expected))


def piece(array: NDArray[np.float32], span: Span, size: int) -> NDArray[np.float32]:
    """The piece's elements, by the definition of a span."""
    j = np.arange(size)
    return array[span.first + j // span.run * span.stride + j % span.run]


PIECES = [
    (Span(0, 9000, 9000), 9000),
    (Span(8 * 700, 5000, 5000), 5000),
    (Span(3, 4099, 4099), 4099),
    (Span(5, 7, 13), 7 * 900),
    (Span(64, 32, 64), 32 * 200),
    (Span(0, 1, 5), 2000),
    (Span(11, 4500, 9001), 9000),
    (Span(2, 150_000, 150_001), 300_000),
]


def all_kernels(master: NDArray[np.float32], span: Span) -> dict[str, NDArray[Any]]:
    """What each kernel makes of a piece of the weights."""
    place = (*span.arguments, TABLE)
    noise_, live, short = np.empty_like(master), np.empty_like(master), np.empty(master.size, np.uint16)
    kernels.fill_noise(noise_, KEY, *place)
    kernels.perturb_float32(live, master, KEY, np.float32(0.3), *place)
    kernels.perturb_bfloat16(short, master, KEY, np.float32(0.3), *place)
    keys = np.array([stream_key(1, NAME), KEY], np.uint64)
    moved, scaled = master.copy(), master.copy()
    kernels.update_float32(moved, keys, COEFFICIENTS, False, *place)
    kernels.update_float32(scaled, keys, COEFFICIENTS, True, *place)
    return {"noise": noise_, "float32": live, "bfloat16": short, "update": moved, "multiplicative": scaled}


def all_expected(master: NDArray[np.float32], z: NDArray[np.float32], other: NDArray[np.float32]) -> list[NDArray[Any]]:
    """The same in the same order by the definition, from the piece's noise under the seeds SEED and 1."""
    live = master + np.float32(0.3) * z
    total = COEFFICIENTS[0] * other + COEFFICIENTS[1] * z
    return [z, live, bfloat16(live), master + total, master * (np.float32(1) + total)]


def assert_by_the_definition(span: Span, size: int) -> None:
    j = np.arange(size)
    where = j // span.run * span.stride + j % span.run
    z, other = (noise(seed, NAME, span.first, int(where[-1]) + 1)[where] for seed in (SEED, 1))
    master = weights(size)
    for (name, found), expected in zip(all_kernels(master, span).items(), all_expected(master, z, other), strict=True):
        assert np.array_equal(found, expected), name


@pytest.mark.parametrize(("span", "size"), PIECES)
def test_a_piece_has_the_noise_of_its_place_in_the_tensor(span: Span, size: int, threads: int) -> None:
    """Fused and sharded weights of a server would follow another history than the checkpoint's own."""
    assert_by_the_definition(span, size)
    tensor = noise(SEED, NAME, 0, span.first + (size // span.run + 1) * span.stride)
    for start, count in ((0, size), (8, 1000), (size - 5, 5)):
        found = torch_noise.piece_noise(SEED, NAME, span, start, count, CPU)
        assert np.array_equal(found.numpy(), piece(tensor, span, size)[start : start + count])


@settings(deadline=None, max_examples=60)
@given(
    first=st.one_of(st.integers(0, 100), st.integers(2**32 - 600, 2**32), st.integers(2**35 - 600, 2**36)),
    run=st.integers(1, 300),
    gap=st.integers(0, 100),
    size=st.integers(1, 700),
)
def test_any_piece_follows_the_definition(first: int, run: int, gap: int, size: int) -> None:
    """A shard of a shape that nobody thought of would move by other noise than its checkpoint."""
    assert_by_the_definition(Span(first, run, run + gap), size)


@settings(deadline=None, max_examples=40)
@given(size=st.integers(1, 20_000), run=st.integers(1, 20_000), limit=st.integers(1, 20_000), first=st.integers(0, 99))
def test_chunks_put_together_are_the_whole(size: int, run: int, limit: int, first: int) -> None:
    """Weights streamed in chunks would depend on the size of a chunk, so on the machine's memory."""
    span = Span(first, run, run + 3)
    master = weights(size)
    whole_ = all_kernels(master, span)
    limit = max(limit, size // 50)
    for start, count, part in span.parts(size, limit):
        for name, found in all_kernels(master[start : start + count], part).items():
            assert np.array_equal(found, whole_[name][start : start + count]), name


@pytest.mark.parametrize("shards", [2, 3])
@pytest.mark.parametrize("dimension", [0, 1])
def test_shards_put_together_are_the_whole(shards: int, dimension: int, threads: int) -> None:
    """A server split over devices would hold other weights than one that is not."""
    rows, columns = 36, 1002
    master = weights(rows * columns).reshape(rows, columns)
    expected = all_kernels(master.reshape(-1), Span.whole(master.size))
    step = master.shape[dimension] // shards
    for shard in range(shards):
        where = (slice(None),) * dimension + (slice(shard * step, (shard + 1) * step),)
        part = np.ascontiguousarray(master[where])
        span = (
            Span(shard * step * columns, part.size, part.size) if dimension == 0 else Span(shard * step, step, columns)
        )
        for name, found in all_kernels(part.reshape(-1), span).items():
            assert np.array_equal(found.reshape(part.shape), expected[name].reshape(rows, columns)[where]), name


def test_nothing_happens_to_no_weights() -> None:
    """A shard that holds no part of a tensor would stop the whole update."""
    assert all(found.size == 0 for found in all_kernels(np.empty(0, np.float32), Span.whole(0)).values())


FAR = [2**32 - 3, 2**32 + 5, 2**35 - 64 * 8 - 3, 2**35 - 3, 2**35 + 8, 2**43 + 1]


@pytest.mark.parametrize("first", FAR)
def test_elements_beyond_32_bits_are_counted(first: int, threads: int) -> None:
    """Tensors of more than 2**32 elements, or 2**32 blocks of 8, would repeat their noise."""
    assert_by_the_definition(Span(first, 5000, 5000), 5000)
    start = first // 8 * 8
    assert np.array_equal(torch_noise.torch_noise(SEED, NAME, start, 61, CPU).numpy(), noise(SEED, NAME, start, 61))


def test_runs_far_apart_are_counted() -> None:
    """The same for the rows of a shard whose tensor alone would not fit into this machine."""
    span, out = Span(2**31 + 1, 7, 2**33 + 5), np.empty(7 * 20, np.float32)
    kernels.fill_noise(out, KEY, *span.arguments, TABLE)
    rows = [noise(SEED, NAME, span.first + row * span.stride, 7) for row in range(20)]
    assert np.array_equal(out, np.concatenate(rows))


@pytest.mark.parametrize("size", SIZES)
def test_torch_noise_is_the_references(size: int) -> None:
    """Weights of a dtype or device without a fast kernel would follow another history."""
    assert np.array_equal(torch_noise.torch_noise(SEED, NAME, 0, size, CPU).numpy(), noise(SEED, NAME, 0, size))
    assert np.array_equal(torch_noise.torch_noise(SEED, NAME, 808, size, CPU).numpy(), noise(SEED, NAME, 808, size))


def test_torch_noise_starts_at_blocks_only() -> None:
    """A start inside a block would shift the noise without a word."""
    with pytest.raises(ValueError, match="multiple of 8"):
        torch_noise.torch_noise(SEED, NAME, 4, 8, CPU)


@pytest.mark.parametrize("size", [0, 1, 2**22 - 1, 2**22, 2**22 + 1, 3 * 2**22 + 5])
def test_chunks_cover_a_tensor_once(size: int) -> None:
    """A gap would leave weights unmoved, an overlap would move them twice."""
    pieces = list(torch_noise.chunks(size))
    assert [start for start, _ in pieces] == [2**22 * i for i in range(len(pieces))]
    assert sum(count for _, count in pieces) == size
    assert all(0 < count <= 2**22 for _, count in pieces)
