"""What low-rank noise costs in search quality: the same searches, on the same seeds, with full and with low-rank noise.

The first generation's m1 is written before any update, under directions of the same sigma: there the arms differ by the
noise alone. The last generation has sigma 0. Cells that are finished are not run again. A search of this size is too
short to tell kinds of noise apart unless one of them breaks the model; `benchmarks/lowrank_steps.py` is not.

    python -m benchmarks.lowrank_quality --out runs/lowrank              # run what is missing, then print the tables
    python -m benchmarks.lowrank_quality --out runs/lowrank --table      # print the tables of what there is
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.learning import mutations, run_cell, signal
from operators.rewards import LEVELS

ARMS = {"full": ("--noise", "full")} | {
    f"lowrank-{rank}": ("--noise", "lowrank", "--rank", str(rank)) for rank in (1, 4)
}
SETTINGS = {
    "--scope": "full",
    "--population": "2",
    "--directions": "8",
    "--samples-per-direction": "4",
    "--budget": "204",
    "--max-new-tokens": "80",
}
"""Three generations, four updates: sigma falls to 0, so the last generation is the adapted weights' own."""


def main() -> None:
    """Run the cells that are missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of all cells")
    parser.add_argument("--seeds", default="1,2", help="comma-separated; default 1,2")
    parser.add_argument("--arms", default=",".join(ARMS), help=f"comma-separated; default {','.join(ARMS)}")
    parser.add_argument("--table", action="store_true", help="only print the tables")
    arguments, options = parser.parse_known_args()
    seeds, arms = [int(seed) for seed in arguments.seeds.split(",")], arguments.arms.split(",")
    if not arguments.table:
        settings = [word for pair in SETTINGS.items() for word in pair]
        for seed in seeds:
            for arm in arms:
                run_cell(arguments.out / f"{arm}-{seed}", [*settings, *ARMS[arm], "--seed", str(seed), *options])
    print_table(arguments.out, arms, seeds)


def print_table(out: Path, arms: Sequence[str], seeds: Sequence[int]) -> None:
    """One row a finished run: its m1 and m2 candidates by generation, and the signal in their rewards."""
    print("| noise, seed | valid, by generation | mean reward, by generation | signal | best | minutes |")
    print("|---|---|---|---|---|---|")
    for arm in arms:
        for folder in (out / f"{arm}-{seed}" for seed in seeds):
            if (folder / "summary.json").exists():
                print(f"| {folder.name.replace('-', ' ')} | {_cells(folder)} |")


def _cells(folder: Path) -> str:
    """The figures of one run: reward is the graded one, the share of the ladder that a candidate climbed."""
    rungs: dict[int, list[int]] = {}
    for one in mutations(folder):
        rungs.setdefault(one.generation, []).append(one.level)
    valid = [np.mean(np.array(levels) >= LEVELS.index("valid")) for _, levels in sorted(rungs.items())]
    reward = [np.mean(levels) / (len(LEVELS) - 1) for _, levels in sorted(rungs.items())]
    _, between, within = signal(folder)
    summary = json.loads((folder / "summary.json").read_text())
    shares = (", ".join(f"{value:.2f}" for value in values) for values in (valid, reward))
    ends = (f"{between:.3f} of {within:.3f}", f"{summary['best']['objective']:.4f}", f"{summary['seconds'] / 60:.1f}")
    return " | ".join([*shares, *ends])


if __name__ == "__main__":
    main()
