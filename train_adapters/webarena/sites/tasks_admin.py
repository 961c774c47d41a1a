"""Tasks of the shop's manager."""

from __future__ import annotations

from train_adapters.webarena.sites.template import (
    Check,
    Seed,
    Template,
    answer,
    changed,
    each,
    ends_at,
    mentions,
    removed,
    state,
)

_ADMIN, _START = ("admin",), "__ADMIN__/"


def _section(seed: Seed, section: str) -> Check:
    return ends_at(f"__ADMIN__/{section}")


def _stock(seed: Seed, product: str) -> Check:
    return answer(seed.one("SELECT stock FROM products WHERE name = ?", product))


def _bestseller(seed: Seed) -> Check:
    sold = "SELECT name, sum(quantity) AS sold FROM order_lines JOIN products ON id = product GROUP BY id"
    return answer(seed.one(f"SELECT name FROM ({sold}) WHERE sold = (SELECT max(sold) FROM ({sold}))"))


def _contact(seed: Seed, customer: str) -> Check:
    columns = ("email", "phone")
    return mentions(*(seed.one(f"SELECT {column} FROM customers WHERE name = ?", customer) for column in columns))


def _count(seed: Seed, status: str) -> Check:
    return answer(seed.one("SELECT count(*) FROM orders WHERE status = ?", status))


def _priced(seed: Seed, product: str, price: str) -> Check:
    return state(changed("products", {"name": product}, price=round(float(price) * 100)))


def _stocked(seed: Seed, product: str, count: int) -> Check:
    return state(changed("products", {"name": product}, stock=count))


def _disabled(seed: Seed, product: str) -> Check:
    return state(changed("products", {"name": product}, enabled=0))


def _order(seed: Seed, order: int, status: str) -> Check:
    return state(changed("orders", {"id": order}, status=status))


def _approved(seed: Seed, review: int) -> Check:
    return state(changed("reviews", {"id": review, "approved": 0}, approved=1))


def _deleted(seed: Seed, product: str) -> Check:
    query = "SELECT reviews.id FROM reviews JOIN products ON products.id = product WHERE name = ? AND NOT approved"
    return state(removed("reviews", id=seed.one(query, product)))


TEMPLATES = (
    Template(
        *("admin-open", "train", _ADMIN, _START, "Open the page with the {{section}} of the shop."),
        each("section", "products", "orders", "customers"),
        *(_section, 2),
    ),
    Template(
        *("admin-bestseller", "val", _ADMIN, _START, "Which product sells best? Exit with its name only."),
        [{}],
        *(_bestseller, 1),
    ),
    Template(
        "admin-stock",
        *("train", _ADMIN, _START, "How many of the {{product}} are in stock? Exit with the number only."),
        each("product", "Copper Saucepan", "Stoneware Teapot"),
        *(_stock, 3),
    ),
    Template(
        *("admin-contact", "train", _ADMIN, _START),
        "Find the email address and the phone number of the customer {{customer}}. Exit with both.",
        each("customer", "Hana Sato", "Emma Weber"),
        *(_contact, 3),
    ),
    Template(
        "admin-count",
        *("test", _ADMIN, _START, "How many orders have the status {{status}}? Exit with the number only."),
        each("status", "pending", "shipped"),
        *(_count, 4),
    ),
    Template(
        *("admin-price", "train", _ADMIN, _START, "Change the price of the {{product}} to {{price}} dollars."),
        [{"product": "Stoneware Teapot", "price": "39.50"}, {"product": "Enamel Baking Tray", "price": "18.25"}],
        *(_priced, 5, True),
    ),
    Template(
        *(
            "admin-restock",
            "val",
            _ADMIN,
            _START,
            "We have counted again: set the stock of the {{product}} to {{count}}.",
        ),
        [{"product": "Plush Fox", "count": 250}, {"product": "Wall Calendar", "count": 0}],
        *(_stocked, 6, True),
    ),
    Template(
        *("admin-disable", "test", _ADMIN, _START, "Disable the {{product}}, so that it is no longer for sale."),
        each("product", "Kite with Tail", "Clip-on Tuner"),
        *(_disabled, 6, True),
    ),
    Template(
        *("admin-order", "train", _ADMIN, _START, "Set the status of order {{order}} to {{status}}."),
        [{"order": 1036, "status": "shipped"}, {"order": 1032, "status": "delivered"}],
        *(_order, 5, True),
    ),
    Template(
        *("admin-approve", "test", _ADMIN, _START, "Approve review {{review}}."),
        each("review", 4, 24),
        *(_approved, 4, True),
    ),
    Template(
        "admin-delete-review",
        *("train", _ADMIN, _START, "Delete the review of the {{product}} that waits to be approved."),
        each("product", "Jute Garden Twine", "Bluetooth Speaker"),
        *(_deleted, 4, True),
    ),
)
