"""The live display of a run: the population and the updates as they come; plain lines where there is no terminal."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from eoh_esopt.engine.coevolution import ContextReport
from eoh_esopt.engine.listener import BatchReport, Listener
from eoh_esopt.reports.objective import Scale
from operators.records import Candidate, Outcome, Skip, Update

_ROWS = 10


class LineListener(Listener):
    """One line a batch, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._scale = Scale("objective", False, {}, None)
        self._began = time.monotonic()

    def say(self, message: str) -> None:
        """A line of news."""
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)

    def on_start(self, facts: dict[str, Any]) -> None:
        self._scale = Scale.of(facts)
        for line in headline(facts):
            self.say(line)

    def on_context(self, report: ContextReport) -> None:
        self.say(context_line(report))

    def on_batch_end(self, report: BatchReport) -> None:
        budget = f"{report.ledger.candidates:5}" if report.generation >= 0 else "start"
        minutes = (time.monotonic() - self._began) / 60
        self.say(
            f"[{minutes:6.1f} min] {budget} {report.operator:4} {counts(report.outcomes)}  "
            f"best {self._scale.show(report.population[0].objective)}  {decision_line(report.decision)}".rstrip()
        )


class LiveListener(LineListener):
    """A panel at the foot of the terminal: progress, population, the last updates, failures by kind."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = Live(console=console, refresh_per_second=4)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._updates: deque[tuple[str, ...]] = deque(maxlen=_ROWS)
        self._failures: Counter[str] = Counter()
        self._population: Sequence[Candidate] = ()

    def on_start(self, facts: dict[str, Any]) -> None:
        super().on_start(facts)
        self._total = self._progress.add_task("candidates", total=facts["config"]["budget"])
        self._batch = self._progress.add_task("batch", total=None)
        self._live.start()
        self._draw()

    def on_batch(self, generation: int, operator: str, count: int) -> None:
        where = "start population" if generation < 0 else f"generation {generation + 1}, {operator}"
        self._progress.reset(self._batch, total=2 * count, description=f"{where}: write and evaluate")

    def on_replies(self, count: int) -> None:
        self._progress.advance(self._batch, count)

    def on_outcome(self, candidate: int, outcome: Outcome) -> None:
        self._progress.advance(self._batch)

    def on_batch_end(self, report: BatchReport) -> None:
        self._progress.update(self._total, completed=report.ledger.candidates)
        self._failures.update(one.label for one in report.outcomes if not one.new)
        self._population = report.population
        if report.decision is not None:
            self._updates.append(update_row(report))
        self._draw()

    def stop(self) -> None:
        """Leave the last picture on the screen."""
        self._live.stop()

    def panel(self) -> Panel:
        """The display as it stands."""
        failures = ", ".join(f"{name} {count}" for name, count in self._failures.most_common(6)) or "none"
        parts = (self._population_table(), self._update_table(), f"failures and duplicates: {failures}", self._progress)
        return Panel(Group(*parts), title="eoh-esopt")

    def _draw(self) -> None:
        self._live.update(self.panel())

    def _population_table(self) -> Table:
        known = ", ".join(f"{name} {value:.4f}" for name, value in self._scale.references.items())
        table = Table(title=f"Population  ({known})", expand=True, title_justify="left")
        table.add_column(self._scale.measure, justify="right")
        table.add_column("from")
        table.add_column("idea", ratio=1, no_wrap=True)
        for one in self._population[:_ROWS]:
            table.add_row(self._scale.show(one.objective), f"{one.operator} #{one.id}", Text(one.idea))
        return table

    def _update_table(self) -> Table:
        table = Table(title="ES updates", expand=True, title_justify="left")
        for name in ("step", "operator", "sigma", "reward", "valid", "new", "what was done"):
            table.add_column(name, justify="left" if name in ("operator", "what was done") else "right")
        for row in self._updates:
            table.add_row(*map(Text, row))
        return table


@contextmanager
def watch() -> Iterator[LineListener]:
    """A listener that suits where the output goes; the display is closed whatever happens."""
    console = Console()
    if not console.is_terminal or os.environ.get("CI"):
        yield LineListener(console)
        return
    listener = LiveListener(console)
    try:
        yield listener
    finally:
        listener.stop()


def headline(facts: dict[str, Any]) -> Iterator[str]:
    """What a run is about, in a few lines."""
    config, model = facts["config"], facts["model"]
    yield (
        f"{config['method']} on {config['problem']}: budget {config['budget']} candidates, seed {config['seed']}, "
        f"model {model['model']} ({_size(model['parameters'])}, {model['dtype']}, {model['device']})"
    )
    if config["method"].startswith("esopt-"):
        yield (
            f"scope {model['scope']} ({model['scope_elements']:,} weights), sigma {config['sigma']:g} to "
            f"{config['sigma_final']:g}, alpha {config['alpha']:g}, {config['directions']} directions x "
            f"{config['samples_per_direction']} samples, reward {config['reward']}"
            + (" SHUFFLED (control)" if config["shuffle_rewards"] else "")
            + "".join(f", {name}" for name in _variants(config))
        )
    if config.get("co_evolve"):
        yield "co-evolution: the model also renews the insights that its prompts show, one attempt a generation"
    yield f"sandbox: {facts['isolation']}"
    if facts["event"] == "resume":
        yield "resumed: what the log holds is taken from it"


def _variants(config: dict[str, Any]) -> Iterator[str]:
    """What differs from the paper's update; runs of earlier releases do not speak of it."""
    if config.get("ablation", "none") != "none":
        yield f"ABLATION {config['ablation']}"
    if config.get("sigma_schedule", "cosine") != "cosine":
        yield f"{config['sigma_schedule']} sigma"
    if config.get("noise", "full") != "full":
        yield f"{config['noise']} noise of rank {config['rank']}"
    if config.get("shaping", "z-score") != "z-score":
        yield f"shaping {config['shaping']}"
    if config.get("antithetic"):
        yield "antithetic pairs"
    if config.get("momentum"):
        yield f"momentum {config['momentum']:g}"
    if config.get("adaptive_sigma"):
        yield "adaptive sigma"


