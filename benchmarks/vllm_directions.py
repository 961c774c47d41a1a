"""What a direction costs under vLLM: perturb, generate, restore, beside generation alone; and the memory it takes.

    python -m benchmarks.vllm_directions [--model NAME] [--tokens 256] [--repeats 5]

Run it in an environment with vLLM (scripts/test_vllm.sh makes one). Every reply is as long as the limit. Memory is the
private resident memory of vLLM's processes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_REPLIES = 10
_PROMPT = "Write a short Python function. " * 20


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--tokens", type=int, default=256, help="tokens of each reply")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "0-1")
    measure(arguments.model, arguments.tokens, arguments.repeats)


def measure(name: str, tokens: int, repeats: int) -> None:
    """Start the model, time both sides in turn, print a table."""
    from eoh_esopt.models.fetch import resolve
    from eoh_esopt.models.progress import Progress
    from eoh_esopt.models.protocol import Sampling
    from eoh_esopt.models.vllm.model import VllmModel
    from operators.records import Direction, Update

    plain_memory = _plain_memory(resolve(name, progress=Progress()), tokens, repeats)
    model = VllmModel(resolve(name, progress=Progress()), scope="full", sampling=Sampling(), max_batch=16)
    direction = Direction(seed=7, sigma=1e-4)

    def write() -> None:
        _write(model._llm, tokens)

    def cycle() -> None:
        with model._under(direction):
            write()

    def update() -> None:
        model.apply(Update(0, tuple(range(10)), (0.0,) * 10, (1e-3,) * 10, 1e-5, 1e-4))

    parts: dict[str, Callable[[], object]] = {
        f"generate {_REPLIES} x {tokens} tokens": write,
        "perturb, generate, restore": cycle,
        "perturb": lambda: model._llm.collective_rpc("es_perturb", args=(7, 1e-4)),
        "restore": lambda: model._llm.collective_rpc("es_restore"),
        "update of 10 directions": update,
    }
    for work in parts.values():
        work()
    times: dict[str, list[float]] = {what: [] for what in parts}
    for _ in range(repeats):
        for what, work in parts.items():
            times[what].append(_timed(work))
    medians = [statistics.median(found) for found in times.values()]
    for what, median in zip(parts, medians, strict=True):
        print(f"{what:28} {median:7.3f} s")
    print(f"a direction costs {medians[1] / medians[0] - 1:.1%} more than generation alone")
    print(
        f"memory of vLLM's processes: {_children_memory():.0f} MiB, plain vLLM {plain_memory:.0f} MiB, masters "
        f"{model.describe()['extra_bytes'] / 2**20:.0f} MiB"
    )
    model.close()


def _write(llm: Any, tokens: int) -> None:
    from vllm import SamplingParams

    params = SamplingParams(temperature=0.8, max_tokens=tokens, ignore_eos=True, seed=1)
    llm.generate([_PROMPT] * _REPLIES, params, use_tqdm=False)


def _plain_memory(folder: Path, tokens: int, repeats: int) -> float:
    """Of vLLM alone, after as much writing as is timed."""
    from vllm import LLM

    plain = LLM(str(folder), enforce_eager=True, max_num_seqs=16, disable_log_stats=True)
    for _ in range(2 * (repeats + 1)):
        _write(plain, tokens)
    memory = _children_memory()
    plain.llm_engine.engine_core.shutdown()
    return memory


def _children_memory() -> float:
    """Private resident memory of all descendants of this process, in MiB."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    mine, total = {os.getpid()}, 0.0
    while grown := {child for child, parent in parents.items() if parent in mine} - mine:
        mine |= grown
    for pid in mine - {os.getpid()}:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty", "Private_Clean")))
    return total / 1024


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
