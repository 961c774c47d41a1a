"""Options that several commands share."""

from __future__ import annotations

import click

TABLE_FORMATS = click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "md", "csv", "json"]),
    default="table",
    show_default=True,
    help="Tables to read, to paste or to compute with; JSON has everything.",
)

TABLE_OR_JSON = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table to read, or JSON for programs.",
)
