"""Tokens a second when every reply is written under a direction of its own.

    python -m benchmarks.es_generation --model SmolLM2-135M-Instruct [--dtype bfloat16] [--repeats 3] [--json FILE]

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
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eoh_esopt.models.transformers_model import TransformersModel

PROMPT = "Write a Python function that visits every node of a graph once and returns to the first. " * 2
WAYS = ("plain", "full", "lowrank", "norms")
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
    parser.add_argument("--dtype", default="bfloat16", help="bfloat16 or float32")
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=64, help="tokens of each reply")
    parser.add_argument("--directions", default="1,10,30", help="replies of a batch; comma-separated")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin slow each other down
    counts = [int(count) for count in arguments.directions.split(",")]
    rows = measure(arguments.model, arguments.dtype, arguments.rank, arguments.tokens, counts, arguments.repeats)
    print(f"{arguments.model}, {arguments.dtype}, rank {arguments.rank}, {arguments.tokens} tokens a reply\n")
    print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def measure(name: str, dtype: str, rank: int, tokens: int, counts: Sequence[int], repeats: int) -> list[Row]:
    """Time every way at every number of directions."""
    models = _open(name, dtype, rank, tokens)
    for way in WAYS:
        _write(models, way, 2)  # compiles kernels, warms caches
    return [_row(models, count, tokens, repeats) for count in counts]


def table(rows: Sequence[Row]) -> str:
    """The figures in Markdown."""
    lines = [
        f"| directions | {' | '.join(WAYS)} | lowrank / full | lowrank / plain | norms / full | norms / plain |",
        f"|{'---|' * (len(WAYS) + 5)}",
    ]
    pairs = [(way, other) for way in ("lowrank", "norms") for other in ("full", "plain")]
    for row in rows:
        speeds = [f"{row.speed[way]:.1f}" for way in WAYS]
        ratios = [f"{row.ratio(*pair):.2f}" for pair in pairs]
        lines.append(f"| {' | '.join([str(row.directions), *speeds, *ratios])} |")
    return "\n".join(lines)


def _open(name: str, dtype: str, rank: int, tokens: int) -> dict[str, TransformersModel]:
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
    return {**models, "plain": models["norms"]}


def _row(models: dict[str, TransformersModel], count: int, tokens: int, repeats: int) -> Row:
    best = dict.fromkeys(WAYS, float("inf"))
    for _ in range(repeats):
        for way in WAYS:
            replies = min(count, _ALONE) if way == "full" else count
            seconds = _timed(lambda way=way, replies=replies: _write(models, way, replies))
            best[way] = min(best[way], seconds / replies)
    return Row(count, {way: tokens / seconds for way, seconds in best.items()})


def _write(models: dict[str, TransformersModel], way: str, count: int) -> None:
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
