"""Does the model learn? Three arms at the same budget and seeds, and what became of their candidates over the updates.

esopt-eoh learns, eoh has frozen weights, and the control learns from rewards dealt out at random. Cells that are
finished are not run again; a cell that was cut short is resumed.

    python benchmarks/learning.py --out runs/learning            # run what is missing, then print the tables
    python benchmarks/learning.py --out runs/learning --table    # print the tables of what there is
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ARMS = {
    "esopt-eoh": ("--method", "esopt-eoh"),
    "eoh": ("--method", "eoh"),
    "shuffled": ("--method", "esopt-eoh", "--shuffle-rewards"),
}
SETTINGS = {
    "--model": "Qwen2.5-Coder-0.5B-Instruct",
    "--scope": "norms",
    "--population": "4",
    "--directions": "12",
    "--samples-per-direction": "4",
    "--budget": "520",
    "--max-new-tokens": "64",
}
MEASURES = ("valid", "new", "better")


def main() -> None:
    """Run the cells that are missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of all cells")
    parser.add_argument("--seeds", default="1,2,3", help="comma-separated; default 1,2,3")
    parser.add_argument("--table", action="store_true", help="only print the tables")
    arguments, options = parser.parse_known_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    for seed in seeds:
        for arm in ARMS:
            if not arguments.table:
                run_cell(arguments.out / f"{arm}-{seed}", arm, seed, options)
    for measure in MEASURES:
        print(f"\n{measure}: share of the m1 and m2 candidates, by generation (mean over seeds; last column: gain)\n")
        print_table(arguments.out, seeds, measure)


def run_cell(folder: Path, arm: str, seed: int, options: Sequence[str]) -> None:
    """One run, begun or resumed; finished ones return at once."""
    command = [sys.executable, "-m", "eoh_esopt", "run"]
    if (folder / "events.jsonl").exists():
        command += ["--resume", str(folder)]
    else:
        settings = [word for pair in SETTINGS.items() for word in pair]
        command += ["tsp_construct", *settings, *ARMS[arm], "--seed", str(seed), "--out", str(folder), *options]
    subprocess.run(command, check=True)


def rates(folder: Path, measure: str) -> list[float]:
    """The measure's share of the mutation candidates in each generation of one run."""
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    parents = {
        one["id"]: one["parents"] for event in lines if event["event"] == "replies" for one in event["candidates"]
    }
    objective: dict[int, float] = {}
    by_generation: dict[int, list[bool]] = {}
    for event in lines:
        if event["event"] != "batch":
            continue
        for offset, (value, copy) in enumerate(zip(event["objectives"], event["duplicate_of"], strict=True)):
            candidate = event["ids"][0] + offset
            if value is not None:
                objective[candidate] = value
            if event["operator"] not in ("m1", "m2"):
                continue
            valid = value is not None
            new = valid and copy is None
            better = new and value < min(objective[parent] for parent in parents[candidate])
            flag = {"valid": valid, "new": new, "better": better}[measure]
            by_generation.setdefault(event["generation"], []).append(flag)
    return [float(np.mean(flags)) for _, flags in sorted(by_generation.items())]


def print_table(out: Path, seeds: Sequence[int], measure: str) -> None:
    """One row an arm: mean over the seeds of each generation, and each seed's gain of the last two over the first."""
    header_done = False
    for arm in ARMS:
        cells = [out / f"{arm}-{seed}" for seed in seeds]
        curves = np.array([rates(cell, measure) for cell in cells if (cell / "summary.json").exists()])
        if not len(curves):
            continue
        if not header_done:
            print("| arm | " + " | ".join(f"gen {g + 1}" for g in range(curves.shape[1])) + " | gain, by seed |")
            print("|---|" + "---|" * (curves.shape[1] + 1))
            header_done = True
        gains = curves[:, -2:].mean(axis=1) - curves[:, 0]
        means = " | ".join(f"{value:.2f}" for value in curves.mean(axis=0))
        print(f"| {arm} ({len(curves)} seeds) | {means} | {', '.join(f'{gain:+.2f}' for gain in gains)} |")


if __name__ == "__main__":
    main()
