"""Options that several commands share."""

from __future__ import annotations

import click

TABLE_OR_JSON = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table to read, or JSON for programs.",
)