def _size(parameters: int | None) -> str:
    return "size unknown" if parameters is None else f"{parameters / 1e6:.0f} M"


def context_line(report: ContextReport) -> str:
    """What became of the context after a generation."""
    reward = "no reward" if report.reward is None else f"reward {report.reward:.3f}"
    fate = f", version {report.tried} taken back" if report.reverted else ""
    shown = f"{len(report.context.insights)} insights" if report.context.insights else "no insights"
    after = f"context after generation {report.generation + 1}: {reward}{fate}"
    return f"{after}; next version {report.context.version}, {shown}"


def counts(outcomes: Sequence[Outcome]) -> str:
    """Valid and new candidates of a batch."""
    valid, new = sum(one.valid for one in outcomes), sum(one.new for one in outcomes)
    return f"valid {valid:3}/{len(outcomes):<3} new {new:3}"


def decision_line(decision: Update | Skip | None) -> str:
    """What was done to the weights, in a few words."""
    if decision is None:
        return ""
    if isinstance(decision, Skip):
        return f"update {decision.step} skipped: {decision.reason}"
    rewards = np.array(decision.rewards)
    return f"update {decision.step}: sigma {decision.sigma:.3g}, reward {rewards.mean():.3f} +- {rewards.std():.3f}"


def update_row(report: BatchReport) -> tuple[str, ...]:
    """One row of the table of updates."""
    decision = report.decision
    assert decision is not None
    valid, new = (f"{sum(flags)}/{len(flags)}" for flags in _flags(report.outcomes))
    if isinstance(decision, Skip):
        return (str(decision.step), report.operator, "", "", valid, new, f"skipped: {decision.reason}")
    rewards = np.array(decision.rewards)
    reward = f"{rewards.mean():.3f} ± {rewards.std():.3f}"
    return (str(decision.step), report.operator, f"{decision.sigma:.3g}", reward, valid, new, "weights moved")


def _flags(outcomes: Sequence[Outcome]) -> tuple[list[bool], list[bool]]:
    return [one.valid for one in outcomes], [one.new for one in outcomes]
