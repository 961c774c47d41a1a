"""What directions and updates cost on the CPU, against a plain torch implementation and against the memory.

    python -m benchmarks.es [perturb ...] [--model-shapes NAME] [--seconds 10] [--json FILE]

The weights have the names and shapes of a model's checkpoint. Live weights of either dtype stand beside float32
masters, as restore mode `exact` holds them; the plain side moves the live weights in place (benchmarks/plain/es.py).
The bound is the time that the memory takes for the bytes that the operation has to read and write, at the bandwidth of
an in-place scalar add over the live weights. Ours, the plain one and the add take turns until the time is spent, and
the fastest run of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import eoh_esopt.models  # noqa: F401  # isort: skip - before torch, whose threads would spin otherwise

import numba
import numpy as np
import torch

from benchmarks.plain import es as plain
from eoh_esopt.models.checkpoint import stored_tensors
from eoh_esopt.models.fetch import resolve
from eoh_esopt.models.precision import arithmetic
from eoh_esopt.models.precision.exact import ExactWeights
from eoh_esopt.models.precision.piece import Piece
from eoh_esopt.models.progress import Progress
from eoh_esopt.models.spans import Span
from operators.records import Direction, Update

DTYPES = (torch.float32, torch.bfloat16)
GENERATIONS = (10, 30)  # directions of an update
WEIGHT_OPERATIONS = ("perturb", "restore", *(f"update-{count}" for count in GENERATIONS))
SEED, SIGMA, ALPHA = 7, 1e-3, 5e-4
Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One operation on weights of one dtype.

    Attributes:
        dtype: of the live weights.
        operation: one of `WEIGHT_OPERATIONS`.
        seconds: ours.
        plain: seconds of the plain implementation.
        add: seconds of an in-place scalar add over the live weights.
        bound: seconds for `bytes_moved` at the bandwidth of that add.
        bytes_moved: what the operation has to read and write.
        normals: values of noise that it needs.
    """

    dtype: str
    operation: str
    seconds: float
    plain: float
    add: float
    bound: float
    bytes_moved: int
    normals: int


@dataclass(frozen=True)
class Weights:
    """Live weights of one dtype beside their masters.

    Attributes:
        flat: the live weights of all tensors, in one array.
        live: the same, a tensor each, by checkpoint name.
        exact: the same beside their masters, a tensor each.
    """

    flat: torch.Tensor
    live: dict[str, torch.Tensor]
    exact: tuple[ExactWeights, ...]


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operation", nargs="*", help=f"which; all by default: {', '.join(WEIGHT_OPERATIONS)}")
    parser.add_argument("--model-shapes", default="SmolLM2-135M-Instruct", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=10.0, help="spent on each operation, if a run is not longer")
    parser.add_argument("--threads", type=int, default=numba.get_num_threads())
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    numba.set_num_threads(arguments.threads)
    tensors = stored_tensors(resolve(arguments.model_shapes, progress=Progress()))
    sizes = {name: int(np.prod(tensor.shape)) for name, tensor in tensors.items()}
    rows = weight_rows(arguments.operation or WEIGHT_OPERATIONS, sizes, arguments.seconds)
    print(weight_table(rows, arguments.threads))
    facts = machine(arguments.threads) | {"model": arguments.model_shapes, "weights": sum(sizes.values())}
    print("\n" + ", ".join(f"{name}: {value}" for name, value in facts.items()))
    if arguments.json:
        report = {"machine": facts, "weights": [asdict(row) for row in rows]}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def weight_rows(names: Sequence[str], sizes: dict[str, int], seconds: float) -> list[Row]:
    """Every operation named, on live weights of each dtype.

    Args:
        names: of `WEIGHT_OPERATIONS`; others are left out.
        sizes: elements of each tensor by checkpoint name.
        seconds: spent on each.
    """
    rows = []
    for dtype in DTYPES:
        weights = make_weights(sizes, dtype)
        ours, theirs, add = _ours(weights), _plain(weights), partial(weights.flat.add_, 1e-9)
        for name in names:
            if name in ours:
                times = _best_in_turn([ours[name], theirs[name], add], seconds)
                rows.append(_row(weights.flat, name, *times))
    return rows


def _row(flat: torch.Tensor, operation: str, own: float, other: float, add: float) -> Row:
    moved = _bytes_moved(operation, flat.dtype, flat.numel())
    bound = moved * add / (2 * flat.nbytes)
    name = str(flat.dtype).removeprefix("torch.")
    return Row(name, operation, own, other, add, bound, moved, _normals(operation, flat.numel()))


