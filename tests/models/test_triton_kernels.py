"""The Triton kernels against the plain reference, bit for bit in Triton's interpreter, and as code for CUDA."""

from __future__ import annotations

import importlib
import multiprocessing
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import es_gpu
from eoh_esopt.models import triton_kernels
from eoh_esopt.models.spans import Span

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton is published for Linux only")

Elsewhere = Callable[..., Any]

TILE = 2048  # weights that one program works on
PIECES = [
    *((Span.whole(size), size) for size in (1, 7, 8, 9, TILE - 1, TILE, TILE + 1, 2 * TILE + 13)),
    (Span(8 * 700, 3000, 3000), 3000),
    (Span(3, 2051, 2051), 2051),
    (Span(5, 7, 13), 7 * 90),
    (Span(64, 32, 64), 32 * 100),
    (Span(0, 1, 5), 300),
    (Span(11, 1500, 3001), 3000),
    (Span(8, 24, 32), 100),
    (Span(2**35 - 16, 40, 40), 40),
    (Span(2**40 + 3, 8, 2**33 + 5), 40),
    (Span(2**36, 64, 2**34), 640),
]


@pytest.fixture(scope="module")
def interpreted() -> Iterator[Elsewhere]:
    """Runs a case of `triton_cases` where Triton interprets."""
    with process("TRITON_INTERPRET", "1") as pool:
        yield lambda case, *arguments: pool.submit(_run, "triton_cases", case, arguments).result()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """Runs `triton_code.code` where Triton compiles."""
    with process("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton"))) as pool:
        yield lambda *arguments: pool.submit(_run, "triton_code", "code", arguments).result()


@contextmanager
def process(variable: str, value: str) -> Iterator[ProcessPoolExecutor]:
    """One process with a variable in its environment that no other test sees."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv(variable, value)
            pool.submit(int).result()
        yield pool


def _run(module: str, function: str, arguments: tuple[Any, ...]) -> Any:
    return getattr(importlib.import_module(module), function)(*arguments)


@pytest.mark.parametrize(("span", "size"), PIECES)
def test_noise_is_the_references(interpreted: Elsewhere, span: Span, size: int) -> None:
    """A GPU would train, or replay, other weights than a CPU: at a tile's edge, in a shard, beyond 2**32 blocks."""
    assert interpreted("filled", 2**63 + 11, span, size) == 0


