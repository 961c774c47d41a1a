"""Whether a task is solved, from what its episode left behind. No browser, no model, no clock.

The `eval` part of a task names the kinds of checks that must all hold:

- `string_match`: the answer. `reference_answers` has `exact_match` (a text) or `must_include` (texts).
- `url_match`: the last address. Scheme, host and path must be those of `reference_url`, and each parameter of that must
  be there with its value, in any order; ` |OR| ` stands between alternatives.
- `program_html`: what pages show. Each target has a `url` (`last` for the last address), a `locator` (empty for all of
  the page, `document.querySelector("...").outerText`, or the selector alone) and `required_contents` with `exact_match`
  or `must_include`; ` |OR| ` stands between alternatives there.
- `state_match`, of the local sites only: what was changed. `state_changes` lists all rows that differ from the pristine
  state: `{"table": ..., "added": {...}}`, `{"table": ..., "removed": {...}}`, or `{"table": ..., "row": {...}, "to":
  {...}}`. Each gives the columns that matter; of a changed row, `to` has all columns that change. A change that is not
  listed fails the check.

Texts are compared without regard to case, to quotes and full stops around them, and to the amount of white space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from train_adapters.webarena.sites.addresses import filled
from train_adapters.webarena.sites.dom import read, select

OR = " |OR| "
Fetch = Callable[[str], str]
"""The HTML of an address, as the user of the task sees it."""


class CheckError(Exception):
    """The `eval` part of a task cannot be understood: nothing that an agent can be blamed for."""


@dataclass(frozen=True)
class Outcome:
    """What an episode left behind.

    Attributes:
        answer: the message of its exit; None where there was none.
        url: the last address.
        fetch: gives pages.
        state: what `SiteSet.state` gives; only `state_match` looks at it.
    """

    answer: str | None
    url: str
    fetch: Fetch
    state: Mapping[str, Any] | None = None


def score(task: Mapping[str, Any], outcome: Outcome, urls: Mapping[str, str]) -> float:
    """1.0 where all checks of a task hold, else 0.0.

    Args:
        task: a configuration.
        outcome: of its episode.
        urls: addresses of the sites by placeholder.

    Raises:
        CheckError: the configuration cannot be understood.
    """
    part = task["eval"]
    kinds = part.get("eval_types") or ()
    if not kinds or not all(kind in _CHECKS for kind in kinds):
        raise CheckError(f"eval_types must be some of {', '.join(_CHECKS)}, not {kinds!r}")
    return float(all(_CHECKS[kind](part, outcome, urls) for kind in kinds))


def normalised(text: str) -> str:
    """The text as it is compared."""
    plain = " ".join(text.replace("“", '"').replace("”", '"').replace("’", "'").casefold().split())
    return plain.lstrip("\"'` ").rstrip(".\"'` ")


def included(wanted: str, text: str) -> bool:
    """Whether the text has the wanted one in it, not as part of a longer word or number."""
    left, whole = normalised(wanted), normalised(text)
    before = r"(?<![\w])(?<![\d][.,])" if left[:1].isalnum() else ""
    after = r"(?![\w])(?![.,]\d)" if left[-1:].isalnum() else ""
    return bool(left) and re.search(before + re.escape(left) + after, whole) is not None


def _string_match(part: Mapping[str, Any], outcome: Outcome, urls: Mapping[str, str]) -> bool:
    return outcome.answer is not None and _required(part.get("reference_answers"), outcome.answer)


def _required(wanted: Any, text: str) -> bool:
    """Whether a text is as `exact_match` and `must_include` want it."""
    if not isinstance(wanted, Mapping) or not wanted or not wanted.keys() <= {"exact_match", "must_include"}:
        raise CheckError(f"exact_match or must_include is needed, not {wanted!r}")
    exact, parts = wanted.get("exact_match"), wanted.get("must_include", [])
    if not isinstance(exact, (str, type(None))) or not _texts(parts):
        raise CheckError(f"exact_match must be a text and must_include a list of texts, not {wanted!r}")
    same = exact is None or any(normalised(one) == normalised(text) for one in exact.split(OR))
    return same and all(any(included(one, text) for one in each.split(OR)) for each in parts)


def _texts(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(one, str) for one in value)


def _url_match(part: Mapping[str, Any], outcome: Outcome, urls: Mapping[str, str]) -> bool:
    reference = part.get("reference_url")
    if not isinstance(reference, str) or not reference:
        raise CheckError("reference_url is missing")
    return any(_same_place(filled(one, urls), outcome.url) for one in reference.split(OR))


def _same_place(wanted: str, url: str) -> bool:
    try:
        left, right = urlsplit(wanted), urlsplit(url)
    except ValueError:  # an address that is none
        return False
    if left[:2] != right[:2] or left.path.rstrip("/") != right.path.rstrip("/"):
        return False
    there = parse_qs(right.query, keep_blank_values=True)
    asked = parse_qs(left.query, keep_blank_values=True)
    return all(set(values) <= set(there.get(name, ())) for name, values in asked.items())


def _program_html(part: Mapping[str, Any], outcome: Outcome, urls: Mapping[str, str]) -> bool:
    targets = part.get("program_html")
    if not isinstance(targets, Sequence) or not targets:
        raise CheckError("program_html has no targets")
    return all(_target_holds(target, outcome, urls) for target in targets)


def _target_holds(target: Mapping[str, Any], outcome: Outcome, urls: Mapping[str, str]) -> bool:
    url = str(target["url"])
    if url.startswith("func:") or target.get("prep_actions"):
        raise CheckError(f"programs cannot be run: {target!r}")
    found = located(outcome.fetch(outcome.url if url == "last" else filled(url, urls)), str(target["locator"]))
    # An empty text still has to pass: a locator that finds nothing must not satisfy an empty must_include.
    return found is not None and _required(target["required_contents"], found)


_LOCATOR = re.compile(
    r"(?:\(\)\s*=>\s*)?document\.querySelector\((?P<quote>[\"'`])(?P<selector>.*)(?P=quote)\)"
    r"\??\.(?P<property>outerText|innerText|textContent|value);?"
)


def located(html: str, locator: str) -> str | None:
    """The text of a page that a locator names; None where it finds nothing.

    Raises:
        CheckError: the locator is not understood.
    """
    document = read(html)
    if not locator.strip():
        return document.text
    match = _LOCATOR.fullmatch(locator.strip())
    if match is None and re.search(r"\bdocument\.|(?<!:nth-of-type)\(", locator):
        raise CheckError(f"the locator {locator!r} is not understood")
    try:
        found = select(document, match["selector"].replace("\\", "") if match else locator)
    except ValueError as error:
        raise CheckError(str(error)) from error
    if not found:
        return None
    return found[0].value if match and match["property"] == "value" else found[0].text


def _state_match(part: Mapping[str, Any], outcome: Outcome, urls: Mapping[str, str]) -> bool:
    wanted = part.get("state_changes")
    if not isinstance(wanted, Sequence) or not all(_understood(one) for one in wanted):
        raise CheckError(f"state_changes is not understood: {wanted!r}")
    if outcome.state is None:
        raise CheckError("state_match needs the state of the local sites")
    left = list(outcome.state["changes"])
    for one in wanted:
        match = next((change for change in left if _fits(one, change)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _understood(wanted: Any) -> bool:
    kinds = ({"table", "added"}, {"table", "removed"}, {"table", "row", "to"})
    return isinstance(wanted, Mapping) and set(wanted) in kinds


def _fits(wanted: Mapping[str, Any], change: Mapping[str, Any]) -> bool:
    before, after = change["before"], change["after"]
    if change["table"] != wanted["table"]:
        return False
    if "added" in wanted:
        return before is None and _agrees(wanted["added"], after)
    if "removed" in wanted:
        return after is None and _agrees(wanted["removed"], before)
    if before is None or after is None:
        return False
    changed = {column for column in after if after[column] != before[column]}
    return changed == set(wanted["to"]) and _agrees(wanted["row"], before) and _agrees(wanted["to"], after)


def _agrees(wanted: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return all(column in row and _same(value, row[column]) for column, value in wanted.items())


def _same(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, str) and isinstance(value, str):
        return normalised(wanted) == normalised(value)
    return bool(wanted == value)


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], Outcome, Mapping[str, str]], bool]] = {
    "string_match": _string_match,
    "url_match": _url_match,
    "program_html": _program_html,
    "state_match": _state_match,
}