def make_weights(sizes: dict[str, int], dtype: torch.dtype) -> Weights:
    """Small random weights; see `Weights`."""
    flat = torch.empty(sum(sizes.values()), dtype=dtype)
    live = dict(zip(sizes, torch.split(flat, list(sizes.values())), strict=True))
    pieces = tuple(Piece(name, tensor, Span.whole(tensor.numel())) for name, tensor in live.items())
    masters = [arithmetic.noise(piece, 1, torch.empty(piece.live.numel())).mul_(0.02) for piece in pieces]
    exact = tuple(ExactWeights(piece, master) for piece, master in zip(pieces, masters, strict=True))
    for piece, master in zip(pieces, masters, strict=True):
        piece.live.copy_(master)
    return Weights(flat, live, exact)


def _ours(weights: Weights) -> dict[str, Work]:
    """Each operation as restore mode `exact` does it."""
    works: dict[str, Work] = {
        "perturb": partial(_each, [one.perturb for one in weights.exact], Direction(SEED, SIGMA)),
        "restore": partial(_each, [one.restore for one in weights.exact], Direction(SEED, SIGMA)),
    }
    for count in GENERATIONS:
        update = Update(0, tuple(range(count)), (0.0,) * count, (1e-3,) * count, ALPHA, SIGMA)
        works[f"update-{count}"] = partial(_each, [one.update for one in weights.exact], update)
    return works


def _each(calls: Sequence[Callable[..., object]], *arguments: object) -> None:
    for call in calls:
        call(*arguments)


def _plain(weights: Weights) -> dict[str, Work]:
    """The same on the live weights alone, the plain way."""
    add = partial(plain.perturb, weights.live, SEED, SIGMA)
    take = partial(plain.perturb, weights.live, SEED, -SIGMA)
    works: dict[str, Work] = {"perturb": add, "restore": take}
    for count in GENERATIONS:
        works[f"update-{count}"] = partial(plain.update, weights.live, range(count), [1e-3 * ALPHA / count] * count)
    return works


def _best_in_turn(works: Sequence[Work], seconds: float) -> list[float]:
    """The fastest run of each, in seconds. They take turns; in its turn the slowest runs once, others 3 to 10 times."""
    best = [_seconds(work) for work in works]
    share = seconds / 4 / len(works)
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for place, work in enumerate(works):
            runs = 1 if best[place] == max(best) else max(3, min(10, int(share / best[place])))
            best[place] = min(best[place], *(_seconds(work) for _ in range(runs)))
    return best


def _seconds(work: Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _bytes_moved(operation: str, dtype: torch.dtype, weights: int) -> int:
    """What an operation has to read and write: masters, live weights, or both."""
    updated = 4 if operation.startswith("update") else 0
    return weights * (4 + updated + dtype.itemsize)


def _normals(operation: str, weights: int) -> int:
    if operation == "restore":
        return 0
    return weights * (int(operation.split("-")[1]) if operation.startswith("update") else 1)


def weight_table(rows: Sequence[Row], threads: int) -> str:
    """The rows in Markdown; nanoseconds are of one thread."""
    lines = [
        "| live weights | operation | ours | plain | plain / ours | add | bound | ours / bound | ns a normal |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        normal = f"{row.seconds * threads / row.normals * 1e9:.3f}" if row.normals else "-"
        lines.append(
            f"| {row.dtype} | {row.operation} | {row.seconds * 1e3:.1f} ms | {row.plain * 1e3:.1f} ms "
            f"| {row.plain / row.seconds:.1f} | {row.add * 1e3:.1f} ms | {row.bound * 1e3:.1f} ms "
            f"| {row.seconds / row.bound:.2f} | {normal} |"
        )
    return "\n".join(lines)


def machine(threads: int) -> dict[str, object]:
    """What the figures depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "torch": torch.__version__,
        "numba": numba.__version__,
        "threading layer": numba.threading_layer(),  # type: ignore[attr-defined]
        "OMP_WAIT_POLICY": os.environ["OMP_WAIT_POLICY"],
    }


def _processor() -> str:
    """Name and widest vector instructions."""
    names = [line.split(":")[1].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {torch.backends.cpu.get_cpu_capability()}"


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


if __name__ == "__main__":
    main()
