"""The `model` commands: what models there are, getting one, and everything known about one.

A thin layer over `eoh_esopt.models.fetch`: options in, tables or JSON out. Not here: turning errors into exit codes
(`cli.main` does).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table

from eoh_esopt.cli.options import TABLE_OR_JSON
from eoh_esopt.models.catalogue import CATALOGUE, ModelEntry
from eoh_esopt.models.fetch import ModelInfo, info, resolve
from eoh_esopt.models.progress import console_progress


@click.group("model")
def model() -> None:
    """List, get and inspect language models.

    \b
    Examples:
      eoh-esopt model list
      eoh-esopt model get SmolLM2-135M-Instruct
      eoh-esopt model info Qwen2.5-Coder-0.5B-Instruct --verify
    """


@model.command("list")
@TABLE_OR_JSON
def list_models(form: str) -> None:
    """List the models of the catalogue and which of them are on this machine.

    \b
    Examples:
      eoh-esopt model list
      eoh-esopt model list --format json
    """
    known = [info(entry.name) for entry in CATALOGUE]
    if form == "json":
        click.echo(json.dumps([_summary(one) for one in known], indent=2))
        return
    name_column = Column("name", no_wrap=True, min_width=max(len(entry.name) for entry in CATALOGUE))
    table = Table(name_column, "weights", "on disk", "licence", "hub only", "here", box=None, pad_edge=False)
    for one in known:
        entry = one.entry
        here = "yes" if one.folder and not one.damage else "no"
        licence = entry.licence.partition(" (")[0]
        table.add_row(entry.name, _weights(entry), _disk(entry), licence, "no" if entry.gguf else "yes", here)
    Console().print(table)


@model.command("get")
@click.argument("name")
def get_model(name: str) -> None:
    """Get the model NAME unless it is here already, and print the folder it lies in.

    NAME is a name of the catalogue, a Hugging Face hub id such as org/name, or a model folder (which is only checked).
    The folder is printed on standard output, everything else on standard error.

    \b
    Examples:
      eoh-esopt model get SmolLM2-135M-Instruct
      eoh-esopt model get Qwen/Qwen2.5-Coder-0.5B-Instruct
      eoh-esopt model get ./my-finetuned-model
    """
    with console_progress() as progress:
        folder = resolve(name, progress=progress)
    click.echo(str(folder))


@model.command("info")
@click.argument("name")
@click.option("--verify", is_flag=True, help="Hash every file again and compare with the record.")
@TABLE_OR_JSON
@click.pass_context
def model_info(context: click.Context, name: str, verify: bool, form: str) -> None:
    """Show everything known about the catalogue's model NAME; exit code 1 where its files are damaged.

    \b
    Examples:
      eoh-esopt model info SmolLM2-135M-Instruct
      eoh-esopt model info SmolLM2-135M-Instruct --verify
      eoh-esopt model info Llama-3.1-8B-Instruct --format json
    """
    one = info(name, verify=verify)
    if form == "json":
        click.echo(json.dumps(_details(one), indent=2))
    else:
        _print_details(one)
    if one.damage:
        context.exit(1)


def _summary(one: ModelInfo) -> dict[str, Any]:
    entry = one.entry
    return {
        "name": entry.name,
        "hub_id": entry.hub_id,
        "licence": entry.licence,
        "parameters": entry.parameters,
        "bytes": entry.size,
        "exact": entry.exact,
        "good_for": entry.good_for,
        "sources": list(entry.sources),
        "folder": None if one.folder is None else str(one.folder),
        "origin": one.origin,
        "damage": list(one.damage),
    }


def _details(one: ModelInfo) -> dict[str, Any]:
    wheels = one.entry.gguf.wheels if one.entry.gguf else ()
    return {
        **_summary(one),
        "gguf": None if one.entry.gguf is None else _without_wheels(asdict(one.entry.gguf)),
        "wheels": [asdict(wheel) for wheel in wheels],
        "record": None if one.record is None else asdict(one.record),
        "verified": one.verified,
    }


def _without_wheels(gguf: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in gguf.items() if key != "wheels"}


def _print_details(one: ModelInfo) -> None:
    entry = one.entry
    rows = [
        ("name", entry.name),
        ("hub id", entry.hub_id),
        ("licence", entry.licence),
        ("weights", _weights(entry)),
        ("on disk", _disk(entry)),
        ("good for", entry.good_for),
        *(("source", source) for source in entry.sources),
        ("folder", _where(one.folder, one.origin, entry)),
        *_file_rows(one),
        *(("damaged", fault) for fault in one.damage),
    ]
    for key, value in rows:
        click.echo(f"{key:9} {value}")


def _file_rows(one: ModelInfo) -> list[tuple[str, str]]:
    if one.record is None:
        return []
    state = {None: "not hashed again, use --verify", True: "verified", False: "NOT as recorded"}[one.verified]
    fetched = [("fetched", f"{source.name} sha256 {source.sha256}") for source in one.record.sources]
    files = [("file", f"{file.name} {file.size} bytes sha256 {file.sha256}") for file in one.record.files]
    return [*fetched, *files, ("hashes", state)]


def _where(folder: Path | None, origin: str, entry: ModelEntry) -> str:
    if folder is None:
        return f"not on this machine; get it with: eoh-esopt model get {entry.name}"
    return f"{folder} ({'hub copy' if origin == 'hub' else 'converted copy'})"


def _weights(entry: ModelEntry) -> str:
    return f"{'' if entry.exact else '~'}{entry.parameters / 1e6:,.0f} M"


def _disk(entry: ModelEntry) -> str:
    return f"{'' if entry.exact else '~'}{entry.size / 1e9:.1f} GB"