@pytest.mark.parametrize(("span", "size"), PIECES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_perturbed_is_the_cast_of_separate_product_and_sum(
    interpreted: Elsewhere, dtype: str, span: Span, size: int
) -> None:
    """Other roundings on a GPU than on a CPU would make other weights; a write beside a piece would spoil the next."""
    assert interpreted("perturbed", dtype, False, 1e-3, span, size) == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("sigma", [1e-3, -1e-3, 0.3])
def test_weights_are_perturbed_in_place(interpreted: Elsewhere, dtype: str, sigma: float) -> None:
    """Restore mode `subtract` has no master: it adds to the live weights and subtracts from them."""
    assert interpreted("perturbed", dtype, True, sigma, Span(3, 2051, 2051), 2051) == 0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_kind_of_number_is_cast_like_torch(interpreted: Elsewhere, dtype: str) -> None:
    """Ties, subnormals, overflow and NaN each go wrong their own way; a restore would then differ from the weights."""
    assert interpreted("cast", dtype) == 0


@pytest.mark.parametrize(("span", "size"), PIECES)
@pytest.mark.parametrize("multiplicative", [False, True])
def test_update_adds_the_terms_in_order(interpreted: Elsewhere, multiplicative: bool, span: Span, size: int) -> None:
    """Another order of the sum, or a total kept in more bits, would end at other weights than a replay."""
    assert interpreted("updated", 3, multiplicative, span, size) == 0


@pytest.mark.parametrize("directions", [1, 10])
def test_update_takes_any_number_of_directions(interpreted: Elsewhere, directions: int) -> None:
    """A generation is as large as the settings say."""
    assert interpreted("updated", directions, False, Span.whole(2051), 2051) == 0


def test_fused_arithmetic_would_show(interpreted: Elsewhere) -> None:
    """Were both roundings the same on these weights, the tests here could not see a fused multiply-add."""
    assert interpreted("fused_would_differ") > 100


def test_one_replay_for_all_back_ends(interpreted: Elsewhere) -> None:
    """A history from a GPU would not verify on a CPU."""
    digests = {back_end: interpreted("replay", back_end) for back_end in ("numba", "torch", "triton")}
    assert len(set(digests.values())) == 1, digests


@pytest.mark.parametrize("program", [2**25 + 3, 2**26 - 1])
def test_pieces_of_more_than_2_to_the_32_weights_are_indexed(interpreted: Elsewhere, program: int) -> None:
    """Large tensors would be moved twice at their beginning and not at all at their end."""
    k = np.arange(program * 16, program * 16 + 16)
    size = 2**33
    numbers, j, inside = interpreted("places", program, Span(2**35, size, size), size, True)
    assert np.array_equal(numbers, 2**32 + k)
    assert np.array_equal(j.reshape(16, 8), k[:, None] * 8 + np.arange(8))
    assert inside.all()
    numbers, j, inside = interpreted("places", program, Span(3, size, size), size, False)
    assert np.array_equal(numbers, k)
    assert np.array_equal(j.reshape(16, 8), k[:, None] * 8 - 3 + np.arange(8))
    assert inside.all()


def test_rows_of_a_piece_of_more_than_2_to_the_32_weights_are_indexed(interpreted: Elsewhere) -> None:
    """The same for a slice of columns."""
    program, run, stride = 2**25 + 5, 1024, 4096
    k = np.arange(program * 16, program * 16 + 16)
    numbers, j, inside = interpreted("places", program, Span(8, run, stride), 2**33, True)
    assert np.array_equal(numbers, 1 + k // 128 * (stride // 8) + k % 128)
    assert np.array_equal(j.reshape(16, 8), k[:, None] * 8 + np.arange(8))
    assert inside.all()


def test_pieces_too_large_to_count_are_refused() -> None:
    """32-bit block numbers would wrap and leave weights as they were."""
    with pytest.raises(ValueError, match="too large"):
        triton_kernels.fill_noise(torch.empty(2**34, device="meta"), 1, "w", Span.whole(2**34))


def test_empty_pieces_are_left_alone() -> None:
    """A shard may hold nothing of a tensor."""
    empty = torch.empty(0)
    triton_kernels.fill_noise(empty, 1, "w", Span.whole(0))
    triton_kernels.perturb(empty, empty, 1, 1e-3, "w", Span.whole(0))
    triton_kernels.update(empty, (1,), (0.5,), False, "w", Span.whole(0))


def test_the_self_check_tells_right_kernels_from_wrong_ones(interpreted: Elsewhere) -> None:
    """On a GPU where the kernels give other bits, they would be used all the same."""
    assert interpreted("self_check", None) is True
    assert interpreted("self_check", 7) is False


def test_only_cuda_is_served() -> None:
    """The kernels would be launched on a CPU, an Apple or an old GPU and fail in the middle of a run."""
    assert not triton_kernels.available(torch.device("cpu"))
    assert not triton_kernels.available(torch.device("mps"))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """A device that looks like a GPU to `available`."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    triton_kernels.available.cache_clear()
    yield torch.device("cuda", 0)
    triton_kernels.available.cache_clear()


def test_gpus_are_served_where_the_kernels_prove_right(gpu: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU would be left to the slow path, or served wrong weights."""
    monkeypatch.setattr(triton_kernels, "gives_the_definition", lambda device: True)
    assert triton_kernels.available(gpu)


def test_gpus_without_triton_take_torch(gpu: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without Triton, or an old GPU, would stop at the first direction."""
    monkeypatch.setattr(triton_kernels, "find_spec", lambda name: None)
    assert not triton_kernels.available(gpu)
    triton_kernels.available.cache_clear()
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert not triton_kernels.available(gpu)


def test_gpus_where_triton_fails_take_torch_with_a_warning(gpu: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a C compiler Triton cannot compile: the run would stop, or be slow without a word."""

    def fail(device: torch.device) -> bool:
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(triton_kernels, "gives_the_definition", fail)
    with pytest.warns(UserWarning, match="Failed to find C compiler"):
        assert not triton_kernels.available(gpu)
    triton_kernels.available.cache_clear()
    monkeypatch.setattr(triton_kernels, "gives_the_definition", lambda device: False)
    with pytest.warns(UserWarning, match="other bits"):
        assert not triton_kernels.available(gpu)


def test_the_benchmark_runs_to_its_end(interpreted: Elsewhere) -> None:
    """Whoever has a GPU for an hour would spend it on the benchmark's own mistakes."""
    table = interpreted("benchmark").splitlines()
    assert re.fullmatch(r"a device copy: [\d,]+ GB/s", table[0])
    assert [line.split(" | ")[:2] for line in table[4:9]] == [
        ["| perturb, from masters", "6"],
        ["| restore, from masters", "6"],
        ["| perturb, in place", "4"],
        ["| update of 2, masters", "8"],
        ["| update of 3, masters", "8"],
    ]
    assert re.fullmatch(r"one launch: \d+ us", table[-1])


def test_the_benchmark_refuses_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stop with a stack trace, or measure a CPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["es_gpu"])
    with pytest.raises(SystemExit, match="needs an NVIDIA GPU"):
        es_gpu.main()


LAUNCHES = [("fill_noise", "float32"), ("perturb", "bfloat16"), ("perturb", "float16"), ("update", "float32")]


@pytest.mark.parametrize(("program", "dtype"), LAUNCHES)
@pytest.mark.parametrize(("span", "size"), [(Span.whole(4096), 4096), (Span(64, 32, 96), 320), (Span(3, 7, 13), 63)])
def test_every_launch_compiles_without_fused_arithmetic(
    compiled: Elsewhere, program: str, dtype: str, span: Span, size: int
) -> None:
    """The interpreter neither checks a launch's arguments nor fuses: only the code for a GPU could fail, or differ."""
    code = compiled(program, dtype, span, size)
    assert ".target sm_90" in code
    assert "fma" not in code
    assert "ftz" not in code


@pytest.mark.parametrize("program", ["perturb", "update"])
def test_arithmetic_is_fused_unless_the_launch_forbids_it(compiled: Elsewhere, program: str) -> None:
    """Were there nothing to fuse, the test above would say nothing."""
    assert "fma" in compiled(program, "bfloat16", Span.whole(4096), 4096, True)


@pytest.mark.parametrize("program", ["perturb", "update"])
def test_whole_tensors_are_moved_16_bytes_at_a_time(compiled: Elsewhere, program: str) -> None:
    """Loads and stores of single weights would keep a GPU far from its bandwidth."""
    wide = re.compile(r"(ld|st)\.global\S*\.v4\.b32")
    found = [match.group(1) for match in wide.finditer(compiled(program, "bfloat16", Span.whole(4096), 4096))]
    assert set(found) == {"ld", "st"}
    assert not wide.search(compiled(program, "bfloat16", Span(3, 7, 13), 63))
