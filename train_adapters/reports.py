"""A training on the terminal: lines as it goes, and a table at its end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from train_adapters.diagnostics import GenerationReport
from train_adapters.evaluation import CONFIDENCE, Evaluation
from train_adapters.failures import failure_lines
from train_adapters.ledger import TrainLedger
from train_adapters.listener import TrainListener
from train_adapters.skills.verdict import Verdict


class LineListener(TrainListener):
    """One line a generation and one an evaluation; on a terminal also bars of the generations and the episodes."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self._console = console
        self._progress = progress
        self._began = time.monotonic()
        self._generations = self._episodes = progress.add_task("", total=None, visible=False)

    def say(self, message: str) -> None:
        """A line of news."""
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)

    def on_start(self, facts: dict[str, Any]) -> None:
        config = facts["config"]
        counts = ", ".join(f"{one['tasks']} {split}" for split, one in facts["dataset"].items())
        self.say(f"{config['adapter']} with {config['model']}: {counts} tasks, seed {config['seed']}")
        self.say(
            f"{config['generations']} generations of {config['directions']} directions x {config['batch']} tasks x "
            f"{config['samples']}, sigma {config['sigma']:g} to {config['sigma_final']:g} "
            f"({config['sigma_schedule']}), alpha {config['alpha']:g}, scope {config['scope']}"
        )
        if "planned" in facts:
            check = 2 * config["batch"] * config["skill_check"]
            self.say(
                f"co-evolution {config['co_evolve']}: {facts['planned']} generations, the skill is revised for every "
                f"{config['skill_every']}, each checked by {check} episodes of the same budget"
            )
        if facts["event"] == "resume":
            self.say("resumed")
        self._generations = self._progress.add_task("generations", total=facts.get("planned", config["generations"]))

    def on_rollouts(self, what: str, count: int) -> None:
        self._progress.remove_task(self._episodes)
        self._episodes = self._progress.add_task(what, total=count)

    def on_episodes(self, count: int) -> None:
        self._progress.advance(self._episodes, count)

    def on_generation(self, report: GenerationReport, ledger: TrainLedger) -> None:
        self._progress.advance(self._generations)
        minutes = (time.monotonic() - self._began) / 60
        self.say(f"[{minutes:6.1f} min] {generation_line(report)}")

    def on_evaluation(self, generation: int, evaluation: Evaluation) -> None:
        minutes = (time.monotonic() - self._began) / 60
        when = "before training" if generation < 0 else f"after generation {generation + 1}"
        self.say(f"[{minutes:6.1f} min] {evaluation.split} {when}: {evaluation_line(evaluation)}")

    def on_skill(self, proposal: Mapping[str, Any], verdict: Verdict | None) -> None:
        minutes = (time.monotonic() - self._began) / 60
        self.say(f"[{minutes:6.1f} min] {skill_line(proposal, verdict)}")


