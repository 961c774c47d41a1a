"""Programs that WebArena's configurations name (`func:`): own ones that give what the benchmark's give.

They look at what no page of the episode shows: the newest order and the newest reviews, through the REST interface of
the shop, which takes the administrator's account; the address of a post; and the role of a project's member.
"""

from __future__ import annotations

import ast
import http.client
import json
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from train_adapters.webarena.accounts import PUBLISHED
from train_adapters.webarena.failures import JudgeFailed
from train_adapters.webarena.site_sets import SiteSet

FUNC = "func:"
"""What they begin with."""
_SECONDS = 60.0


@dataclass(frozen=True)
class Call:
    """A program and what it is given.

    Attributes:
        name: of the program.
        arguments: texts; "__last_url__" stands for the episode's last address, "__page__" for the page.
    """

    name: str
    arguments: tuple[str, ...]


def read_call(text: str) -> Call:
    """The call in a configuration, such as `func:name('argument')`.

    Raises:
        JudgeFailed: it is none.
    """
    try:
        call = ast.parse(text.removeprefix(FUNC).strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
            raise ValueError("no call")
        arguments = [one.id if isinstance(one, ast.Name) else str(ast.literal_eval(one)) for one in call.args]
    except (SyntaxError, ValueError) as error:
        raise JudgeFailed(f"{text!r} is not understood") from error
    return Call(call.func.id, tuple(arguments))


def address(call: Call, last_url: str, sites: SiteSet) -> str:
    """The address that a program gives.

    Args:
        call: of the program.
        last_url: of the episode.
        sites: it was played on.

    Raises:
        JudgeFailed: there is no such program, or the shop does not tell.
    """
    if call.name == "reddit_get_post_url" and len(call.arguments) == 1:
        return post_url(call.arguments[0].replace("__last_url__", last_url))
    if call.name == "shopping_get_latest_order_url" and not call.arguments:
        return latest_order_url(sites)
    raise JudgeFailed(f"there is no program {call.name!r} that gives an address")


def shop_text(call: Call, sites: SiteSet) -> str | None:
    """The text that a program has from the shop; None for a program of another kind.

    Raises:
        JudgeFailed: the shop does not tell.
    """
    programs: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
        "shopping_get_sku_latest_review_author": lambda review: str(review["nickname"]),
        "shopping_get_sku_latest_review_rating": lambda review: str(review["ratings"][0]["percent"]),
    }
    if call.name not in programs or len(call.arguments) != 1:
        return None
    reviews = _shop(sites, f"/rest/V1/products/{quote(call.arguments[0], safe='')}/reviews")
    return str(_told(lambda: programs[call.name](reviews[-1]))) if reviews else ""


def page_expression(call: Call) -> str:
    """The JavaScript expression with what a program has from a page.

    Raises:
        JudgeFailed: there is no such program.
    """
    if call.name != "gitlab_get_project_memeber_role" or len(call.arguments) != 2:
        raise JudgeFailed(f"there is no program {call.name!r} that gives a text")
    account = json.dumps(f"@{call.arguments[1]}")
    return (
        "[...document.querySelectorAll('tr')].find(row => [...row.querySelectorAll("
        "'td[data-label=Account] .gl-avatar-labeled-sublabel')].some(one => one.outerText.trim() === "
        f"{account})).querySelector('td.col-max-role span').outerText"
    )


def post_url(url: str) -> str:
    """Of the post that a comment or a post is at; the same where it is neither."""
    parts = urlsplit(url)
    path = parts.path.split("/")
    return f"{parts.scheme}://{parts.netloc}/f/{path[2]}/{path[3]}/" if path[1:2] == ["f"] and len(path) > 3 else url


def latest_order_url(sites: SiteSet) -> str:
    """Of the shop's newest order.

    Raises:
        JudgeFailed: the shop does not tell.
    """
    order = "searchCriteria[sortOrders][0]"
    asked = {f"{order}[field]": "created_at", f"{order}[direction]": "DESC", "searchCriteria[pageSize]": "1"}
    orders = _shop(sites, f"/rest/V1/orders?{urlencode(asked)}")
    return f"{_base(sites)}/sales/order/view/order_id/{_told(lambda: int(orders['items'][0]['increment_id']))}/"


def _base(sites: SiteSet) -> str:
    if "shopping" not in sites.urls:
        raise JudgeFailed("the sites have no shop")
    return sites.urls["shopping"].rstrip("/")


def _shop(sites: SiteSet, path: str) -> Any:
    account = sites.accounts.get("shopping_admin", PUBLISHED["shopping_admin"])
    given = json.dumps({"username": account.user, "password": account.password}).encode()
    token = _answer(f"{_base(sites)}/rest/default/V1/integration/admin/token", given)
    return _answer(f"{_base(sites)}{path}", token=str(token))


def _answer(url: str, given: bytes | None = None, token: str = "") -> Any:
    """What the shop answers to a question, a POST where something is given.

    Raises:
        JudgeFailed: nothing, or an error.
    """
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, given, headers), timeout=_SECONDS) as answer:
            return json.load(answer)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise JudgeFailed(f"the shop does not tell at {url.partition('?')[0]}: {error}") from error


def _told(look: Callable[[], Any]) -> Any:
    try:
        return look()
    except (LookupError, TypeError, ValueError) as error:
        raise JudgeFailed(f"the shop's answer is of another form: {type(error).__name__}: {error}") from error
