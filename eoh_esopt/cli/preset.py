"""The `preset` commands: which presets and sweeps are shipped, and what is in one."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.table import Table

from eoh_esopt.cli.options import TABLE_OR_JSON


@click.group("preset")
def preset() -> None:
    """List and show the presets of `run` and the sweeps of `sweep`.

    \b
    Examples:
      eoh-esopt preset list
      eoh-esopt preset show ahd-1000
      eoh-esopt preset show paper > my_sweep.toml
    """


@preset.command("list")
@TABLE_OR_JSON
def list_presets(form: str) -> None:
    """List what is shipped.

    \b
    Examples:
      eoh-esopt preset list
      eoh-esopt preset list --format json
    """
    from eoh_esopt.experiments.presets import load_preset, preset_names, sweep_names
    from eoh_esopt.experiments.sweep import load_sweep

    found = [{"name": name, "for": "run", "about": load_preset(name).about} for name in preset_names()]
    found += [{"name": name, "for": "sweep", "about": load_sweep(name).about} for name in sweep_names()]
    if form == "json":
        click.echo(json.dumps(found, indent=1))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("name", "for", "about"):
        table.add_column(name, no_wrap=name != "about")
    for one in found:
        table.add_row(one["name"], one["for"], one["about"])
    Console().print(table)


@preset.command("show")
@click.argument("name")
@click.option("--sweep", is_flag=True, help="The sweep, where a preset has the same name.")
def show_preset(name: str, sweep: bool) -> None:
    """Show the file of the preset or sweep NAME, to read it or to begin one of your own.

    \b
    Examples:
      eoh-esopt preset show ahd-2000
      eoh-esopt preset show cpu > my_sweep.toml
      eoh-esopt preset show --sweep co-evolution
    """
    from eoh_esopt.experiments.presets import FOLDER, SWEEPS, find_file

    folders = (SWEEPS, FOLDER) if sweep else (FOLDER, SWEEPS)
    click.echo(find_file(name, folders).read_text(encoding="utf-8"), nl=False)