@contextmanager
def watch(console: Console | None = None) -> Iterator[LineListener]:
    """A listener for as long as the block runs, on the standard output unless another console is given."""
    console = Console() if console is None else console
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(
        TextColumn("{task.description}"), *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield LineListener(console, progress)


def generation_line(report: GenerationReport) -> str:
    """A generation in one line."""
    parts = [
        f"generation {report.generation + 1:3}",
        f"sigma {report.sigma:.2e}",
        f"reward {_number(report.reward)} +- {_number(report.spread)}",
        f"turns {_number(report.horizon, 1)}" + (f" of {report.minimum_horizon:.1f}" if report.minimum_horizon else ""),
        ", ".join(f"{count} {name}" for name, count in sorted(report.endings.items())),
    ]
    if report.skipped:
        parts.append(f"no update: {report.skipped}")
    if report.failure:
        parts.append(f"such as: {report.failure}")
    return "  ".join(parts)


def skill_line(proposal: Mapping[str, Any], verdict: Verdict | None) -> str:
    """A revision of the skill in one line."""
    learnt = f"{proposal['lessons']} lessons of {proposal['read']} trajectories, {proposal['made']} edits"
    lost = f", {len(proposal['failures'])} questions without an answer" if proposal["failures"] else ""
    head = f"skill revision {proposal['revision']}: {learnt}{lost}"
    if verdict is None:
        return f"{head}: {proposal['outcome']} ({proposal['reason']})"
    interval = "" if verdict.low is None else f" (95 % interval {verdict.low:+.3f} to {verdict.high:+.3f})"
    rewards = f"reward {_number(verdict.before)} to {_number(verdict.after)} over {verdict.pairs} pairs{interval}"
    return f"{head}: {'kept' if verdict.accepted else f'taken back, {verdict.reason}'}; {rewards}"


def evaluation_line(evaluation: Evaluation) -> str:
    """An evaluation in one line."""
    interval = ""
    if evaluation.low is not None and evaluation.high is not None:
        interval = f" ({CONFIDENCE:.0%} interval {evaluation.low:.3f} to {evaluation.high:.3f} over tasks)"
    repeats = " ".join(_number(one) for one in evaluation.repeats)
    spread = "" if evaluation.spread is None else f", repeats {repeats}, std {evaluation.spread:.3f}"
    endings = ", ".join(f"{count} {name}" for name, count in sorted(evaluation.endings.items()))
    return (
        f"mean reward {_number(evaluation.mean)}{interval}{spread}, turns {_number(evaluation.horizon, 1)}; {endings}"
    )


def print_generations(console: Console, generations: Sequence[Mapping[str, Any]]) -> None:
    """A table of the diagnostics of every generation; of many, evenly chosen ones.

    "flat" is the share of directions all of whose episodes had the same reward, "least" the fewest turns that solve the
    tasks, "no action" the share of replies without one.

    Args:
        console: to print on.
        generations: the log's events of that kind.
    """
    step = -(-len(generations) // _ROWS)
    table = Table(title="Generations", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("gen", "sigma", "reward", "spread", "flat", "turns", "least", "no action", "tokens", "update"):
        table.add_column(name, justify="right")
    for one in generations:
        if one["generation"] % step and one is not generations[-1]:
            continue
        table.add_row(
            str(one["generation"] + 1),
            f"{one['sigma']:.1e}",
            *(_number(one[name]) for name in ("reward", "spread")),
            _share(one["flat_directions"]),
            *(_number(one[name], 1) for name in ("horizon", "minimum_horizon")),
            _share(one["unparsed"]),
            f"{one['tokens'] / 1e3:,.0f}k",
            "none" if one["skipped"] else "made",
        )
    console.print(table)


_ROWS = 20


def print_summary(console: Console, summary: Mapping[str, Any], generations: Sequence[Mapping[str, Any]]) -> None:
    """What a training ended with.

    Args:
        console: to print on.
        summary: as in `summary.json`.
        generations: the log's events of that kind.
    """
    if generations:
        print_generations(console, generations)
    table = Table(show_header=False, title="Training")
    for name, text in _facts(summary, generations):
        table.add_row(name, text)
    console.print(table)


def _facts(summary: Mapping[str, Any], generations: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    ledger, timings, memory = summary["ledger"], summary["timings"], summary["memory"]
    for one in summary["evaluations"]:
        if one["generation"] in (-1, summary["evaluations"][-1]["generation"]):
            when = "before" if one["generation"] < 0 else "after"
            interval = f", {one['low']:.3f} to {one['high']:.3f}" if one["low"] is not None else ""
            yield f"{one['split']}, {when}", f"{_number(one['mean'])}{interval}"
    yield "updates", f"{ledger['updates']} made, {ledger['skips']} not made {_reasons(ledger['skip_reasons'])}".rstrip()
    if generations:
        yield "generations without spread", _share(sum(one["flat"] for one in generations) / len(generations))
    yield "episodes", f"{ledger['episodes']:,} to learn from, {ledger['evaluation_episodes']:,} to evaluate"
    for group, text in failure_lines(ledger.get("failures", {})):
        yield f"left out, {group}", text
    if ledger.get("late_steps"):
        yield "late steps", f"{ledger['late_steps']:,} that a round did not wait for; it may not repeat itself exactly"
    tokens = ledger["prompt_tokens"] + ledger["new_tokens"]
    yield "tokens", f"{tokens:,} to learn from ({ledger['new_tokens']:,} written)"
    if ledger.get("skill_calls"):
        yield "skill", summary["skill"]["file"] if summary["skill"] else "none was kept"
        yield "to revise it", f"{ledger['skill_episodes']:,} episodes to check, {ledger['skill_calls']:,} replies"
    if summary["flops"] is not None:
        yield "model FLOPs", f"{summary['flops']:.3g} to learn from"
    yield "seconds", ", ".join(f"{name} {value:.1f}" for name, value in timings.items() if value is not None)
    yield "peak memory", _memory(memory)
    yield "weights", f"{summary['weights_before'][:12]} to {summary['weights_after'][:12]}"


def _reasons(reasons: Mapping[str, int]) -> str:
    return f"({', '.join(f'{count} {reason}' for reason, count in reasons.items())})" if reasons else ""


def _memory(memory: Mapping[str, Any]) -> str:
    peak, inference = memory["peak_bytes"], memory["inference_bytes"]
    against = "" if not inference else f", {peak / inference:.2f} times that of inference"
    return f"{peak / 1e9:.2f} GB{against}"


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def as_json(value: Mapping[str, Any]) -> str:
    """For programs."""
    return json.dumps(value, indent=1)
