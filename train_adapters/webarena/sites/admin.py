"""The shop as its manager sees it: products, orders, customers and reviews."""

from __future__ import annotations

import sqlite3

from train_adapters.webarena.sites.forms import check, choice, field, form
from train_adapters.webarena.sites.layout import frame, like, money, piece, search_form, stars
from train_adapters.webarena.sites.markup import Html, Node, details, join, link, paragraphs, table, tag
from train_adapters.webarena.sites.seed_shop import STATUSES
from train_adapters.webarena.sites.shop import order_lines
from train_adapters.webarena.sites.web import Answer, Request, Site, go

SITE = Site("admin", "Shop Admin", private=True)
HIGHEST_STOCK = 100_000
_LINKS = (("Products", "/products"), ("Orders", "/orders"), ("Customers", "/customers"), ("Reviews", "/reviews"))


def _page(request: Request, title: str, *content: Node) -> Html:
    return frame(SITE, request, title, _LINKS, content)


@SITE.get("/")
def dashboard(request: Request) -> Html:
    best = request.rows(
        "SELECT name, sum(quantity) AS sold FROM order_lines JOIN products ON id = product"
        " GROUP BY id ORDER BY sold DESC, name LIMIT 5"
    )
    facts: list[tuple[str, Node]] = [
        ("Orders", request.value("SELECT count(*) FROM orders")),
        ("Products", request.value("SELECT count(*) FROM products")),
        ("Reviews to approve", request.value("SELECT count(*) FROM reviews WHERE NOT approved")),
    ]
    sold = table(("Product", "Sold"), [[row["name"], row["sold"]] for row in best])
    return _page(request, "Dashboard", details(facts), tag("h2", "Bestsellers"), sold)


@SITE.get("/products")
def products(request: Request) -> Html:
    return _products(request, "Products", "")


@SITE.get("/search")
def search(request: Request) -> Html:
    text = request.asked("q").strip()
    return _products(request, f"Products with “{text}”", text)


def _products(request: Request, title: str, text: str) -> Html:
    rows = request.rows("SELECT * FROM products WHERE name LIKE ? ESCAPE '\\' ORDER BY id", like(text))
    lines = [
        tag("article", link(row["name"], f"/admin/product/{row['id']}"), f" {money(row['price'])}, SKU {row['sku']}")
        for row in rows
    ]
    path = f"/admin{request.path}"
    return _page(request, title, search_form(SITE, "Search products", text), piece(request, lines, path))


@SITE.get("/product/{number:int}")
def product(request: Request, number: int) -> Html:
    row = request.row("SELECT * FROM products WHERE id = ?", number)
    fields = [
        field("Price in dollars", "price", money(row["price"])[1:]),
        field("Stock", "stock", row["stock"]),
        check("Enabled", "enabled", ticked=bool(row["enabled"])),
    ]
    return _page(
        request, row["name"], details([("SKU", row["sku"])]), form(f"/admin/product/{number}", "Save Product", fields)
    )


@SITE.post("/product/{number:int}")
def save_product(request: Request, number: int) -> Answer:
    request.row("SELECT 1 FROM products WHERE id = ?", number)
    price, stock = request.cents("price", "Price"), request.number("stock", "Stock", 0, HIGHEST_STOCK)
    enabled = bool(request.several("enabled"))
    request.write("UPDATE products SET price = ?, stock = ?, enabled = ? WHERE id = ?", price, stock, enabled, number)
    return go(f"/admin/product/{number}", notice="saved")


@SITE.get("/orders")
def orders(request: Request) -> Html:
    status = request.asked("status")
    rows = request.rows("SELECT * FROM orders WHERE ?1 = '' OR status = ?1 ORDER BY id DESC", status)
    options = [("", "all"), *((one, one) for one in STATUSES)]
    narrow = form("/admin/orders", "Filter", choice("Status", "status", options, status), method="get")
    return _page(request, "Orders", narrow, piece(request, [_order_line(row) for row in rows], "/admin/orders"))


