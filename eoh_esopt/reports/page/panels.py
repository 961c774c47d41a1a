"""What the figures of one task show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.experiments.run_record import RunRecord
from eoh_esopt.reports.page.contents import changes
from eoh_esopt.reports.page.data import Arm, TaskRuns
from eoh_esopt.reports.page.figures import Figure, Line, Plot, bars, plots
from eoh_esopt.reports.page.series import band, best_so_far, outcomes, shares, steps

_SMALL_SHARE = 0.3

Series = Callable[[RunRecord], NDArray[np.float64]]


def figures(task: TaskRuns) -> tuple[Figure, ...]:
    """All figures of a task that have anything to show."""
    drawn = [_best(task)]
    if any(len(shares(run)[0]) for run in task.runs):
        drawn.append(_validity(task))
    if any(steps(arm) for arm in task.arms):
        drawn.append(_learning(task))
    if outcomes(task.runs):
        drawn.append(_outcomes(task))
    return tuple(drawn)


def _best(task: TaskRuns) -> Figure:
    lines, known = [_steps_only(line) for line in _lines(task, best_so_far)], task.scale.references
    panels, height = [Plot(task.scale.title, lines, known, task.scale.ceiling)], 2.9
    if _is_flat(lines, known):
        panels.append(Plot("the runs alone, magnified", lines))
        height = 1.75
    caption = f"Best heuristic so far, after each candidate of the search. {_spread(task)}"
    return plots(f"{task.key}-best-so-far", caption, "candidates of the search", panels, height=height)


def _steps_only(line: Line) -> Line:
    """A step curve with the points at which it changes; the others would make the page heavy."""
    if not len(line.x):
        return line
    edges = [edge for edge in (line.low, line.high) if edge is not None]
    at = changes(np.stack([line.y, *edges]))
    low, high = (None if edge is None else edge[at] for edge in (line.low, line.high))
    return replace(line, x=line.x[at], y=line.y[at], low=low, high=high)


def _is_flat(lines: Sequence[Line], known: Mapping[str, float]) -> bool:
    """Whether beside the known values the runs take so little room that their course cannot be seen."""
    edges = [edge for line in lines for edge in (line.y, line.low, line.high) if edge is not None]
    values = np.concatenate(edges)
    values = values[np.isfinite(values)]
    if not len(values) or not known:
        return False
    own = np.ptp(values)
    return bool(0 < own < _SMALL_SHARE * np.ptp([*values, *known.values()]))


def _validity(task: TaskRuns) -> Figure:
    titles = ("valid candidates, %", "new candidates (valid and no copies), %")
    panels = [
        Plot(title, list(_lines(task, _percent(index), first=1.0)), bottom=0, points=True)
        for index, title in enumerate(titles)
    ]
    caption = f"Share of valid and of new candidates in each generation. {_spread(task)}"
    return plots(f"{task.key}-validity", caption, "generation", panels, height=1.62)


def _percent(index: int) -> Series:
    return lambda run: 100 * shares(run)[index]


def _learning(task: TaskRuns) -> Figure:
    sigmas, rewards = [], []
    for index, arm in enumerate(task.arms):
        found = steps(arm)
        if not found:
            continue
        made = [one for one in found if one.sigma is not None]
        at = np.array([one.step + 1 for one in made], dtype=np.float64)
        mean = np.array([np.mean(one.rewards) for one in made])
        sd = np.array([np.std(one.rewards) for one in made])
        skipped = [one.step + 1 for one in found if one.skips]
        sigmas.append(Line(arm.label, at, np.array([one.sigma for one in made], dtype=np.float64), index))
        rewards.append(Line(arm.label, at, mean, index, mean - sd, mean + sd, marks=skipped))
    panels = [
        Plot("sigma, size of the perturbations", sigmas, bottom=0, points=True),
        Plot("reward, mean over directions", rewards, points=True),
    ]
    learning = [arm for arm in task.arms if steps(arm)]
    skips = sum(one.skips for arm in learning for one in steps(arm))
    caption = (
        "Size of the perturbations and rewards at each update. Line: mean over all directions of all runs; band: sd "
        f"over these directions; {_runs_of(learning)}. Crosses mark updates that a run skipped (skips in all: {skips})."
    )
    return plots(f"{task.key}-learning", caption, "update", panels, height=1.62)


def _outcomes(task: TaskRuns) -> Figure:
    panels = {arm.label: outcomes(arm.runs) for arm in task.arms if outcomes(arm.runs)}
    caption = (
        "What became of the candidates that the model wrote, by operator: new, copies of earlier ones, and failures by "
        f"kind, summed over runs; {_runs_of(task.arms)}."
    )
    return bars(f"{task.key}-outcomes", caption, panels)


def _lines(task: TaskRuns, series: Series, first: float = 0.0) -> Iterator[Line]:
    """The mean of each arm's finished runs with its range, and each unfinished run by itself."""
    for index, arm in enumerate(task.arms):
        if arm.finished:
            yield _mean_line(arm, index, [series(run) for run in arm.finished], first)
        for number, run in enumerate(arm.unfinished):
            values = series(run)
            label = f"{arm.label}, unfinished" if number == 0 else ""
            yield Line(label, first + np.arange(len(values), dtype=np.float64), values, index, thin=True)


def _mean_line(arm: Arm, index: int, series: Sequence[NDArray[np.float64]], first: float) -> Line:
    found = band(series)
    count = len(arm.finished)
    label = f"{arm.label}, mean of {count} runs" if count > 1 else f"{arm.label}, 1 run"
    edges = (found.low, found.high) if count > 1 else (None, None)
    return Line(label, first + found.x, found.middle, index, *edges)


def _spread(task: TaskRuns) -> str:
    """What lines and bands are, as far as there are any."""
    many = any(len(arm.finished) > 1 for arm in task.arms)
    left = any(arm.unfinished for arm in task.arms)
    parts = ["Line: mean of the finished runs; band: their range (least to largest)" if many else "Line: the run"]
    parts += ["thin lines: unfinished runs, each by itself"] if left else []
    return f"{'; '.join(parts)}; {_runs_of(task.arms)}."


def _runs_of(arms: Sequence[Arm]) -> str:
    """The number of runs behind each arm."""
    return ", ".join(
        f"n\u00a0=\u00a0{len(arm.runs)} ({arm.label}"
        + (f"; {len(arm.unfinished)} unfinished)" if arm.unfinished else ")")
        for arm in arms
    )
