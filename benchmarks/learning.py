"""Does the model learn? Three arms at the same budget and seeds, and what became of their candidates over the updates.

esopt-eoh learns, eoh has frozen weights, and the control learns from rewards dealt out at random. Cells that are
finished are not run again; a cell that was cut short is resumed.

During a search sigma falls, the population changes and what is new gets harder to find, so curves over the updates mix
learning with all that. The last table does not: it takes the weights at the end of each arm, frozen and unperturbed,
and lets each write the same first generation from the seed heuristics.

    python benchmarks/learning.py --out runs/learning            # run what is missing, then print the tables
    python benchmarks/learning.py --out runs/learning --table    # print the tables of what there is
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from operators.records import Candidate, Outcome, Proposal, Status
from operators.rewards import LEVELS, Trial, level

ARMS = {
    "esopt-eoh": ("--method", "esopt-eoh"),
    "eoh": ("--method", "eoh"),
    "shuffled": ("--method", "esopt-eoh", "--shuffle-rewards"),
}
SETTINGS = {
    "--model": "SmolLM2-135M-Instruct",
    "--scope": "norms",
    "--population": "4",
    "--directions": "10",
    "--samples-per-direction": "4",
    "--budget": "440",
    "--max-new-tokens": "80",
}
FROZEN = {"--method": "eoh", "--budget": "152", "--directions": "18", "--seed": "100"}
"""One generation of 72 m1 and 72 m2 candidates from the seed heuristics, with frozen weights."""
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
                run_cell(arguments.out / f"{arm}-{seed}", [*ARMS[arm], "--seed", str(seed), *options])
    if not arguments.table:
        run_frozen(arguments.out, seeds, options)
    print("\nsignal in the graded reward: spread of the directions' means, its part due to the directions, within\n")
    for arm in ("esopt-eoh", "shuffled"):
        for seed in seeds:
            if (arguments.out / f"{arm}-{seed}" / "summary.json").exists():
                print(f"{arm} seed {seed}: " + ", ".join(f"{v:.3f}" for v in signal(arguments.out / f"{arm}-{seed}")))
    print("\nresult\n\n| arm | best objective, by seed | minutes, by seed | updates, by seed |\n|---|---|---|---|")
    for arm in ARMS:
        print_results(arguments.out, arm, seeds)
    for measure in MEASURES:
        print(f"\n{measure}: share of the m1 and m2 candidates, by generation (mean over seeds; last column: gain)\n")
        print_table(arguments.out, seeds, measure)
    print("\nfrozen weights at the end of each arm, unperturbed\n")
    print_frozen(arguments.out, ("esopt-eoh", "shuffled"), seeds)


def run_cell(folder: Path, options: Sequence[str]) -> None:
    """One run, begun or resumed; finished ones return at once."""
    if (folder / "events.jsonl").exists():
        command = ["run", "--resume", str(folder)]
    else:
        settings = [word for pair in SETTINGS.items() for word in pair]
        command = ["run", "tsp_construct", *settings, *options, "--out", str(folder)]
    subprocess.run([sys.executable, "-m", "eoh_esopt", *command], check=True)


def run_frozen(out: Path, seeds: Sequence[int], options: Sequence[str]) -> None:
    """The same first generation from the base weights and from the weights at the end of each arm that learns."""
    frozen = [word for pair in FROZEN.items() for word in pair]
    run_cell(out / "frozen-base", [*options, *frozen])
    for cell in (out / f"{arm}-{seed}" for seed in seeds for arm in ("esopt-eoh", "shuffled")):
        adapted = out / f"weights-{cell.name}"
        if not adapted.exists():
            command = [sys.executable, "-m", "eoh_esopt", "replay", str(cell), "--save", str(adapted)]
            subprocess.run(command, check=True)
        run_cell(out / f"frozen-{cell.name}", [*options, *frozen, "--model", str(adapted)])


@dataclass(frozen=True)
class Mutation:
    """One m1 or m2 candidate of a run: where it stands, its direction, and how far up the ladder it came."""

    generation: int
    batch: int
    direction: int | None
    level: int


def mutations(folder: Path) -> Iterator[Mutation]:
    """The m1 and m2 candidates of one run, in order."""
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    replies = {one["id"]: one for event in lines if event["event"] == "replies" for one in event["candidates"]}
    outcomes = {event["id"]: event for event in lines if event["event"] == "outcome"}
    objective: dict[int, float] = {}
    for event in (event for event in lines if event["event"] == "batch"):
        rows = zip(event["statuses"], event["objectives"], event["duplicate_of"], strict=True)
        for number, (status, value, copy) in enumerate(rows, event["ids"][0]):
            if value is not None:
                objective[number] = value
            if event["operator"] in ("m1", "m2"):
                reply = replies[number]
                original = number if copy is None else copy
                calls = outcomes.get(original, {"calls": 0})["calls"]
                outcome = Outcome(Status(status), value, calls=calls, duplicate_of=copy)
                parents = tuple(Candidate(one, "", "", "", objective[one]) for one in reply["parents"])
                trial = Trial(Proposal(event["operator"], "", "", parents), outcome, 0.0)
                yield Mutation(event["generation"], event["ids"][0], reply["direction"], level(trial))


def rates(folder: Path, measure: str) -> list[float]:
    """The measure's share of the mutation candidates in each generation of one run."""
    by_generation: dict[int, list[bool]] = {}
    for one in mutations(folder):
        by_generation.setdefault(one.generation, []).append(one.level >= LEVELS.index(measure))
    return [float(np.mean(flags)) for _, flags in sorted(by_generation.items())]