def _order_line(row: sqlite3.Row) -> Html:
    text = f" of {row['date']} by {row['customer']}, {row['status']}, {money(row['total'])}"
    return tag("article", link(f"Order {row['id']}", f"/admin/order/{row['id']}"), text)


@SITE.get("/order/{number:int}")
def order(request: Request, number: int) -> Html:
    row = request.row("SELECT orders.*, name FROM orders JOIN customers ON user = customer WHERE id = ?", number)
    facts: list[tuple[str, Node]] = [
        ("Customer", link(row["name"], f"/admin/customer/{row['customer']}")),
        ("Address", f"{row['street']}, {row['city']}"),
        ("Grand total", money(row["total"])),
    ]
    options = [(one, one) for one in STATUSES]
    change = form(f"/admin/order/{number}", "Save Order", choice("Status", "status", options, row["status"]))
    return _page(request, f"Order {number}", details(facts), order_lines(request, number), change)


@SITE.post("/order/{number:int}")
def save_order(request: Request, number: int) -> Answer:
    request.row("SELECT 1 FROM orders WHERE id = ?", number)
    request.write("UPDATE orders SET status = ? WHERE id = ?", request.one_of("status", "Status", STATUSES), number)
    return go(f"/admin/order/{number}", notice="saved")


@SITE.get("/customers")
def customers(request: Request) -> Html:
    rows = request.rows("SELECT * FROM customers ORDER BY name")
    lines = [tag("article", link(row["name"], f"/admin/customer/{row['user']}"), f" {row['city']}") for row in rows]
    return _page(request, "Customers", piece(request, lines, "/admin/customers"))


@SITE.get("/customer/{user}")
def customer(request: Request, user: str) -> Html:
    row = request.row("SELECT * FROM customers WHERE user = ?", user)
    facts: list[tuple[str, Node]] = [("Email", row["email"]), ("Phone", row["phone"])]
    facts += [("Address", f"{row['street']}, {row['city']}"), ("Newsletter", "yes" if row["newsletter"] else "no")]
    bought = request.rows("SELECT * FROM orders WHERE customer = ? ORDER BY id DESC", user)
    return _page(request, row["name"], details(facts), tag("h2", "Orders"), [_order_line(one) for one in bought])


@SITE.get("/reviews")
def reviews(request: Request) -> Html:
    rows = request.rows(
        "SELECT reviews.*, products.name AS product_name FROM reviews JOIN products ON products.id = product"
        " WHERE NOT approved ORDER BY reviews.id"
    )
    lines = [
        tag(
            "article",
            link(f"Review {row['id']}", f"/admin/review/{row['id']}"),
            f" of {row['product_name']}: {row['title']}",
        )
        for row in rows
    ]
    return _page(request, "Reviews to approve", piece(request, lines, "/admin/reviews", 12))


@SITE.get("/review/{number:int}")
def review(request: Request, number: int) -> Html:
    row = request.row("SELECT * FROM reviews WHERE id = ?", number)
    facts: list[tuple[str, Node]] = [("Customer", row["customer"]), ("Rating", stars(row["rating"]))]
    facts += [("Title", row["title"]), ("Text", paragraphs(row["text"])), ("Status", _review_status(row))]
    approve = None if row["approved"] else form(f"/admin/review/{number}/approve", "Approve Review")
    delete = form(f"/admin/review/{number}/delete", "Delete Review")
    return _page(request, f"Review {number}", details(facts), join(approve, delete))


def _review_status(row: sqlite3.Row) -> str:
    return "approved" if row["approved"] else "to approve"


@SITE.post("/review/{number:int}/approve")
def approve_review(request: Request, number: int) -> Answer:
    request.row("SELECT 1 FROM reviews WHERE id = ?", number)
    request.write("UPDATE reviews SET approved = 1 WHERE id = ?", number)
    return go(f"/admin/review/{number}", notice="saved")


@SITE.post("/review/{number:int}/delete")
def delete_review(request: Request, number: int) -> Answer:
    request.write("DELETE FROM reviews WHERE id = ?", number)
    return go("/admin/reviews", notice="removed")
