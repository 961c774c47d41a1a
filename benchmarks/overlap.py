"""What a batch gains when its candidates are evaluated while the next are written.

    python -m benchmarks.overlap [--problem aco_cvrp] [--instances 10] [--model SmolLM2-135M-Instruct] [--repeats 3]

A batch of ten directions, one reply each, by two writers. `elsewhere` takes `--reply` seconds without this machine's
processor, as a GPU or a server does. `here` writes with the model on the processor that candidates run on (perturb,
write `--tokens` tokens, restore). What is evaluated is not the replies but ten versions of the problem's first seed
heuristic, so that all run to their end. Both orders take turns, and the fastest of the repeats counts. The two bounds
are the time of the writing alone and of the evaluation alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence

from eoh_esopt.engine.ahead import Ahead, Evaluates
from eoh_esopt.sandbox.evaluator import Evaluator
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.records import Outcome

_DIRECTIONS = 10
_PROMPT = "Write a Python function that visits every node of a graph once and returns to the first. " * 2
Write = Callable[[int], object]


class Afterwards:
    """The same evaluator, given all candidates when the last one is written."""

    def __init__(self, inner: Evaluator) -> None:
        self._inner = inner

    def evaluate(self, codes: Sequence[str]) -> Iterator[tuple[int, Outcome]]:
        """See `Evaluates`."""
        return self._inner.evaluate(codes)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", default="aco_cvrp")
    parser.add_argument("--instances", type=int, default=10, help="of the training set")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--reply", type=float, default=0.5, help="seconds that a reply takes elsewhere")
    parser.add_argument("--tokens", type=int, default=32, help="of a reply that is written here")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    spec = ProblemSpec.named(arguments.problem, n_instances=arguments.instances)
    code = spec.build().task.seeds[0].code
    writers = {"elsewhere": lambda _: time.sleep(arguments.reply), "here": _writer(arguments.model, arguments.tokens)}
    print("| writer | written, then evaluated | overlapped | gain | writing alone | evaluation alone |")
    print("|---|---|---|---|---|---|")
    with Evaluator(spec, workers=arguments.workers) as evaluator:
        list(evaluator.evaluate([code]))  # compiles what the score needs
        for name, write in writers.items():
            print(_row(name, write, evaluator, code, arguments.repeats), flush=True)


def _row(name: str, write: Write, evaluator: Evaluator, code: str, repeats: int) -> str:
    codes = [f"{code}# {number}\n" for number in range(_DIRECTIONS)]
    write(0)
    works: list[Callable[[], object]] = [
        lambda: _batch(Afterwards(evaluator), write, codes),
        lambda: _batch(evaluator, write, codes),
        lambda: [write(number) for number in range(_DIRECTIONS)],
        lambda: list(evaluator.evaluate(codes)),
    ]
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, found in zip(works, times, strict=True):
            found.append(_seconds(work))
    after, ahead, writing, evaluation = (min(found) for found in times)
    gain = f"{1 - ahead / after:.0%}"
    return f"| {name} | {after:.2f} s | {ahead:.2f} s | {gain} | {writing:.2f} s | {evaluation:.2f} s |"


def _batch(evaluator: Evaluates, write: Write, codes: Sequence[str]) -> None:
    with Ahead(evaluator) as ahead:
        for number, code in enumerate(codes):
            write(number)
            ahead.add(number, code)
        found = list(ahead.outcomes())
    assert all(outcome.valid for _, outcome in found)


def _writer(name: str, tokens: int) -> Write:
    """Writes a reply of fixed length under a direction of its own."""
    from eoh_esopt.models.fetch import resolve
    from eoh_esopt.models.progress import Progress
    from eoh_esopt.models.protocol import Request, Sampling
    from eoh_esopt.models.scopes import get_scope
    from eoh_esopt.models.transformers_model import TransformersModel
    from operators.records import Direction

    sampling = Sampling(max_new_tokens=tokens)
    model = TransformersModel(resolve(name, progress=Progress()), scope=get_scope("full"), sampling=sampling)
    model._ends = [1 << 30]  # no token has this number, so every reply is as long as the limit
    return lambda seed: model.generate([Request(_PROMPT, "", seed, Direction(seed, 1e-3))])


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