def signal(folder: Path) -> tuple[float, float, float]:
    """Spread of the directions' mean rungs, the part that belongs to the directions, and that of single candidates.

    The second is the between-direction variance component of a one-way analysis of variance over each batch.
    """
    batches: dict[int, dict[int, list[int]]] = {}
    for one in mutations(folder):
        if one.direction is not None:
            batches.setdefault(one.batch, {}).setdefault(one.direction, []).append(one.level)
    groups = [np.array(list(directions.values()), float) / (len(LEVELS) - 1) for directions in batches.values()]
    of_means = np.mean([group.mean(axis=1).var(ddof=1) for group in groups])
    within = np.mean([group.var(axis=1, ddof=1).mean() for group in groups])
    between = max(of_means - within / groups[0].shape[1], 0.0)
    return float(of_means**0.5), float(between**0.5), float(within**0.5)


def print_frozen(out: Path, arms: Sequence[str], seeds: Sequence[int]) -> None:
    """One row a set of weights: shares among the candidates of the same first generation, unperturbed."""
    print("| weights | candidates | valid | new | mean rung |\n|---|---|---|---|---|")
    for name in ("base", *(f"{arm}-{seed}" for arm in arms for seed in seeds)):
        if (out / f"frozen-{name}" / "summary.json").exists():
            rungs = np.array([one.level for one in mutations(out / f"frozen-{name}")])
            valid, new = ((rungs >= LEVELS.index(measure)).mean() for measure in ("valid", "new"))
            error = rungs.std() / len(rungs) ** 0.5
            print(f"| {name} | {len(rungs)} | {valid:.2f} | {new:.2f} | {rungs.mean():.2f} +- {error:.2f} |")


def print_results(out: Path, arm: str, seeds: Sequence[int]) -> None:
    """One row: what each finished run of an arm found, how long it took and how often its weights moved."""
    files = [out / f"{arm}-{seed}" / "summary.json" for seed in seeds]
    found = [json.loads(file.read_text()) for file in files if file.exists()]
    best = ", ".join(f"{one['best']['objective']:.4f}" for one in found)
    minutes = ", ".join(f"{one['seconds'] / 60:.1f}" for one in found)
    print(f"| {arm} | {best} | {minutes} | {', '.join(str(one['ledger']['updates']) for one in found)} |")


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
