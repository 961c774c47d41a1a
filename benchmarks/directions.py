"""What a direction costs on real weights: time of perturb, restore and update, and peak memory beyond inference.

Each restore mode runs in a process of its own, so that its peak memory is its own. Times are the best of several;
the bound is an in-place scalar add over the same number of float32 values, measured in the same process.

    python benchmarks/directions.py --model SmolLM2-135M-Instruct
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

MODES = (("none", "full"), ("exact", "full"), ("subtract", "full"), ("exact", "norms"))


def main() -> None:
    """Measure every mode and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--mode", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.mode:
        print(json.dumps(measure(arguments.model, arguments.dtype, *arguments.mode)))
        return
    rows = [run(arguments.model, arguments.dtype, mode, scope) for mode, scope in MODES]
    plain = rows[0]["peak_mb"]
    print(
        "| restore | scope | perturb | restore | update, G = 10 | bound | drift after 20 cycles | MB beyond inference |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for row in rows[1:]:
        times = " | ".join(
            "per row" if row[key] is None else f"{row[key] * 1e3:.1f} ms"
            for key in ("perturb", "restore", "update", "bound")
        )
        print(f"| {row['mode']} | {row['scope']} | {times} | {row['drift']:.2g} | {row['peak_mb'] - plain:.0f} |")
    print(f"\n{rows[0]['parameters']:,} parameters, {arguments.dtype}, peak of plain inference {plain:.0f} MB")


def run(model: str, dtype: str, mode: str, scope: str) -> dict[str, float]:
    """One mode in a fresh process."""
    command = [sys.executable, __file__, "--model", model, "--dtype", dtype, "--mode", mode, scope]
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return dict(json.loads(output.splitlines()[-1]))


def measure(name: str, dtype: str, mode: str, scope_name: str) -> dict[str, object]:
    """Load the model, generate once, and exercise directions unless the mode is `none`."""
    import torch

    from eoh_esopt.models.fetch import resolve
    from eoh_esopt.models.progress import Progress
    from eoh_esopt.models.protocol import Request, Sampling
    from eoh_esopt.models.scopes import get_scope
    from eoh_esopt.models.transformers_model import TransformersModel
    from operators.records import Direction, Update

    scope = get_scope("norms" if mode == "none" else scope_name)
    restore = "exact" if mode == "none" else mode
    sampling = Sampling(max_new_tokens=8)
    folder = resolve(name, progress=Progress())
    model = TransformersModel(folder, scope=scope, sampling=sampling, restore=restore, dtype=dtype)
    model.generate([Request("Write a short Python function.", "", seed, None) for seed in range(4)])
    result: dict[str, object] = {"mode": mode, "scope": scope_name, "parameters": model.parameters}
    if mode != "none":
        weights = model.weights
        update = Update(0, tuple(range(10)), (0.0,) * 10, (1e-3,) * 10, 5e-4, 1e-3)
        perturb, back = [], []
        for seed in range(20 if not scope.multiplicative else 0):
            perturb.append(timed(lambda seed=seed: weights.perturb(Direction(seed, 1e-3))))
            back.append(timed(weights.restore))
        drift = weights.drift()
        update_time = min(timed(lambda: weights.update(update)) for _ in range(3))
        result["peak_mb"] = peak_mb()
        values = torch.zeros(weights.elements)
        bound = min(timed(lambda: values.add_(1.0)) for _ in range(5))
        result |= {
            "perturb": min(perturb, default=None),
            "restore": min(back, default=None),
            "update": update_time,
            "bound": bound,
            "drift": drift,
        }
    return {"peak_mb": peak_mb()} | result


def peak_mb() -> float:
    """Largest memory this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(work: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
