"""Perturb, restore and update on a GPU, against the time that its memory alone would need.

    python -m benchmarks.es_gpu [--weights 1000000000] [--repeats 10] [--json FILE]

The weights are one tensor: bfloat16 beside float32 masters, as restore mode `exact` holds them, or bfloat16 alone, as
`subtract` does. The bound of each row is the bytes that it must read and write, at the bandwidth of a device copy
measured in the same run. Times are the best of the repeats. The last line is the time of one launch on 8 weights: a
model takes at least that long for each of its tensors.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from eoh_esopt.models import triton_kernels
from eoh_esopt.models.spans import Span

_GENERATIONS = (10, 30)  # directions of an update
_CALLS = 5  # between two synchronisations
_SIGMA, _NAME = 1e-3, "weight"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: the operation.
        bytes_per_weight: what it must read and write.
        seconds: measured.
        bound: seconds at the bandwidth of a copy.
        normals_per_second: values of noise generated.
    """

    what: str
    bytes_per_weight: int
    seconds: float
    bound: float
    normals_per_second: float


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=int, default=10**9)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("This benchmark needs an NVIDIA GPU, and torch sees none. On a CPU, run benchmarks/precision.py.")
    device = torch.device("cuda", torch.cuda.current_device())
    if not triton_kernels.available(device):
        sys.exit("The Triton kernels do not serve this GPU; the warning above says why, if it is a recent one.")
    bandwidth, rows, launch = measure(device, arguments.weights, arguments.repeats)
    print_table(bandwidth, rows, launch)
    card = torch.cuda.get_device_name(device)
    print(f"{arguments.weights:,} weights, {card}, torch {torch.__version__}, best of {arguments.repeats}")
    if arguments.json:
        report = {"card": card, "weights": arguments.weights, "bandwidth": bandwidth, "launch": launch}
        report["rows"] = [asdict(row) for row in rows]
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def measure(device: torch.device, weights: int, repeats: int) -> tuple[float, list[Row], float]:
    """The bandwidth of a device copy in bytes a second, every operation's row, and seconds of one small launch."""
    master, span = torch.empty(weights, device=device), Span.whole(weights)
    triton_kernels.fill_noise(master, 1, _NAME, span)
    bandwidth = copy_bandwidth(master, repeats)
    live = master.to(torch.bfloat16)

    def row(what: str, bytes_per_weight: int, directions: int, work: Callable[[], object]) -> Row:
        seconds, bound = fastest(work, device, repeats), weights * bytes_per_weight / bandwidth
        return Row(what, bytes_per_weight, seconds, bound, weights * directions / seconds)

    def update(directions: int) -> None:
        triton_kernels.update(master, range(directions), [1e-6] * directions, False, _NAME, span)

    rows = [
        row("perturb, from masters", 6, 1, lambda: triton_kernels.perturb(live, master, 1, _SIGMA, _NAME, span)),
        row("restore, from masters", 6, 0, lambda: live.copy_(master)),
        row("perturb, in place", 4, 1, lambda: triton_kernels.perturb(live, live, 1, _SIGMA, _NAME, span)),
        *(row(f"update of {count}, masters", 8, count, partial(update, count)) for count in _GENERATIONS),
    ]
    few = live[:8]
    launch = fastest(lambda: triton_kernels.perturb(few, few, 1, _SIGMA, _NAME, Span.whole(8)), device, repeats)
    return bandwidth, rows, launch


def copy_bandwidth(values: torch.Tensor, repeats: int) -> float:
    """Bytes a second that a copy of a tensor on its device reads and writes."""
    copy = torch.empty_like(values)
    return 2 * values.nbytes / fastest(lambda: copy.copy_(values), values.device, repeats)


def fastest(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Seconds of a call, the best of several groups of calls; the first, which compiles, does not count."""
    work()
    return min(_seconds(work, device) for _ in range(repeats))


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    _synchronise(device)
    began = time.perf_counter()
    for _ in range(_CALLS):
        work()
    _synchronise(device)
    return (time.perf_counter() - began) / _CALLS


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def print_table(bandwidth: float, rows: list[Row], launch: float) -> None:
    """The rows in Markdown, between what they are measured against and what they leave out."""
    print(f"a device copy: {bandwidth / 1e9:,.0f} GB/s\n")
    print("| what | bytes a weight | time | bound | time / bound | normals a second |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        times = f"{row.seconds * 1e3:.3f} ms | {row.bound * 1e3:.3f} ms | {row.seconds / row.bound:.2f}"
        print(f"| {row.what} | {row.bytes_per_weight} | {times} | {row.normals_per_second:.2e} |")
    print(f"\none launch: {launch * 1e6:.0f} us")


if __name__ == "__main__":
    main()
