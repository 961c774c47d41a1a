"""Scripts that solve the tasks of the local sites, and scripts that look like it and do not.

They are written against what people see on the pages: links and buttons by their text, fields by their labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from train_adapters.webarena.sites.tasks import TEMPLATES, site_tasks


@dataclass(frozen=True)
class Step:
    """One action.

    Attributes:
        action: its name in the action language.
        target: text of a link or a button, or label of a field; the first on the page where several have it.
        argument: text to enter, option to select, or message of the exit.
    """

    action: str
    target: str = ""
    argument: str = ""


Steps = tuple[Step, ...]


def click(target: str) -> Step:
    return Step("Click", target)


def type_(label: str, text: object) -> Step:
    return Step("Type", label, str(text))


def search(what: str, text: str) -> Step:
    return Step("Search", f"Search {what}", text)


def choose(label: str, option: object) -> Step:
    return Step("Select Dropdown Option", label, str(option))


def leave(message: str = "") -> Step:
    return Step("exit", argument=message)


def _told(*steps: Step) -> Callable[..., Steps]:
    """A way whose last word is the answer."""
    return lambda answer, **_: (*steps, leave(answer))


def _then(*steps: Step) -> Steps:
    return (*steps, leave("done"))


def _save_account(*steps: Step) -> Steps:
    return _then(click("My Account"), *steps, click("Save Account"))


def _edit_issue(issue: str, *steps: Step) -> Steps:
    return _then(search("issues", issue), click(issue), click("Edit Issue"), *steps, click("Save Issue"))


def _edit_product(product: str, *steps: Step) -> Steps:
    return _then(click("Products"), search("products", product), click(product), *steps, click("Save Product"))


def _review(product: str, stars: int, title: str, text: str) -> Steps:
    rating = choose("Your rating", f"{stars} of 5 stars")
    return _then(click(product), rating, type_("Title", title), type_("Review", text), click("Submit Review"))


def _buy(product: str, shipping: str, payment: str) -> Steps:
    way = {"standard": "Standard ($4.90)", "express": "Express ($12.90)", "pickup": "Pickup ($0.00)"}[shipping]
    paid = choose("Payment method", payment.capitalize())
    chosen = (click(product), click("Add to Cart"), click("Proceed to Checkout"), click(way), paid)
    return _then(*chosen, click("Place Order"))


def _create_issue(project: str, title: str, label: str, milestone: str) -> Steps:
    fields = (type_("Title", title), choose("Milestone", milestone), click(label))
    return _then(click(project), click("New Issue"), *fields, click("Create Issue"))


def _submit_post(board: str, title: str, text: str) -> Steps:
    fields = (choose("Board", board), type_("Title", title), type_("Text", text))
    return _then(click("Submit Post"), *fields, click("Create Post"))


def _report_price(product: str, project: str, title: str, price: str) -> Steps:
    look = (click("Shop"), search("products", product), click("All Sites"), click("Issue Tracker"))
    fields = (type_("Title", title), type_("Description", price))
    return _then(*look, click(project), click("New Issue"), *fields, click("Create Issue"))


WAYS: Mapping[str, Callable[..., Steps]] = {
    "shop-open-product": lambda product: _then(click(product)),
    "shop-open-category": lambda category: _then(click(category)),
    "shop-open-section": lambda section: _then(click({"cart": "Cart", "list of orders": "My Orders"}[section])),
    "shop-price": _told(),
    "shop-color": lambda product, answer: (click(product), leave(answer)),
    "shop-search-price": lambda product, answer: (search("products", product), leave(answer)),
    "shop-cheapest": lambda category, answer: (
        *(click(category), choose("Sort by", "Price, lowest first"), click("Sort"), leave(answer)),
    ),
    "shop-cart": lambda product, count: _then(click(product), choose("Quantity", count), click("Add to Cart")),
    "shop-order-status": _told(click("My Orders")),
    "shop-order-total": lambda order, answer: (click("My Orders"), click(f"Order {order}"), leave(answer)),
    "shop-cancel": lambda order: _then(click("My Orders"), click(f"Order {order}"), click("Cancel Order")),
    "shop-wish": lambda product: _then(click(product), click("Add to Wish List")),
    "shop-unwish": lambda product: _then(click("My Wish List"), click(f"Remove {product}")),
    "shop-buy": _buy,
    "shop-review": _review,
    "shop-phone": lambda phone: _save_account(type_("Phone", phone)),
    "shop-move": lambda street, city: _save_account(type_("Street", street), type_("City", city)),
    "shop-newsletter": lambda last="Save Account": _then(
        *(click("My Account"), click("Send me the newsletter"), click(last))
    ),
    "shop-reviewer": lambda product, stars, answer: (search("products", product), click(product), leave(answer)),
    "admin-open": lambda section: _then(click(section.capitalize())),
    "admin-bestseller": _told(),
    "admin-stock": lambda product, answer: (click("Products"), click(product), leave(answer)),
    "admin-contact": lambda customer, answer: (click("Customers"), click(customer), leave(answer)),
    "admin-count": lambda status, answer: (
        *(click("Orders"), choose("Status", status), click("Filter"), leave(answer)),
    ),
    "admin-price": lambda product, price: _then(
        *(click("Products"), click(product), type_("Price in dollars", price), click("Save Product"))
    ),
    "admin-restock": lambda product, count: _edit_product(product, type_("Stock", count)),
    "admin-disable": lambda product: _edit_product(product, click("Enabled")),
    "admin-order": lambda order, status: _then(
        *(click("Orders"), click(f"Order {order}"), choose("Status", status), click("Save Order"))
    ),
    "admin-approve": lambda review: _then(click("Reviews"), click(f"Review {review}"), click("Approve Review")),
    "admin-delete-review": lambda product, review: _then(
        *(click("Reviews"), click(f"Review {review}"), click("Delete Review"))
    ),
    "forum-open-board": lambda board: _then(click(board)),
    "forum-profile": lambda page="My Profile": _then(click(page)),
    "forum-open-post": lambda post: _then(search("posts", post), click(post)),
    "forum-score": lambda post, answer: (search("posts", post), leave(answer)),
    "forum-author": lambda post, answer: (search("posts", post), leave(answer)),
    "forum-top": lambda board, answer: (*(click(board), choose("Sort by", "Top score"), click("Sort"), leave(answer)),),
    "forum-vote": lambda post, direction: _then(search("posts", post), click(post), click(f"{direction.title()}vote")),
    "forum-downvote": lambda post, direction: _then(
        *(search("posts", post), click(post), click(f"{direction.title()}vote"))
    ),
    "forum-comment": lambda post, text: _then(
        *(search("posts", post), click(post), type_("Comment", text), click("Add Comment"))
    ),
    "forum-submit": _submit_post,
    "forum-join": lambda board: _then(click(board), click("Subscribe")),
    "forum-leave": lambda board: _then(click(board), click("Unsubscribe")),
    "forum-biography": lambda text: _then(click("Settings"), type_("Biography", text), click("Save Settings")),
    "tracker-open-project": lambda project: _then(click(project)),
    "tracker-open-issue": lambda issue: _then(search("issues", issue), click(issue)),
    "tracker-assignee": lambda issue, answer: (search("issues", issue), click(issue), leave(answer)),
    "tracker-due": lambda project, milestone, answer: (click(project), click("Milestones"), leave(answer)),
    "tracker-count": lambda project, label, answer: (
        *(click(project), choose("Label", label), click("Filter"), leave(answer)),
    ),
    "tracker-filter": lambda project, status, label: _then(
        *(click(project), choose("Status", status), choose("Label", label), click("Filter"))
    ),
    "tracker-close": lambda issue: _then(search("issues", issue), click(issue), click("Close Issue")),
    "tracker-comment": lambda issue, text: _then(
        *(search("issues", issue), click(issue), type_("Comment", text), click("Add Comment"))
    ),
    "tracker-assign": lambda issue, developer: _edit_issue(issue, choose("Assignee", developer)),
    "tracker-label": lambda issue, label: _edit_issue(issue, click(label)),
    "tracker-rename": lambda issue, title: _edit_issue(issue, type_("Title", title)),
    "tracker-create": _create_issue,
    "both-price-report": _report_price,
}
"""The script of each template, told the values of a task and what `KNOWN` adds."""

KNOWN: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "shop-price-1": ({"answer": "$170.45"}, {"answer": "$124.25"}),
    "shop-price-2": ({"answer": "$51.05"}, {"answer": "$151.05"}),
    "shop-price-3": ({"answer": "130.85"}, {"answer": "130.8"}),
    "shop-color-1": ({"answer": "Orange"}, {"answer": "Blue"}),
    "shop-color-2": ({"answer": "brown."}, {"answer": "It is not orange"}),
    "shop-search-price-1": ({"answer": "$129.90"}, {"answer": "$130.85"}),
    "shop-search-price-2": ({"answer": "$112.10"}, {"answer": "$12.10"}),
    "shop-search-price-3": ({"answer": "$104.35"}, {"answer": "$104.35 or $124.25"}),
    "shop-cheapest-1": ({"answer": "Clay Flower Pot"}, {"answer": "Folding Garden Chair"}),
    "shop-cheapest-2": ({"answer": "Down Sleeping Bag"}, {"answer": "Packable Rain Jacket"}),
    "shop-cheapest-3": ({"answer": "Walnut Coffee Grinder"}, {"answer": "Copper Saucepan"}),
    "shop-order-status-1": ({"answer": "shipped"}, {"answer": "delivered"}),
    "shop-order-status-2": ({"answer": "Canceled"}, {"answer": "not canceled"}),
    "shop-order-status-3": ({"answer": "processing"}, {"answer": "pending"}),
    "shop-order-total-1": ({"answer": "$626.85"}, {"answer": "$621.95"}),
    "shop-order-total-2": ({"answer": "$945.60"}, {"answer": "$846.25"}),
    "shop-reviewer-1": ({"answer": "Priya Nair"}, {"answer": "Hana Sato"}),
    "shop-reviewer-2": ({"answer": "Diego Fuentes"}, {"answer": "Diego"}),
    "admin-bestseller-1": ({"answer": "Marble Run Set"}, {"answer": "Kite with Tail"}),
    "admin-stock-1": ({"answer": "25"}, {"answer": "2"}),
    "admin-stock-2": ({"answer": "31"}, {"answer": "25"}),
    "admin-contact-1": (
        {"answer": "hana.sato@example.com, 555-0107"},
        {"answer": "hana.sato@example.com, 555-0101"},
    ),
    "admin-contact-2": ({"answer": "emma.weber@example.com and 555-0101"}, {"answer": "emma.weber@example.com"}),
    "admin-count-1": ({"answer": "6"}, {"answer": "36"}),
    "admin-count-2": ({"answer": "8"}, {"answer": "6"}),
    "admin-delete-review-1": ({"review": 27}, {"review": 24}),
    "admin-delete-review-2": ({"review": 61}, {"review": 69}),
    "forum-score-1": ({"answer": "42"}, {"answer": "17"}),
    "forum-score-2": ({"answer": "21"}, {"answer": "82"}),
    "forum-author-1": ({"answer": "bakerlena"}, {"answer": "quietreader"}),
    "forum-author-2": ({"answer": "chess_pablo"}, {"answer": "emma_w"}),
    "forum-top-1": ({"answer": "quietreader"}, {"answer": "hillwalker_mo"}),
    "forum-top-2": ({"answer": "stargazer_io"}, {"answer": "chess_pablo"}),
    "tracker-assignee-1": ({"answer": "Emma Weber"}, {"answer": "Mei Lin"}),
    "tracker-assignee-2": ({"answer": "Bea Novak"}, {"answer": "nobody"}),
    "tracker-due-1": ({"answer": "2026-07-12"}, {"answer": "2026-06-19"}),
    "tracker-due-2": ({"answer": "2026-06-03"}, {"answer": "2026-05-20"}),
    "tracker-count-1": ({"answer": "2"}, {"answer": "9"}),
    "tracker-count-2": ({"answer": "1"}, {"answer": "2"}),
    "both-price-report-1": ({"price": "$129.90"}, {"price": "$130.85"}),
    "both-price-report-2": ({"price": "$112.10"}, {"price": "$129.90"}),
}
"""What the tasks do not say, read off the pages: as it is, and as somebody who errs would have it."""

ERRORS: Mapping[str, Mapping[str, Any]] = {
    "shop-open-product": {"product": "Steel Watering Can"},
    "shop-open-category": {"category": "Office"},
    "shop-cart": {"count": 4},
    "shop-wish": {"product": "Maple Ukulele"},
    "shop-buy": {"payment": "invoice"},
    "shop-review": {"stars": 3},
    "shop-phone": {"phone": "555-0100"},
    "shop-move": {"city": "Ashford"},
    "shop-newsletter": {"last": "My Account"},
    "admin-price": {"price": "3.95"},
    "admin-restock": {"product": "Puzzle of the Alps"},
    "admin-disable": {"product": "Toy Sailboat"},
    "admin-order": {"order": 1034},
    "admin-approve": {"review": 5},
    "forum-open-board": {"board": "Cycling"},
    "forum-profile": {"page": "Settings"},
    "forum-open-post": {"post": "First ride over 100 km"},
    "forum-vote": {"direction": "down"},
    "forum-downvote": {"direction": "up"},
    "forum-comment": {"post": "Best pan for pancakes"},
    "forum-submit": {"board": "Books"},
    "forum-join": {"board": "Board Games"},
    "forum-biography": {"text": "I bake."},
    "tracker-open-project": {"project": "Warehouse"},
    "tracker-open-issue": {"issue": "Broken links in the index"},
    "tracker-filter": {"status": "open"},
    "tracker-close": {"issue": "Add a dark theme"},
    "tracker-comment": {"issue": "Add a dark theme"},
    "tracker-assign": {"developer": "Jonas Keller"},
    "tracker-label": {"label": "feature"},
    "tracker-rename": {"issue": "Add a dark theme"},
    "tracker-create": {"milestone": "1.0"},
}
"""Values that are not those of the task: the right way, taken with the wrong thing."""

_OTHER = ("shop-open-section", "shop-cancel", "shop-unwish", "admin-open", "forum-leave")
"""Templates whose anti-oracle does what another of their tasks asks for."""


def _values(task: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(task["instantiation_dict"])


def _oracle(task: Mapping[str, Any]) -> Steps:
    known, _ = KNOWN.get(task["name"], ({}, {}))
    return WAYS[_template(task)](**_values(task), **known)


def _anti_oracle(task: Mapping[str, Any]) -> Steps:
    name, (_, wrong) = _template(task), KNOWN.get(task["name"], ({}, {}))
    other = {}
    if name in _OTHER:
        values = TEMPLATES[task["intent_template_id"]].values
        other = values[(list(values).index(task["instantiation_dict"]) + 1) % len(values)]
    return WAYS[name](**{**_values(task), **other, **ERRORS.get(name, {}), **wrong})


def _template(task: Mapping[str, Any]) -> str:
    return str(task["name"]).rpartition("-")[0]


ORACLES: Mapping[str, Steps] = {task["name"]: _oracle(task) for task in site_tasks()}
"""By name of the task: earns 1."""
ANTI_ORACLES: Mapping[str, Steps] = {task["name"]: _anti_oracle(task) for task in site_tasks()}
"""By name of the task: a plausible mistake, which earns 0."""
