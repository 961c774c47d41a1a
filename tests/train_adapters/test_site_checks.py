"""Checks of tasks, on made-up outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_adapters.webarena.sites.checks import CheckError, Outcome, included, located, normalised, score
from train_adapters.webarena.sites.dom import read, select

URLS = {"__SHOP__": "http://127.0.0.1:1/shop", "__FORUM__": "http://127.0.0.1:1/forum"}
PAGES = {
    "http://127.0.0.1:1/shop/cart": "<main><p class=total>Total: <b>$12.50</b></p><p class=note>Two mugs</p></main>",
    "http://127.0.0.1:1/forum/user/a": "<section class=bio>I like &lt;b&gt; and &amp;.</section>",
}


def earned(part: Mapping[str, Any], answer: str | None = None, url: str = "", state: Any = None) -> float:
    return score({"eval": part}, Outcome(answer, url, PAGES.__getitem__, state), URLS)


def answered(answer: str | None, **wanted: Any) -> float:
    return earned({"eval_types": ["string_match"], "reference_answers": wanted}, answer)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Emma Weber", 1.0),
        (' "emma  WEBER." ', 1.0),
        ("“Emma Weber”", 1.0),
        ("Emma", 0.0),
        ("It is Emma Weber", 0.0),
        ("", 0.0),
        (None, 0.0),
    ],
)
def test_exact_answers(answer: str | None, right: float) -> None:
    """Quotes, case and a full stop must cost nothing; another or a longer text must not pass."""
    assert answered(answer, exact_match="Emma Weber") == right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("The price is $12.50.", 1.0),
        ("12.50 dollars", 1.0),
        ("$112.50", 0.0),
        ("$12.505", 0.0),
        ("$1,12.50", 0.0),
        ("12.5", 0.0),
    ],
)
def test_included_numbers_are_whole_numbers(answer: str, right: float) -> None:
    """A number that is part of another one is a wrong answer that looks right."""
    assert answered(answer, must_include=["12.50"]) == right


def test_all_of_several_texts_are_needed_and_one_of_alternatives() -> None:
    """Half an answer must not pass, and either way of saying it must."""
    assert answered("a and b", must_include=["a", "b"]) == 1.0
    assert answered("a and c", must_include=["a", "b"]) == 0.0
    assert answered("two", must_include=["2 |OR| two"]) == 1.0
    assert answered("12.50", exact_match="$12.50 |OR| 12.50") == 1.0
    assert answered("red cat", must_include=["cat"]) == 1.0
    assert answered("concatenate", must_include=["cat"]) == 0.0


@pytest.mark.parametrize(
    ("reference", "url", "right"),
    [
        ("__SHOP__/list?b=2&a=1", "http://127.0.0.1:1/shop/list?a=1&b=2", 1.0),
        ("__SHOP__/list?a=1", "http://127.0.0.1:1/shop/list?a=1&page=3#top", 1.0),
        ("__SHOP__/list?a=1", "http://127.0.0.1:1/shop/list?a=2", 0.0),
        ("__SHOP__/list?a=1", "http://127.0.0.1:1/shop/list", 0.0),
        ("__SHOP__/list", "http://127.0.0.1:1/shop/list/", 1.0),
        ("__SHOP__/list", "http://127.0.0.1:1/shop/list/7", 0.0),
        ("__SHOP__/list", "http://127.0.0.1:1/forum/list", 0.0),
        ("__SHOP__/list", "http://127.0.0.1:2/shop/list", 0.0),
        ("__SHOP__/x |OR| __FORUM__/y", "http://127.0.0.1:1/forum/y", 1.0),
        ("__SHOP__/list?label=good first issue", "http://127.0.0.1:1/shop/list?label=good+first+issue", 1.0),
        ("__SHOP__/list", "http://[broken", 0.0),
        ("__SHOP__/list", "about:blank", 0.0),
        ("__SHOP__/list", "", 0.0),
    ],
)
def test_addresses(reference: str, url: str, right: float) -> None:
    """The order of parameters must not matter; another page, site or filter must."""
    assert earned({"eval_types": ["url_match"], "reference_url": reference}, url=url) == right


def shown(url: str, locator: str, last: str = "", **wanted: Any) -> float:
    target = {"url": url, "locator": locator, "required_contents": wanted}
    return earned({"eval_types": ["program_html"], "program_html": [target]}, url=last)


def test_contents_of_pages() -> None:
    """The part of a page that is asked about must be found, and nothing else of the page must count."""
    cart = "http://127.0.0.1:1/shop/cart"
    assert (
        shown("__SHOP__/cart", 'document.querySelector("main p.total").outerText', exact_match="Total: $12.50") == 1.0
    )
    assert shown("last", "p.total b", last=cart, must_include=["12.50"]) == 1.0
    assert shown("last", "", last=cart, must_include=["Two mugs", "$12.50"]) == 1.0
    assert shown("last", ".total", last=cart, must_include=["mugs"]) == 0.0
    assert shown("last", ".missing", last=cart, must_include=[]) == 0.0
    assert shown("__FORUM__/user/a", "section.bio", must_include=["<b> and &"]) == 1.0


CHANGE = {"table": "cart", "before": None, "after": {"customer": "emma", "product": 4, "quantity": 2}}
RENAME = {"table": "issues", "before": {"id": 1, "title": "a", "x": 1}, "after": {"id": 1, "title": "B c", "x": 1}}


def left(wanted: list[Any], changes: list[Any]) -> float:
    return earned({"eval_types": ["state_match"], "state_changes": wanted}, state={"changes": changes})


def test_changes_of_the_state() -> None:
    """What was asked for must have happened, and nothing else."""
    added = {"table": "cart", "added": {"customer": "emma", "product": 4, "quantity": 2}}
    renamed = {"table": "issues", "row": {"id": 1}, "to": {"title": "b C."}}
    assert left([added], [CHANGE]) == 1.0
    assert left([added, renamed], [RENAME, CHANGE]) == 1.0
    assert left([added], []) == 0.0
    assert left([added], [CHANGE, RENAME]) == 0.0
    assert left([added], [CHANGE, CHANGE]) == 0.0
    assert left([{**added, "added": {"quantity": 3}}], [CHANGE]) == 0.0
    assert left([{**added, "table": "wishes"}], [CHANGE]) == 0.0
    assert left([{"table": "cart", "removed": {"product": 4}}], [CHANGE]) == 0.0
    assert (
        left([{"table": "cart", "removed": {"product": 4}}], [{**CHANGE, "before": CHANGE["after"], "after": None}])
        == 1.0
    )
    assert left([{**renamed, "row": {"id": 2}}], [RENAME]) == 0.0
    assert left([{**renamed, "to": {"title": "b c", "x": 1}}], [RENAME]) == 0.0
    assert left([renamed], [{**RENAME, "after": {"id": 1, "title": "b c", "x": 2}}]) == 0.0


def test_all_kinds_of_checks_must_hold() -> None:
    """A task with two checks must not be solved by one of them."""
    part = {"eval_types": ["string_match", "url_match"], "reference_answers": {"exact_match": "a"}}
    part["reference_url"] = "__SHOP__/x"
    assert earned(part, "a", "http://127.0.0.1:1/shop/x") == 1.0
    assert earned(part, "b", "http://127.0.0.1:1/shop/x") == 0.0
    assert earned(part, "a", "http://127.0.0.1:1/shop/y") == 0.0


@pytest.mark.parametrize(
    "part",
    [
        {"eval_types": []},
        {"eval_types": ["guess"]},
        {"eval_types": ["string_match"], "reference_answers": None},
        {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": "a"}},
        {"eval_types": ["string_match"], "reference_answers": {"must_include": "a"}},
        {"eval_types": ["string_match"], "reference_answers": {"exact_match": ["a"]}},
        {"eval_types": ["url_match"], "reference_url": ""},
        {"eval_types": ["program_html"], "program_html": []},
        {"eval_types": ["state_match"]},
        {"eval_types": ["state_match"], "state_changes": [{"table": "a", "to": {}}]},
    ],
)
def test_checks_that_are_not_understood_are_no_zeros(part: dict[str, Any]) -> None:
    """An agent must not be punished for a task that nobody can check."""
    with pytest.raises(CheckError):
        earned(part, "a", "http://127.0.0.1:1/shop/x")


@pytest.mark.parametrize("locator", ["document.title", "alert(1)", "p:hover", "p::before", "p + a", "[a="])
def test_locators_that_are_not_understood_are_no_zeros(locator: str) -> None:
    """A selector that is read wrongly would check something else."""
    with pytest.raises(CheckError):
        located("<p>a</p>", locator)


@pytest.mark.parametrize("url", ["func:latest_order(1)", "last"])
def test_programs_are_not_run(url: str) -> None:
    """Code in a configuration must not be taken for an address."""
    target = {"url": url, "locator": "", "required_contents": {"must_include": ["a"]}, "prep_actions": ["x"]}
    with pytest.raises(CheckError):
        earned({"eval_types": ["program_html"], "program_html": [target]})


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("a", ["one", "two", "three"]),
        ("div a", ["one", "two"]),
        ("div > a", ["one"]),
        ("#x .c", ["two"]),
        ("a.c.d", ["two"]),
        ('a[href="/3"]', ["three"]),
        ("a[href^='/']", ["one", "two", "three"]),
        ("span > a, [href='/3']", ["two", "three"]),
        ("a:nth-of-type(2)", ["three"]),
        ("p a", []),
    ],
)
def test_selectors(selector: str, found: list[str]) -> None:
    """A selector has to name what it names in a browser."""
    html = "<div id=x><a href='/1'>one</a><span><a class='c d' href='/2'>two</a></span></div><i></i>"
    html = f"<body><a hidden href='/0'></a>{html}<a href='/3'>three</a></body>"
    assert [one.text for one in select(read(html), selector) if one.text] == found


def test_reader_copes_with_what_pages_have() -> None:
    """Elements without an end tag, scripts and character references must not end up in the text of another element."""
    document = read(
        "<ul><li>a<li>b &amp; c</ul><script>x < y</script><table><tr><td>1<td>2<tr><td>3</table><p>d<br>e<p>f"
    )
    assert document.text == "a b & c 1 2 3 d e f"
    assert [one.text for one in select(document, "tr")] == ["1 2", "3"]
    form = read(
        "<textarea>\n a\n</textarea><select><option value=1>x<option value=2 selected>y</select><input value=z>"
    )
    assert [one.value for one in form.walk() if one.name in ("textarea", "select", "input")] == [" a\n", "2", "z"]
    assert located("<input id=a value='7'>", "document.querySelector('#a').value") == "7"


@given(*[st.text() | st.text(alphabet="aB .\"'`“”’$1,\n")] * 2)
def test_comparison_copes_with_any_text(left: str, right: str) -> None:
    """The answer comes from a model: nothing that it writes may raise, and comparing must not depend on the order."""
    assert (normalised(left) == normalised(right)) == (normalised(right) == normalised(left))
    assert normalised(normalised(left)) == normalised(left)
    assert isinstance(included(left, right), bool)
    assert answered(left, exact_match=left.replace("|", "")) == 1.0 or "|" in left


@given(st.text(alphabet="<>/='\"!-[]&;abpdiv \n", max_size=80))
def test_reader_copes_with_any_text(html: str) -> None:
    """A page that is broken must be read as far as it goes."""
    assert isinstance(located(html, ""), str)
    assert isinstance(select(read(html), "div p"), list)
