"""Is one arm better than another? Published p values recomputed, what repetitions can show, and runs compared.

python scripts/significance.py                      the published p values, and repetitions against power
python scripts/significance.py RUNS... [OPTIONS]    the same as: eoh-esopt compare RUNS... [OPTIONS]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from eoh_esopt.cli.main import main as command_line
from eoh_esopt.experiments.power import repetitions_needed, visible_effect
from eoh_esopt.experiments.statistics import Summary, rounded_range, smallest_p, t_test_of_summaries

DIGITS = 4
"""Decimals of the published means and deviations."""

REPETITIONS = (3, 5, 7, 10, 15, 20, 30)
EFFECTS = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Published:
    """A result of 20 repetitions of each arm, Table 17 of the method's paper; `sign` is -1 where lower is better."""

    what: str
    sign: int
    eoh: Summary
    esopt: Summary
    p: float


PUBLISHED = (
    Published("TSP-50, lower is better", -1, Summary(6.5517, 0.0729, 20), Summary(6.5007, 0.0868, 20), 0.0258),
    Published("KP-100, higher is better", 1, Summary(40.1562, 0.0024, 20), Summary(40.1578, 0.0017, 20), 0.0100),
)


def main(arguments: list[str]) -> None:
    """Print the tables, or compare the runs that are given."""
    if arguments in (["-h"], ["--help"]):
        print(__doc__.strip())
    elif arguments:
        sys.argv = ["eoh-esopt", "compare", *arguments]
        command_line()
    else:
        console = Console()
        console.print(published_table())
        console.print(power_table(), needed_table())


def published_table() -> Table:
    """The published p beside ours, from the published means and deviations, and what their rounding leaves open."""
    table = Table(title="One-sided t-test with equal variances, from published summaries", title_justify="left")
    for name in ("what", "EoH", "EoH + ESOpt", "published p", "computed p", "p that rounding allows", "agrees"):
        table.add_column(name)
    for one in PUBLISHED:
        eoh, esopt = (Summary(one.sign * group.mean, group.sd, group.n) for group in (one.eoh, one.esopt))
        low, high = rounded_range(esopt, eoh, DIGITS)
        table.add_row(
            one.what,
            *(f"{group.mean} +- {group.sd}" for group in (one.eoh, one.esopt)),
            f"{one.p:.4f}",
            f"{t_test_of_summaries(esopt, eoh).p:.4f}",
            f"{low:.4f} to {high:.4f}",
            "yes" if low <= one.p <= high else "NO",
        )
    return table


def power_table() -> Table:
    """What repetitions can show at most, and the least effect that they show with a power of 0.8."""
    table = Table(title="What repetitions of each arm can show, one-sided at 0.05", title_justify="left")
    for name in ("repetitions", "least exact p, paired", "unpaired", "least effect, paired (d_z)", "unpaired (d)"):
        table.add_column(name, justify="right")
    for count in REPETITIONS:
        effects = [visible_effect(count, paired=paired) for paired in (True, False)]
        least = [smallest_p(count, None), smallest_p(count, count)]
        table.add_row(str(count), *(f"{p:.2g}" for p in least), *(f"{effect:.2f}" for effect in effects))
    return table


def needed_table() -> Table:
    """Repetitions that an effect needs."""
    table = Table(title="Repetitions of each arm for an effect, one-sided at 0.05", title_justify="left")
    table.add_column("effect, standard deviations", justify="right")
    for wanted in (0.8, 0.9):
        for name in ("paired", "unpaired"):
            table.add_column(f"{name}, power {wanted}", justify="right")
    for effect in EFFECTS:
        cells = [
            repetitions_needed(effect, paired=one, wanted=wanted) for wanted in (0.8, 0.9) for one in (True, False)
        ]
        table.add_row(f"{effect:.1f}", *map(str, cells))
    return table


if __name__ == "__main__":
    main(sys.argv[1:])
