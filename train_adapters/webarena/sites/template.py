"""What a task template is, and how the checks of its tasks are written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from train_adapters.webarena.sites.checks import OR
from train_adapters.webarena.sites.layout import money

Check = dict[str, Any]
"""The parts of `eval` that a task needs."""


class Seed:
    """The pristine database, asked for right answers."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def one(self, query: str, *values: object) -> Any:
        """The only value of a query that finds one row of one column.

        Raises:
            ValueError: it finds none or several, so that the task would have none or several answers.
        """
        rows = self._database.execute(query, values).fetchall()
        if len(rows) != 1:
            raise ValueError(f"{query} with {values} finds {len(rows)} rows instead of one")
        return rows[0][0]

    def product(self, name: str) -> int:
        """Id of a product."""
        return int(self.one("SELECT id FROM products WHERE name = ?", name))

    def post(self, title: str) -> int:
        """Id of a post."""
        return int(self.one("SELECT id FROM posts WHERE title = ?", title))

    def issue(self, title: str) -> int:
        """Id of an issue."""
        return int(self.one("SELECT id FROM issues WHERE title = ?", title))

    def project(self, name: str) -> str:
        """Slug of a project."""
        return str(self.one("SELECT slug FROM projects WHERE name = ?", name))


@dataclass(frozen=True)
class Template:
    """Tasks that differ by the values in one sentence.

    Attributes:
        name: the tasks' names begin with it.
        split: of all its tasks: train, val or test.
        sites: it needs.
        start: address with a placeholder.
        text: the sentence, with `{{name}}` for a value.
        values: one mapping a task.
        check: of a task, told the pristine database and its values.
        actions: the shortest known way, the exit with it.
        mutates: whether the way changes a site.
    """

    name: str
    split: str
    sites: tuple[str, ...]
    start: str
    text: str
    values: Sequence[Mapping[str, Any]]
    check: Callable[..., Check]
    actions: int
    mutates: bool = False

    @property
    def difficulty(self) -> str:
        """easy up to 3 actions, medium up to 5, else hard."""
        return "easy" if self.actions <= 3 else "medium" if self.actions <= 5 else "hard"


def each(name: str, *values: object) -> list[dict[str, object]]:
    """The values of a sentence with one gap."""
    return [{name: value} for value in values]


def answer(*texts: object) -> Check:
    """The answer is one of the texts."""
    return {
        "eval_types": ["string_match"],
        "reference_answers": {"exact_match": OR.join(str(one) for one in texts)},
    }


def mentions(*texts: object) -> Check:
    """The answer has all the texts in it."""
    return {"eval_types": ["string_match"], "reference_answers": {"must_include": [str(one) for one in texts]}}


def price(cents: int) -> Check:
    """The answer is a price."""
    return answer(money(cents), money(cents)[1:])


def ends_at(url: str) -> Check:
    """The last address."""
    return {"eval_types": ["url_match"], "reference_url": url}


def shows(url: str, selector: str, *texts: str) -> Check:
    """A page has the texts in an element."""
    target = {
        "url": url,
        "locator": f"document.querySelector('{selector}').outerText",
        "required_contents": {"must_include": list(texts)},
    }
    return {"eval_types": ["program_html"], "program_html": [target]}


def state(*changes: Mapping[str, Any]) -> Check:
    """These rows have changed, and no others."""
    return {"eval_types": ["state_match"], "state_changes": [dict(one) for one in changes]}


def added(table: str, **row: object) -> Check:
    """A row that has to be there in the end, and was not at the beginning."""
    return {"table": table, "added": row}


def removed(table: str, **row: object) -> Check:
    """A row that has to be gone."""
    return {"table": table, "removed": row}


def changed(table: str, row: Mapping[str, object], **to: object) -> Check:
    """A row that has to be there still, with these values and otherwise as it was."""
    return {"table": table, "row": dict(row), "to": to}
