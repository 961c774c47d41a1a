"""The content that every reset brings back: written lists, combined by streams of their own."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TypeVar

from train_adapters.webarena.sites import seed_forum, seed_shop, seed_tracker

T = TypeVar("T")

TODAY = "2026-03-16"
"""The date of everything that is added later."""


def fill(database: sqlite3.Connection) -> None:
    """Put the content into empty tables."""
    _fill_shop(database, Stream("shop"))
    _fill_forum(database, Stream("forum"))
    _fill_tracker(database, Stream("tracker"))


class Stream:
    """Draws that are the same in every version of Python: only `Random.random` promises that.

    Args:
        name: of the stream.
    """

    def __init__(self, name: str) -> None:
        self._random = random.Random(f"sites/{name}")

    def below(self, bound: int) -> int:
        """A whole number from 0 to below the bound."""
        return int(self._random.random() * bound)

    def between(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        return least + self.below(most - least + 1)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def some(self, items: Iterable[T], count: int) -> list[T]:
        """Different items, in drawn order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]

    def date(self, months: Sequence[int]) -> str:
        """A day of 2026 in one of the months."""
        return f"2026-{self.pick(months):02}-{self.between(1, 14):02}"


def _add(database: sqlite3.Connection, table: str, *values: object) -> None:
    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)


def _fill_shop(database: sqlite3.Connection, draw: Stream) -> None:
    for number, name in enumerate(seed_shop.PRODUCTS, 1):
        _add(database, "categories", number, name)
    for row in seed_shop.CUSTOMERS:
        _add(database, "customers", *row)
    products = [(category, *one) for category, ones in enumerate(seed_shop.PRODUCTS.values(), 1) for one in ones]
    for number, (category, name, color) in enumerate(products, 1):
        text = f"{name} in {color.lower()}. {draw.pick(seed_shop.PRAISE)} {draw.pick(seed_shop.CARE)}"
        sku = f"{name[:2].upper()}-{number:03}"
        price = draw.between(4, 180) * 100 + 5 * number % 100  # no two products of a category cost the same
        _add(
            database,
            "products",
            number,
            category,
            name,
            sku,
            price,
            draw.between(3, 90),
            1,
            number % 8 == 1,
            color,
            text,
        )
        _add_reviews(database, draw, number)
    _add_orders(database, draw, len(products))
    for product in (6, 23):
        _add(database, "wishes", "emma", product)
    _add(database, "cart", "liam", 4, 1)


def _add_reviews(database: sqlite3.Connection, draw: Stream, product: int) -> None:
    customers = [row[0] for row in seed_shop.CUSTOMERS if row[0] != "emma"]
    for customer in draw.some(customers, draw.between(0, 4)):
        rating = draw.between(1, 5)
        title, text = draw.pick(seed_shop.REVIEWS[rating])
        approved = draw.below(8) > 0
        _add(database, "reviews", None, product, customer, rating, title, text, approved, draw.date((1, 2)))


def _add_orders(database: sqlite3.Connection, draw: Stream, products: int) -> None:
    customers = [row[0] for row in seed_shop.CUSTOMERS]
    for place in range(36):
        number, customer = 1001 + place, "emma" if place % 4 == 2 else customers[place % len(customers)]
        status = seed_shop.STATUSES[place // 4 % 5] if customer == "emma" else draw.pick(seed_shop.STATUSES)
        street, city = database.execute("SELECT street, city FROM customers WHERE user = ?", (customer,)).fetchone()
        shipping = draw.pick(list(seed_shop.SHIPPING))
        date = f"2026-{1 + place // 14:02}-{1 + place % 14 * 2:02}"
        _add(
            database, "orders", number, customer, status, shipping, draw.pick(seed_shop.PAYMENTS), street, city, 0, date
        )
        total = seed_shop.SHIPPING[shipping]
        for product in draw.some(range(1, products + 1), draw.between(1, 3)):
            price = database.execute("SELECT price FROM products WHERE id = ?", (product,)).fetchone()[0]
            quantity = draw.between(1, 3)
            total += price * quantity
            _add(database, "order_lines", number, product, quantity, price)
        database.execute("UPDATE orders SET total = ? WHERE id = ?", (total, number))


def _fill_forum(database: sqlite3.Connection, draw: Stream) -> None:
    for name, bio in seed_forum.MEMBERS.items():
        _add(database, "members", name, bio, f"2025-{draw.between(1, 12):02}-{draw.between(1, 28):02}")
    names = list(seed_forum.MEMBERS)
    for board, (title, about, posts) in seed_forum.BOARDS.items():
        _add(database, "boards", board, title, about)
        scores = draw.some(range(3, 90), len(posts))
        for place, ((headline, text), score) in enumerate(zip(posts, scores, strict=True)):
            author = "emma_w" if place == 4 else draw.pick(names[1:])
            number = database.execute("SELECT count(*) FROM posts").fetchone()[0] + 1
            _add(database, "posts", number, board, author, headline, text, draw.date((1, 2, 3)), score)
            for member in draw.some(names, draw.between(0, 4)):
                _add(database, "comments", None, number, member, draw.pick(seed_forum.COMMENTS), draw.date((3,)))
    for board in ("cooking", "gardening"):
        _add(database, "subscriptions", "emma_w", board)


def _fill_tracker(database: sqlite3.Connection, draw: Stream) -> None:
    for user, name in seed_tracker.DEVELOPERS.items():
        _add(database, "developers", user, name)
    users = list(seed_tracker.DEVELOPERS)
    for place, (slug, (name, about, titles)) in enumerate(seed_tracker.PROJECTS.items()):
        _add(database, "projects", slug, name, about)
        labels = [place * 10 + one for one in range(1, 1 + len(seed_tracker.LABELS))]
        for number, label in zip(labels, seed_tracker.LABELS, strict=True):
            _add(database, "labels", number, slug, label)
        milestones = [place * 10 + one for one in range(1, 1 + len(seed_tracker.MILESTONES))]
        for number, title in zip(milestones, seed_tracker.MILESTONES, strict=True):
            due = f"2026-{4 + number % 10 + place // 2:02}-{draw.between(1, 28):02}"
            _add(database, "milestones", number, slug, title, due)
        for title, text in titles:
            _add_issue(database, draw, slug, title, text, users, labels, milestones)


def _add_issue(
    database: sqlite3.Connection,
    draw: Stream,
    project: str,
    title: str,
    text: str,
    users: Sequence[str],
    labels: Sequence[int],
    milestones: Sequence[int],
) -> None:
    number = database.execute("SELECT count(*) FROM issues").fetchone()[0] + 1
    status = "closed" if draw.below(4) == 0 else "open"
    assignee = None if draw.below(3) == 0 else draw.pick(users)
    milestone = None if draw.below(3) == 0 else draw.pick(milestones)
    date = draw.date((1, 2, 3))
    _add(database, "issues", number, project, title, text, status, draw.pick(users), assignee, milestone, date)
    for label in sorted(draw.some(labels, draw.between(0, 2))):
        _add(database, "issue_labels", number, label)
    for user in draw.some(users, draw.between(0, 2)):
        _add(database, "notes", None, number, user, draw.pick(seed_tracker.NOTES), draw.date((3,)))
