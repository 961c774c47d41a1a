"""How far updates get with low-rank and with full noise, where the reward is exact: the log-probability of a text.

    python -m benchmarks.lowrank_steps --model SmolLM2-135M-Instruct [--seeds 1,2] [--json FILE]

A search's rewards are too noisy to tell kinds of noise apart within minutes. Here a direction's reward is the mean
log-probability that the model gives to the tokens of a fixed program after a fixed request, so every update of G
directions shows what they are worth. Seeds, sigma and alpha are the same for all kinds; the table shows the gain over
the beginning. `damage` is what a direction costs on average before the first update: log-probability without noise less
the mean under directions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS: dict[str, int | None] = {"full": None, "lowrank 1": 1, "lowrank 2": 2, "lowrank 4": 4}


@dataclass(frozen=True)
class Climb:
    """What became of one kind of noise with one seed.

    Attributes:
        kind: a key of `KINDS`.
        seed: of the directions.
        damage: log-probability lost under a direction, before the first update.
        spread: standard deviation of the first directions' rewards.
        gains: log-probability gained after each update.
    """

    kind: str
    seed: int
    damage: float
    spread: float
    gains: tuple[float, ...]


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"comma-separated; default {','.join(KINDS)}")
    parser.add_argument("--seeds", default="1,2", help="comma-separated; default 1,2")
    parser.add_argument("--directions", type=int, default=30)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--sigma", type=float, default=1e-3)
    parser.add_argument("--alpha", type=float, default=5e-4)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    climbs = [
        climb(arguments, kind, int(seed)) for seed in arguments.seeds.split(",") for kind in arguments.kinds.split(",")
    ]
    print(table(climbs))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in climbs], indent=1) + "\n")


def table(climbs: Sequence[Climb]) -> str:
    """The figures in Markdown: gains after the first update, half of them, and all."""
    lines = ["| noise | seed | damage | spread of rewards | gain after 1 | after half | after all |", "|---" * 7 + "|"]
    for one in climbs:
        gains = (one.gains[0], one.gains[len(one.gains) // 2 - 1], one.gains[-1])
        figures = " | ".join(f"{value:+.4f}" for value in (one.damage, one.spread, *gains))
        lines.append(f"| {one.kind} | {one.seed} | {figures} |")
    return "\n".join(lines)


def climb(settings: argparse.Namespace, kind: str, seed: int) -> Climb:
    """Updates from the rewards of `directions` directions each."""
    from operators.records import Direction, Update
    from operators.shaping import z_score

    model, tokens, given = _opened(settings.model, KINDS[kind])
    rng, found, gains = np.random.default_rng(seed), [], []
    start = _rewards(model, tokens, given, [None])[0]
    for step in range(settings.updates):
        seeds = [int(one) for one in rng.integers(2**63, size=settings.directions)]
        rewards = _rewards(model, tokens, given, [Direction(one, settings.sigma) for one in seeds])
        found.append(rewards)
        weights = tuple(z_score(rewards, rng).tolist())
        model.apply(Update(step, tuple(seeds), tuple(rewards.tolist()), weights, settings.alpha, settings.sigma))
        gains.append(float(_rewards(model, tokens, given, [None])[0] - start))
    return Climb(kind, seed, float(start - found[0].mean()), float(found[0].std()), tuple(gains))


def _opened(name: str, rank: int | None) -> tuple[Any, list[int], int]:
    """The model, the tokens of request and program, and how many of them are the request's."""
    from eoh_esopt.models import chat
    from eoh_esopt.models.fetch import resolve
    from eoh_esopt.models.progress import Progress
    from eoh_esopt.models.protocol import Sampling
    from eoh_esopt.models.scopes import get_scope
    from eoh_esopt.models.transformers_model import TransformersModel
    from problems import registry

    folder = resolve(name, progress=Progress())
    model = TransformersModel(folder, scope=get_scope("full", rank), sampling=Sampling(max_new_tokens=1))
    task = registry.get("tsp_construct").task
    request = chat.render(model._tokenizer, f"Write {task.function} for the travelling salesman problem.", "")
    [begin, program] = chat.encode(model._tokenizer, [request, f"```python\n{task.seeds[0].code}\n```"])
    return model, begin + program, len(begin)


def _rewards(model: Any, tokens: list[int], given: int, directions: Sequence[Any]) -> NDArray[np.float64]:
    """Mean log-probability of the program's tokens under each direction."""
    import torch

    batches = [list(directions)] if model._scope.per_row else [[one] for one in directions]
    found = []
    for batch in batches:
        rows = torch.tensor([tokens] * len(batch))
        with torch.no_grad(), model._under(batch):
            logits = model._model(input_ids=rows).logits[:, given - 1 : -1]
        logs = torch.log_softmax(logits.double(), dim=2).gather(2, rows[:, given:, None])
        found += logs.mean(dim=(1, 2)).tolist()
    return np.array(found)


if __name__ == "__main__":
    main()
