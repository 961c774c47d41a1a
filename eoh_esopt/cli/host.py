"""The `host` commands: which other engines are here, and whether the plug-in works with them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eoh_esopt.cli.options import TABLE_OR_JSON


@click.group("host")
def host() -> None:
    """Look at the engines that the plug-in works with: EoH 0.2, EoH 0.1, LLM4AD.

    \b
    Example:
      eoh-esopt host check
    """


@host.command("check")
@click.option(
    "--repo",
    "clones",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder with a clone of a host; may be given again.  [default: those that EOH_REPO lists]",
)
@TABLE_OR_JSON
def check_hosts(clones: tuple[Path, ...], form: str) -> None:
    """Find the hosts that are here, and try the plug-in on each of them.

    For each host this shows the places in its code that the plug-in takes hold of, and makes a dry run: two generations
    on the host's own loop, with a model that is scripted, so that none is needed.

    Exit code 0 when all hosts that were found work, 1 when one does not or there is none, 2 for a --repo that holds
    none.

    \b
    Examples:
      eoh-esopt host check
      eoh-esopt host check --repo ~/EoH
      EOH_REPO=~/EoH:~/EoH-v0.1 eoh-esopt host check --format json
    """
    from eoh_esopt.hosts.installs import Checked, Install, check, in_clone, installed

    listed = [Path(one) for one in os.environ.get("EOH_REPO", "").split(os.pathsep) if one]
    installs: list[Install] = [*installed(), *map(in_clone, clones or listed)]
    console = Console()
    results: list[tuple[Install, Checked]] = []
    for install in installs:
        checked = check(install)
        results.append((install, checked))
        if form == "table":
            _show(console, install, checked)
    if form == "json":
        click.echo(json.dumps([_as_json(*one) for one in results], indent=1))
    elif not results:
        console.print(
            "No host was found. LLM4AD: pip install llm4ad. EoH: clone https://github.com/FeiLiu36/EoH, then "
            "pip install ./EoH/eoh requests; or give the clone by --repo.",
            markup=False,
            highlight=False,
        )
    raise SystemExit(0 if results and all(checked.works for _, checked in results) else 1)


def _show(console: Console, install: Any, checked: Any) -> None:
    named = " ".join(part for part in (install.kind.name, install.version and f"(version {install.version})") if part)
    table = Table("", "seam", "", title=f"{named} in {install.package}", title_justify="left")
    for name, found, detail in checked.seams:
        table.add_row("ok" if found else "--", Text(name), Text(detail))
    if checked.seams:
        console.print(table)
    else:
        console.print(Text(f"{named} in {install.package}"), soft_wrap=True)
    console.print(Text(f"dry run: {_told(checked)}\n"), soft_wrap=True)


def _told(checked: Any) -> str:
    run = checked.run
    if run is None:
        return f"FAILED: {checked.error}"
    verdict = "ok" if checked.works else "FAILED: the weights did not move"
    return (
        f"{verdict}; {run['generations']} generations, {run['candidates']} candidates, {run['updates']} updates, "
        f"{run['model_calls']} model calls with those of the start population, {run['seconds']} s"
    )


def _as_json(install: Any, checked: Any) -> dict[str, Any]:
    return {
        "host": install.kind.name,
        "version": install.version,
        "package": str(install.package),
        "works": checked.works,
        **asdict(checked),
    }
