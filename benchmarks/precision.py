"""What each restore mode costs on real weights: peak memory beyond plain inference, and the time of a direction.

    python -m benchmarks.precision [--model SmolLM2-135M-Instruct] [--dtype bfloat16] [--sigma 1e-3] [--json FILE]

Each mode runs in a process of its own: load, generate, 20 directions with a reply under one of them, updates of 10
directions. Memory is the peak of that process (VmHWM, and on a GPU what torch allocated) less the peak of one that only
loads and generates. Times are the best of several: on a GPU by the clock, on the CPU the processor's with one thread,
which is what the work takes on a free core whatever else the machine does. The bound is an in-place scalar add over as
many float32 values, measured in the same process.

On the CPU, safetensors maps a checkpoint's file into memory. A page that a direction writes to becomes a private copy
in the place of the mapped one, so masters add to the peak and moved live weights do not; but what was mapped could be
dropped and read again, and a copy cannot. The JSON says how much was still mapped in the end (RssFile).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODES = (("plain", "full"), ("exact", "full"), ("residual", "full"), ("host", "full"), ("subtract", "full"))
MODES += (("exact", "norms"),)
_CYCLES = 20


def main() -> None:
    """Measure every mode and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--sigma", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=5, help="updates that are timed")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--mode", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.mode:
        print(json.dumps(_measure(arguments, *arguments.mode)))
        return
    rows = [_in_a_process(mode) for mode in MODES]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(_table(rows))


def _in_a_process(mode: tuple[str, str]) -> dict[str, Any]:
    """One mode in a fresh process, with the same arguments as this one."""
    command = [sys.executable, "-m", "benchmarks.precision", *sys.argv[1:], "--mode", *mode]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return dict(json.loads(output.splitlines()[-1]))


def _measure(arguments: argparse.Namespace, mode: str, scope_name: str) -> dict[str, Any]:
    """Load the model, generate, and unless the mode is `plain` move the weights."""
    from eoh_esopt.models.fetch import resolve
    from eoh_esopt.models.progress import Progress
    from eoh_esopt.models.protocol import Sampling
    from eoh_esopt.models.scopes import get_scope
    from eoh_esopt.models.transformers_model import TransformersModel

    plain = mode == "plain"
    folder = resolve(arguments.model, progress=Progress())
    model = TransformersModel(
        folder,
        scope=get_scope("norms" if plain else scope_name),  # of which plain inference makes no use
        sampling=Sampling(max_new_tokens=8),
        restore="exact" if plain else mode,
        dtype=arguments.dtype,
    )
    _generate(model, None)
    row: dict[str, Any] = {"mode": mode, "scope": scope_name, "parameters": model.parameters}
    if not plain:
        row |= _move(model, scope_name, arguments.sigma, arguments.repeats)
    row |= {"peak_mib": _status("VmHWM"), "device_peak_mib": _device_peak(), "mapped_mib": _status("RssFile")}
    if not plain:
        row |= {"bound": _bound(model.weights.elements), "weights": model.checksum()}
    return row


def _generate(model: Any, direction: Any) -> None:
    from eoh_esopt.models.protocol import Request

    model.generate([Request("Write a short Python function.", "", seed, direction) for seed in range(4)])


def _move(model: Any, scope_name: str, sigma: float, repeats: int) -> dict[str, Any]:
    """Directions and updates on a model: times in seconds, memory that the modes account for in bytes.

    Scope `norms` has a direction a row, so nothing is perturbed or restored.
    """
    from operators.records import Direction, Update

    weights, directions = model.weights, [Direction(seed, sigma) for seed in range(_CYCLES)]
    _generate(model, directions[0])
    times: dict[str, list[float]] = {"perturb": [], "restore": [], "update": []}
    under = weights.device_bytes
    for direction in directions if scope_name == "full" else ():
        times["perturb"].append(_timed(lambda direction=direction: weights.perturb(direction)))
        under = max(under, weights.device_bytes)
        times["restore"].append(_timed(weights.restore))
    drift = weights.drift()
    update = Update(0, tuple(range(10)), (0.0,) * 10, (1e-3, -1e-3) * 5, 5e-4, 1e-3)
    times["update"] = [_timed(lambda: weights.update(update)) for _ in range(repeats)]
    bytes_ = {"device": weights.device_bytes, "device_under_a_direction": under, "host": weights.host_bytes}
    return {name: min(all_, default=None) for name, all_ in times.items()} | {"drift": drift, "bytes": bytes_}


def _bound(elements: int) -> float:
    import torch

    values = torch.zeros(elements)
    return min(_timed(lambda: values.add_(1.0)) for _ in range(5))


def _status(field: str) -> float:
    """A field of this process' status, in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def _device_peak() -> float:
    """What torch has allocated on a GPU at most, in MiB; 0 without one."""
    import torch

    return torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else 0.0


def _timed(work: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    began = _clock()
    work()
    return _clock() - began


def _clock() -> float:
    import torch

    if not torch.cuda.is_available():
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def _time(seconds: float | None) -> str:
    return "by row" if seconds is None else f"{1e3 * seconds:.1f} ms"


def _table(rows: list[dict[str, Any]]) -> str:
    plain, *moved = rows
    lines = [
        "| restore | scope | bytes a weight on the device | under a direction | on the host | MiB beyond inference "
        "| that is, bytes a weight | perturb | restore | update, G = 10 | bound | lost |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in moved:
        places = ("device", "device_under_a_direction", "host")
        bytes_ = " | ".join(f"{row['bytes'][place] / plain['parameters']:.3f}" for place in places)
        extra = sum(row[place] - plain[place] for place in ("peak_mib", "device_peak_mib"))
        memory = f"{bytes_} | {extra:.0f} | {extra * 2**20 / plain['parameters']:.2f}"
        times = " | ".join(_time(row[name]) for name in ("perturb", "restore", "update", "bound"))
        lost = f"drift {row['drift']:.2g} after {_CYCLES} directions" if row["drift"] else "nothing"
        lines.append(f"| {row['mode']} | {row['scope']} | {memory} | {times} | {lost} |")
    lines += ["", f"{plain['parameters']:,} parameters, plain inference {plain['peak_mib']:.0f} MiB"]
    ends = ", ".join(f"{row['mode']} {row['weights'][:12]}" for row in moved if row["scope"] == "full")
    return "\n".join([*lines, f"weights in the end: {ends}"])


if __name__ == "__main__":
    main()
