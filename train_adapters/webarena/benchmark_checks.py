"""WebArena's own checks: answers, addresses and pages are compared as the benchmark's evaluators compare them.

- `string_match`: the answer is the one that is wanted (`exact_match`), has texts in it (`must_include`), or says the
  same in other words (`fuzzy_match`), of which a language model is asked.
- `url_match`: one of the wanted addresses is part of the last one, and each of their parameters has a wanted value.
- `program_html`: what JavaScript expressions or programs (`benchmark_programs.py`) find on pages, in the browser of the
  episode and logged in as it was. `last` is the page as the episode has left it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from train_adapters.webarena.benchmark_programs import FUNC, address, page_expression, read_call, shop_text
from train_adapters.webarena.browser.client import Browser
from train_adapters.webarena.failures import JudgeFailed
from train_adapters.webarena.site_sets import SiteSet
from train_adapters.webarena.stages import Ended

OR = " |OR| "
NOT_ACHIEVABLE = "N/A"
Same = Callable[[str, str], bool]
"""Whether a text says the same as a reference, which is first."""


@dataclass(frozen=True)
class BenchmarkChecks:
    """The checks of one episode.

    Attributes:
        ended: how the episode ended.
        sites: it was played on.
        browser: it was played in.
        same: is asked about texts that may be worded freely.
    """

    ended: Ended
    sites: SiteSet
    browser: Browser
    same: Same

    def hold(self, part: Mapping[str, Any]) -> bool:
        """Whether all checks of a task hold. Nobody is asked where others fail already.

        Args:
            part: `eval` of a configuration.

        Raises:
            JudgeFailed: a check is not understood, or what it needs is not to be had.
            InfraFailed: the browser or the sites fail.
        """
        part = json.loads(self.sites.fill(json.dumps(part)))
        kinds = part.get("eval_types") or ()
        unknown = set(kinds) - {"string_match", "url_match", "program_html"}
        if not kinds or unknown:
            raise JudgeFailed(f"the checks {sorted(unknown) or kinds!r} are not understood")
        wanted = part.get("reference_answers") or {}
        checks: list[Iterator[bool]] = []
        if "string_match" in kinds:
            checks.append(self._compared(wanted))
        if "url_match" in kinds:
            checks.append(self._addresses(part))
        if "program_html" in kinds:
            checks.append(self._pages(part))
        if "string_match" in kinds:
            checks.append(self._free(wanted, part.get("string_note") or ""))
        return all(all(check) for check in checks)

    def _compared(self, wanted: Mapping[str, Any]) -> Iterator[bool]:
        answer = self.ended.answer
        yield answer is not None and bool(wanted)
        if answer is not None and "exact_match" in wanted:
            yield cleaned(answer) == cleaned(wanted["exact_match"])
        parts = wanted.get("must_include", [])
        for one in parts:
            yield answer is not None and includes(answer, one, whole_word=len(parts) == 1)

    def _free(self, wanted: Mapping[str, Any], note: str) -> Iterator[bool]:
        references = wanted.get("fuzzy_match", [])
        for one in [references] if isinstance(references, str) else references:
            yield self._says(one, self.ended.answer or "", note)

    def _says(self, reference: str, text: str, note: str = "") -> bool:
        """Whether a text says what is wanted; why a task cannot be done, which a note tells, may be said instead."""
        if not text:
            return False
        if cleaned(text) == cleaned(reference):
            return True
        return self.same(f"{reference} ({note})" if reference == NOT_ACHIEVABLE and note else reference, text)

    def _addresses(self, part: Mapping[str, Any]) -> Iterator[bool]:
        rule = part.get("url_note", "GOLD in PRED")
        if rule != "GOLD in PRED" or not part.get("reference_url"):
            raise JudgeFailed(f"the rule {rule!r} for addresses is not understood")
        yield is_at(self.ended.url, part["reference_url"].split(OR))

    def _pages(self, part: Mapping[str, Any]) -> Iterator[bool]:
        for target in part["program_html"]:
            found = html.unescape(self._found(target))
            wanted = target["required_contents"]
            if "exact_match" in wanted:
                yield cleaned(found) == cleaned(wanted["exact_match"])
            elif "must_include" in wanted:
                for one in wanted["must_include"]:
                    yield any(includes(found, text) for text in one.split(OR))
            elif "fuzzy_match" in wanted:
                yield self._says(", ".join(wanted["fuzzy_match"]), found)
            else:
                raise JudgeFailed(f"the wanted contents {sorted(wanted)} are not understood")

    def _found(self, target: Mapping[str, Any]) -> str:
        """What the locator of a target finds; empty where it finds nothing."""
        locator = str(target["locator"]).strip()
        if locator.startswith(FUNC):
            call = read_call(locator)
            text = shop_text(call, self.sites)
            if text is not None:
                return text
            expression = page_expression(call)
        elif not locator:
            expression = "document.documentElement.outerHTML"
        elif locator.startswith(("document.", "[...document.")):
            expression = locator.rstrip(";")
        else:
            raise JudgeFailed(f"the locator {locator!r} is not understood")
        url = str(target["url"])
        if url.startswith(FUNC):
            url = address(read_call(url), self.ended.url, self.sites)
        told = self.browser.call(
            "read",
            url="" if url == "last" else url,
            expression=_GUARDED.format(expression=expression),
            before=list(target.get("prep_actions") or ()),
        )
        return str(told["value"])


_GUARDED = (
    "(() => {{ try {{ const found = ({expression}); return found == null ? '' : String(found); }} "
    "catch (error) {{ return ''; }} }})()"
)
"""What is not there is an empty text: the page is another one."""


def cleaned(text: str) -> str:
    """A text as it is compared: without quotes around it, in lower case."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return text.lower()


def includes(text: str, wanted: str, whole_word: bool = False) -> bool:
    """Whether a text has another one in it.

    Args:
        text: the text.
        wanted: the other one.
        whole_word: whether a single character has to stand alone, so that 0 is not found in 10.
    """
    left, whole = cleaned(wanted), cleaned(text)
    if whole_word and len(left) == 1:
        return re.search(rf"(?<!\w){re.escape(left)}(?!\w)", whole) is not None
    return left in whole


def is_at(url: str, wanted: list[str]) -> bool:
    """Whether an address has the host and path of a wanted one in it, and a wanted value of each parameter.

    Parameters are those of all wanted addresses together.
    """
    there = urlsplit(url.rstrip("/"))
    references = [urlsplit(one.rstrip("/")) for one in wanted]
    values: dict[str, set[str]] = {}
    for one in references:
        for name, some in parse_qs(one.query).items():
            values.setdefault(name, set()).update(some)
    given = parse_qs(there.query)
    return any(one.netloc + one.path in there.netloc + there.path for one in references) and all(
        some & set(given.get(name, ())) for name, some in values.items()
    )
