"""Draw a finished run as the live display and the summary showed it, as an SVG picture.

python scripts/picture.py runs/demo docs/demo.svg
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from eoh_esopt.engine.events import SUMMARY, read_events
from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.engine.listener import BatchReport
from eoh_esopt.reports.live import LiveListener
from eoh_esopt.reports.summary import print_summary
from operators.records import Candidate, Outcome, Skip, Status, Update
from operators.update_fields import update_of


def main(run: Path, picture: Path) -> None:
    """Feed the run's events to the live display and save what it shows at the end."""
    listener = LiveListener(Console(file=io.StringIO(), force_terminal=True, width=110))
    known: dict[int, Candidate] = {}
    decision: Update | Skip | None = None
    for event in read_events(run):
        if event["event"] == "start":
            listener.on_start(event)
        elif event["event"] == "update":
            decision = update_of(event)
        elif event["event"] == "skip":
            decision = Skip(event["step"], event["reason"])
        elif event["event"] == "batch":
            listener.on_batch_end(batch_report(event, known, decision))
            decision = None
    listener.stop()
    console = Console(record=True, file=io.StringIO(), width=110)
    console.print(listener.panel())
    print_summary(run, json.loads((run / SUMMARY).read_text()), console)
    console.save_svg(str(picture), title="eoh-esopt run")


def batch_report(event: dict[str, Any], known: dict[int, Candidate], decision: Update | Skip | None) -> BatchReport:
    """A batch as the listener heard of it; `known` collects the candidates that the population may hold."""
    outcomes = []
    rows = zip(event["statuses"], event["objectives"], event["duplicate_of"], event["ideas"], strict=True)
    for number, (status, objective, duplicate_of, idea) in enumerate(rows, event["ids"][0]):
        outcomes.append(Outcome(Status(status), objective, duplicate_of=duplicate_of))
        if objective is not None:
            known[number] = Candidate(number, event["operator"], idea, "", objective)
    population = [known[number] for number in event["population"]]
    ledger = Ledger.of(event["ledger"])
    return BatchReport(event["generation"], event["operator"], outcomes, decision, population, ledger)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
