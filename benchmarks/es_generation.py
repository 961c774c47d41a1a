"""Tokens a second when every reply is written under a direction of its own.

    python -m benchmarks.es_generation --model SmolLM2-135M-Instruct [--dtype bfloat16] [--repeats 3] [--json FILE]
    python -m benchmarks.es_generation --backend vllm         # in the environment that scripts/test_vllm.sh makes

Four ways to write G replies: `plain` without directions, as one batch, which the others are measured against; `full`
one at a time (perturb, write, restore), as noise of full rank has to be; `lowrank` and `norms` as one batch, each row
under its own direction. Every reply is as long as the limit. The ways are timed in turn, and the best of the repeats
counts. `full` costs the same for every reply, so it is timed on a few of them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

PROMPT = "Write a Python function that visits every node of a graph once and returns to the first. " * 2
BACKENDS = ("transformers", "vllm")
_ALONE = 3  # replies that `full` is timed on
_NO_TOKEN = 1 << 30  # what ends a reply here: no token has this number


@dataclass(frozen=True)
class Row:
    """Throughput at one number of directions.

    Attributes:
        directions: replies of a batch, each under a direction of its own.
        speed: tokens a second, by way.
    """

    directions: int
    speed: dict[str, float]

    def ratio(self, way: str, other: str) -> float:
        """How many times as fast one way is as another."""
        return self.speed[way] / self.speed[other]


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--backend", default="transformers", choices=BACKENDS)
    parser.add_argument("--dtype", default="bfloat16", help="bfloat16 or float32")
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=64, help="tokens of each reply")
    parser.add_argument("--directions", default="1,10,30", help="replies of a batch; comma-separated")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin slow each other down
    counts = [int(count) for count in arguments.directions.split(",")]
    names = ("model", "backend", "dtype", "rank", "tokens")
    rows = measure(*(getattr(arguments, name) for name in names), counts=counts, repeats=arguments.repeats)
    print(", ".join(f"{name} {getattr(arguments, name)}" for name in names) + "\n")
    print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def measure(
    name: str, backend: str, dtype: str, rank: int, tokens: int, *, counts: Sequence[int], repeats: int
) -> list[Row]:
    """Time every way at every number of directions."""
    models = (_vllm if backend == "vllm" else _transformers)(name, dtype, rank, tokens)
    for way in models:
        _write(models, way, 2)  # compiles kernels, warms caches
    rows = [_row(models, count, tokens, repeats) for count in counts]
    for model in models.values():
        model.close()
    return rows


def table(rows: Sequence[Row]) -> str:
    """The figures in Markdown."""
    ways = list(rows[0].speed)
    pairs = [(way, other) for way in ways[2:] for other in ("full", "plain")]
    heads = ["directions", *ways, *(f"{way} / {other}" for way, other in pairs)]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        speeds = [f"{speed:.1f}" for speed in row.speed.values()]
        ratios = [f"{row.ratio(*pair):.2f}" for pair in pairs]
        lines.append(f"| {' | '.join([str(row.directions), *speeds, *ratios])} |")
    return "\n".join(lines)


def _transformers(name: str, dtype: str, rank: int, tokens: int) -> dict[str, Any]:
    from eoh_esopt.models.fetch import resolve
    from eoh_esopt.models.progress import Progress
    from eoh_esopt.models.protocol import Sampling
    from eoh_esopt.models.scopes import get_scope
    from eoh_esopt.models.transformers_model import TransformersModel

    folder = resolve(name, progress=Progress())
    scopes = {"full": get_scope("full"), "lowrank": get_scope("full", rank), "norms": get_scope("norms")}
    sampling = Sampling(max_new_tokens=tokens)
    models = {way: TransformersModel(folder, scope=one, sampling=sampling, dtype=dtype) for way, one in scopes.items()}
    for model in models.values():
        model._ends = [_NO_TOKEN]
    return {"plain": models["norms"], **models}


def _vllm(name: str, dtype: str, rank: int, tokens: int) -> dict[str, Any]:
    from vllm import SamplingParams

    from eoh_esopt.models.fetch import resolve
    from eoh_esopt.models.progress import Progress
    from eoh_esopt.models.protocol import Sampling
    from eoh_esopt.models.vllm.model import VllmModel

    def endless(request: Any, room: int) -> Any:
        return SamplingParams(temperature=0.8, max_tokens=room, ignore_eos=True, seed=request.seed)

    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "0-1")
    folder, sampling = resolve(name, progress=Progress()), Sampling(max_new_tokens=tokens)
    sizes: dict[str, Any] = {"dtype": dtype, "max_batch": 32, "max_model_len": 512}
    scopes: dict[str, dict[str, Any]] = {
        "full": {"scope": "full"},
        "lowrank": {"scope": "full", "rank": rank},
        "norms": {"scope": "norms"},
    }
    models = {way: VllmModel(folder, sampling=sampling, **one, **sizes) for way, one in scopes.items()}
    for model in models.values():
        model._params = endless  # type: ignore[method-assign]
    return {"plain": models["full"], **models}


def _row(models: dict[str, Any], count: int, tokens: int, repeats: int) -> Row:
    best = dict.fromkeys(models, float("inf"))
    for _ in range(repeats):
        for way in models:
            replies = min(count, _ALONE) if way == "full" else count
            seconds = _timed(partial(_write, models, way, replies))
            best[way] = min(best[way], seconds / replies)
    return Row(count, {way: tokens / seconds for way, seconds in best.items()})


def _write(models: dict[str, Any], way: str, count: int) -> None:
    """Write `count` replies, each under its own direction unless the way is plain."""
    from eoh_esopt.models.protocol import Request
    from operators.records import Direction

    sigma = 0.06 if way == "norms" else 1e-3
    directions = [None if way == "plain" else Direction(seed, sigma) for seed in range(count)]
    requests = [Request(PROMPT, "", seed, direction) for seed, direction in enumerate(directions)]
    for batch in models[way].batches(requests):
        models[way].generate([requests[i] for i in batch])


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
