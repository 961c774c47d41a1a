"""WebArena's own checks: how answers and addresses are compared, and the programs that ask a made-up shop."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_site import Answer, Asked, path_of, site

from train_adapters.webarena.accounts import Account
from train_adapters.webarena.benchmark_checks import BenchmarkChecks, includes, is_at
from train_adapters.webarena.benchmark_programs import page_expression, post_url, read_call, shop_text
from train_adapters.webarena.failures import JudgeFailed
from train_adapters.webarena.site_sets import SiteSet
from train_adapters.webarena.stages import Ended

SITES = SiteSet({"shopping": "http://shop:1/", "reddit": "http://forum"})


class Reading:
    """A browser whose pages show texts: of each read, the address that was asked for."""

    def __init__(self, shows: Mapping[str, str]) -> None:
        self.shows = shows
        self.asked: list[dict[str, Any]] = []

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        assert command == "read"
        self.asked.append(arguments)
        return {"value": self.shows[arguments["url"]]}


def nobody(reference: str, text: str) -> bool:
    raise AssertionError("nobody was to be asked")


def checks(
    answer: str | None = None, url: str = "http://shop:1/", shows: Mapping[str, str] | None = None, same: Any = nobody
) -> BenchmarkChecks:
    browser: Any = Reading(shows or {})
    return BenchmarkChecks(Ended(answer, url, 0.0), SITES, browser, same)


def answers(**wanted: Any) -> dict[str, Any]:
    return {"eval_types": ["string_match"], "reference_answers": wanted}


@pytest.mark.parametrize(
    ("wanted", "answer", "right"),
    [
        ({"exact_match": "Acadia"}, ' "acadia" ', True),
        ({"exact_match": "Acadia"}, "It is Acadia", False),
        ({"must_include": ["Acadia", "5"]}, "acadia: 15", True),
        ({"must_include": ["0"]}, "10", False),
        ({"must_include": ["0"]}, "There are 0.", True),
        ({"must_include": ["Acadia"]}, None, False),
        ({"exact_match": "x"}, "", False),
        ({}, "x", False),
    ],
)
def test_answers_are_compared_as_the_benchmark_does(wanted: dict[str, Any], answer: str | None, right: bool) -> None:
    """Scores could not be compared with published ones otherwise."""
    assert checks(answer).hold(answers(**wanted)) is right


def test_a_model_is_asked_last_and_only_about_free_answers() -> None:
    """Each question costs money, and its answers are not the same each time."""
    asked: list[tuple[str, str]] = []

    def same(reference: str, text: str) -> bool:
        asked.append((reference, text))
        return True

    wanted = answers(must_include=["Acadia"], fuzzy_match=["1h 23min", "by car"])
    assert not checks("83 minutes by car", same=same).hold(wanted)
    assert not asked
    assert checks("Acadia, 83 minutes", same=same).hold(wanted)
    assert [one for one, _ in asked] == ["1h 23min", "by car"]
    asked.clear()
    impossible = answers(fuzzy_match="N/A") | {"string_note": "there is no such product"}
    assert checks("n/a", same=same).hold(impossible)
    assert not checks(None, same=same).hold(impossible)
    assert not asked
    assert checks("It is not sold here", same=same).hold(impossible)
    assert asked == [("N/A (there is no such product)", "It is not sold here")]


@pytest.mark.parametrize(
    ("wanted", "url", "right"),
    [
        ("__SHOPPING__/mugs", "http://shop:1/mugs/", True),
        ("__SHOPPING__/mugs", "http://shop:1/mugs/blue.html?x=1", True),
        ("__SHOPPING__/mugs", "http://shop:1/cups", False),
        ("__SHOPPING__/cups |OR| __SHOPPING__/mugs", "http://shop:1/mugs", True),
        ("__SHOPPING__/s?q=mug&sort=a", "http://shop:1/s?sort=a&q=mug&page=2", True),
        ("__SHOPPING__/s?q=mug", "http://shop:1/s?q=cup", False),
    ],
)
def test_addresses_are_compared_as_the_benchmark_does(wanted: str, url: str, right: bool) -> None:
    """Scores could not be compared with published ones otherwise."""
    part = {"eval_types": ["url_match"], "reference_url": wanted, "url_note": "GOLD in PRED"}
    assert checks(url=url).hold(part) is right


@given(st.text(alphabet="abc/?=&1. '\"", max_size=20))
def test_a_text_includes_itself_and_is_at_itself(text: str) -> None:
    """An agent that gives the reference itself must be right, whatever is in it."""
    assert includes(f"x {text} y", text)
    assert is_at(f"http://shop/{text}", [f"http://shop/{text}"])


def pages(*targets: dict[str, Any]) -> dict[str, Any]:
    return {"eval_types": ["program_html"], "program_html": list(targets)}


def test_pages_are_read_where_and_how_the_configuration_says() -> None:
    """Whatever is read elsewhere says nothing of what the agent did."""
    wanted = pages(
        {"url": "last", "locator": "", "required_contents": {"must_include": ["Blue |OR| green", "mug"]}},
        {
            "url": "__SHOPPING__/cart",
            "locator": "document.querySelector('b').outerText",
            "prep_actions": ["document.querySelector('a').click()"],
            "required_contents": {"exact_match": "5 & 6"},
        },
    )
    shows = {"": "<p>Green mug</p>", "http://shop:1/cart": "5 &amp; 6"}
    found = checks(shows=shows)
    assert found.hold(wanted)
    browser: Any = found.browser
    assert "document.documentElement.outerHTML" in browser.asked[0]["expression"]
    assert browser.asked[1]["before"] == ["document.querySelector('a').click()"]
    assert not checks(shows=shows | {"http://shop:1/cart": ""}).hold(wanted)
    assert not checks(shows=shows | {"": "<p>Red mug</p>"}).hold(wanted)
    free = pages({"url": "last", "locator": "", "required_contents": {"fuzzy_match": ["blue", "mug"]}})
    assert checks(shows=shows, same=lambda reference, text: reference == "blue, mug").hold(free)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"eval_types": []}, "are not understood"),
        ({"eval_types": ["image_match"]}, "image_match"),
        ({"eval_types": ["url_match"], "reference_url": "x", "url_note": "EXACT"}, "EXACT"),
        (pages({"url": "last", "locator": "lambda: 1", "required_contents": {}}), "lambda"),
        (pages({"url": "last", "locator": "func:map_get_route('a')", "required_contents": {}}), "map_get_route"),
        (pages({"url": "func:wiki_get()", "locator": "", "required_contents": {}}), "wiki_get"),
        (pages({"url": "last", "locator": "func:1 + 1", "required_contents": {}}), "is not understood"),
        (pages({"url": "last", "locator": "", "required_contents": {"x": 1}}), "are not understood"),
    ],
)
def test_what_is_not_understood_is_no_zero(part: dict[str, Any], text: str) -> None:
    """A 0 for a check that was never made would teach the model that what it did was wrong."""
    with pytest.raises(JudgeFailed, match=text):
        checks("x", shows={"": ""}).hold(part)


@pytest.mark.parametrize(
    ("url", "post"),
    [
        ("http://forum/f/books/123/a-title/-/comment/9?x=1", "http://forum/f/books/123/"),
        ("http://forum/f/books", "http://forum/f/books"),
        ("http://forum/user/ann/x/y", "http://forum/user/ann/x/y"),
    ],
)
def test_a_comment_leads_to_its_post(url: str, post: str) -> None:
    """Agents end on the comment that they wrote, and it is the post that is looked at."""
    assert post_url(url) == post


class Shop:
    """A shop whose administrator is told orders and reviews.

    Args:
        orders: from the oldest to the newest.
        reviews: by product, from the oldest to the newest.
    """

    def __init__(self, orders: list[int], reviews: Mapping[str, Any]) -> None:
        self.orders, self.reviews = orders, reviews

    def __call__(self, asked: Asked) -> Answer:
        path, query = path_of(asked), parse_qs(urlsplit(asked.path).query)
        if path == "/rest/default/V1/integration/admin/token":
            right = json.loads(asked.body) == {"username": "boss", "password": "pw"}
            return self.told("secret") if right else Answer("{}", 401)
        if asked.authorization != "Bearer secret":
            return Answer("{}", 401)
        if path == "/rest/V1/orders":
            assert query["searchCriteria[sortOrders][0][field]"] == ["created_at"]
            assert query["searchCriteria[sortOrders][0][direction]"] == ["DESC"]
            size = int(query["searchCriteria[pageSize]"][0])
            return self.told({"items": [{"increment_id": f"{one:09d}"} for one in self.orders[::-1][:size]]})
        sku = path.removeprefix("/rest/V1/products/").removesuffix("/reviews")
        return self.told(self.reviews[sku]) if sku in self.reviews else Answer("{}", 404)

    @staticmethod
    def told(value: Any) -> Answer:
        return Answer(json.dumps(value), kind="application/json")


REVIEWS = {
    "B00": [
        {"nickname": "Ann", "ratings": [{"rating_name": "Rating", "percent": 20}]},
        {"nickname": "Emma Lopez", "ratings": [{"rating_name": "Rating", "percent": 100}]},
    ],
    "B01": [],
    "B02": [{"nickname": "Ann", "ratings": []}],
}


def of_shop(url: str, password: str = "pw") -> SiteSet:
    return SiteSet({"shopping": url}, accounts={"shopping_admin": Account("boss", password)})


def test_the_shop_is_asked_for_the_newest_order() -> None:
    """It is where the agent's order is looked for; an older one would be somebody else's."""
    with site(Shop([188, 189], REVIEWS)) as shop:
        sites = of_shop(shop.url)
        browser: Any = Reading({f"{shop.url}/sales/order/view/order_id/189/": "SKU B07"})
        wanted = pages(
            {
                "url": "func:shopping_get_latest_order_url()",
                "locator": "document.querySelector('.order-details-items.ordered').outerText",
                "required_contents": {"must_include": ["B07"]},
            }
        )
        assert BenchmarkChecks(Ended("", shop.url, 0.0), sites, browser, nobody).hold(wanted)


def test_the_shop_is_asked_for_the_newest_review() -> None:
    """It is the agent's; one of before would be judged in its place."""
    with site(Shop([], REVIEWS)) as shop:
        sites = of_shop(shop.url)
        author, rating = (f"func:shopping_get_sku_latest_review_{one}('B00')" for one in ("author", "rating"))
        assert shop_text(read_call(author), sites) == "Emma Lopez"
        assert shop_text(read_call(rating), sites) == "100"
        assert shop_text(read_call(author.replace("B00", "B01")), sites) == ""
        wanted = pages({"url": "last", "locator": author, "required_contents": {"must_include": ["Emma Lopez"]}})
        browser: Any = Reading({})
        assert BenchmarkChecks(Ended("", shop.url, 0.0), sites, browser, nobody).hold(wanted)


def test_a_shop_that_does_not_tell_is_no_zero() -> None:
    """A wrong password in the file of sites would otherwise be the agent's fault; and must not be told."""
    call = read_call("func:shopping_get_sku_latest_review_rating('B02')")
    with site(Shop([], REVIEWS)) as shop:
        with pytest.raises(JudgeFailed, match="401") as failure:
            shop_text(call, of_shop(shop.url, "battery staple"))
        assert "battery staple" not in str(failure.value)
        with pytest.raises(JudgeFailed, match="of another form"):
            shop_text(call, of_shop(shop.url))
        with pytest.raises(JudgeFailed, match="404"):
            shop_text(read_call("func:shopping_get_sku_latest_review_rating('B03')"), of_shop(shop.url))
    with pytest.raises(JudgeFailed, match="the shop does not tell"):
        shop_text(call, of_shop("http://127.0.0.1:9"))
    with pytest.raises(JudgeFailed, match="have no shop"):
        shop_text(call, SiteSet({"map": "http://x"}))


def test_names_in_programs_cannot_leave_their_text() -> None:
    """They go into a script that runs on the page."""
    expression = page_expression(read_call("""func:gitlab_get_project_memeber_role(__page__, 'a")b')"""))
    assert json.dumps('@a")b') in expression
