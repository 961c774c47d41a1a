"""The shop as its customers see it: catalogue, cart, checkout, orders, wish list and account."""

from __future__ import annotations

import sqlite3

from train_adapters.webarena.sites.forms import area, check, choice, field, form, radios
from train_adapters.webarena.sites.layout import frame, like, money, piece, search_form, stars
from train_adapters.webarena.sites.markup import Html, Node, details, join, link, paragraphs, table, tag
from train_adapters.webarena.sites.seed_shop import PAYMENTS, SHIPPING
from train_adapters.webarena.sites.seeding import TODAY
from train_adapters.webarena.sites.web import LONGEST_TEXT, Answer, Refused, Request, Site, go

SITE = Site("shop", "Shop")
MOST_OF_ONE = 20
"""How many of one product may be in a cart."""

_SORTS = {"name": "name", "price": "price", "price-down": "price DESC"}
_SORT_NAMES = (("name", "Name"), ("price", "Price, lowest first"), ("price-down", "Price, highest first"))
_SHIPPING_NAMES = [(name, f"{name.capitalize()} ({money(price)})") for name, price in SHIPPING.items()]
_LINKS = (("Cart", "/cart"), ("My Orders", "/orders"), ("My Wish List", "/wishes"), ("My Account", "/account"))


def _page(request: Request, title: str, *content: Node) -> Html:
    return frame(SITE, request, title, _LINKS, search_form(SITE, "Search products", request.asked("q")), content)


@SITE.get("/")
def home(request: Request) -> Html:
    names = request.rows("SELECT id, name FROM categories ORDER BY id")
    featured = request.rows("SELECT * FROM products WHERE enabled AND featured ORDER BY id")
    categories = tag("ul", [tag("li", link(row["name"], f"/shop/category/{row['id']}")) for row in names])
    return _page(
        request,
        "Welcome to the Shop",
        [tag("h2", "Categories"), categories, tag("h2", "Featured products")],
        [_offer(row) for row in featured],
    )


def _offer(row: sqlite3.Row) -> Html:
    return tag("article", link(row["name"], f"/shop/product/{row['id']}"), " ", money(row["price"]))


@SITE.get("/category/{number:int}")
def category(request: Request, number: int) -> Html:
    name = request.row("SELECT name FROM categories WHERE id = ?", number)["name"]
    sort = request.asked("sort", "name")
    order = _SORTS.get(sort, "name")
    rows = request.rows(f"SELECT * FROM products WHERE enabled AND category = ? ORDER BY {order}", number)
    path = f"/shop/category/{number}"
    sorting = form(path, "Sort", choice("Sort by", "sort", _SORT_NAMES, sort), method="get")
    return _page(request, name, sorting, piece(request, [_offer(row) for row in rows], path, 5))


@SITE.get("/search")
def search(request: Request) -> Html:
    text = request.asked("q").strip()
    rows = request.rows(
        "SELECT * FROM products WHERE enabled AND (name LIKE ?1 ESCAPE '\\' OR description LIKE ?1 ESCAPE '\\')"
        " ORDER BY name LIKE ?1 ESCAPE '\\' DESC, name",
        like(text),
    )
    return _page(request, f"Results for “{text}”", piece(request, [_offer(row) for row in rows], "/shop/search", 5))


@SITE.get("/product/{number:int}")
def product(request: Request, number: int) -> Html:
    row = _offered(request, number)
    facts: list[tuple[str, Node]] = [("Price", tag("span", money(row["price"]), class_="price"))]
    facts += [
        ("Color", row["color"]),
        ("SKU", row["sku"]),
        ("Availability", "In stock" if row["stock"] else "Sold out"),
    ]
    quantities = [(count, str(count)) for count in range(1, 11)]
    buy = form(f"/shop/cart/add/{number}", "Add to Cart", choice("Quantity", "quantity", quantities))
    wish = form(f"/shop/wishes/add/{number}", "Add to Wish List")
    return _page(
        request, row["name"], details(facts), paragraphs(row["description"]), buy, wish, _reviews(request, number)
    )


def _offered(request: Request, number: int) -> sqlite3.Row:
    return request.row("SELECT * FROM products WHERE enabled AND id = ?", number)


def _reviews(request: Request, number: int) -> Html:
    rows = request.rows(
        "SELECT reviews.*, name FROM reviews JOIN customers ON user = customer"
        " WHERE product = ? AND approved ORDER BY id",
        number,
    )
    shown = [
        tag(
            "article",
            tag("h3", row["title"]),
            tag("p", f"{stars(row['rating'])}, by {row['name']}"),
            paragraphs(row["text"]),
        )
        for row in rows
    ]
    ratings = [(rating, stars(rating)) for rating in range(5, 0, -1)]
    fields = [choice("Your rating", "rating", ratings), field("Title", "title"), area("Review", "text")]
    own = form(f"/shop/product/{number}/review", "Submit Review", fields)
    return join(tag("h2", f"Reviews ({len(rows)})"), shown, tag("h2", "Write a review"), own)


@SITE.post("/product/{number:int}/review")
def add_review(request: Request, number: int) -> Answer:
    user = request.login
    _offered(request, number)
    rating, title = request.number("rating", "Your rating", 1, 5), request.text("title", "Title")
    text = request.text("text", "Review", LONGEST_TEXT)
    request.write("INSERT INTO reviews VALUES (NULL, ?, ?, ?, ?, ?, 0, ?)", number, user, rating, title, text, TODAY)
    return go(f"/shop/product/{number}", notice="added")


@SITE.get("/cart")
def cart(request: Request) -> Html:
    rows = _in_cart(request)
    if not rows:
        return _page(request, "Cart", tag("p", "Your cart is empty."))
    lines = [_cart_line(row) for row in rows]
    shown = table(("Product", "Price", "Quantity", ""), lines)
    total = tag("p", "Subtotal: ", tag("span", money(_subtotal(rows)), class_="subtotal"))
    return _page(request, "Cart", shown, total, link("Proceed to Checkout", "/shop/checkout"))


def _in_cart(request: Request) -> list[sqlite3.Row]:
    return request.rows(
        "SELECT products.*, quantity FROM cart JOIN products ON id = product WHERE customer = ? ORDER BY id",
        request.login,
    )


def _cart_line(row: sqlite3.Row) -> list[Node]:
    number, name = row["id"], row["name"]
    change = field(f"Quantity of {name}", "quantity", row["quantity"], place=f"quantity-{number}")
    update = form(f"/shop/cart/update/{number}", f"Update {name}", change)
    remove = form(f"/shop/cart/remove/{number}", f"Remove {name}")
    return [link(name, f"/shop/product/{number}"), money(row["price"]), update, remove]


def _subtotal(rows: list[sqlite3.Row]) -> int:
    return sum(row["price"] * row["quantity"] for row in rows)


@SITE.post("/cart/add/{number:int}")
def add_to_cart(request: Request, number: int) -> Answer:
    user, count = request.login, request.number("quantity", "Quantity", 1, MOST_OF_ONE)
    _offered(request, number)
    request.write(
        "INSERT INTO cart VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET quantity = min(quantity + excluded.quantity, ?)",
        *(user, number, count, MOST_OF_ONE),
    )
    return go("/shop/cart", notice="added")


@SITE.post("/cart/update/{number:int}")
def update_cart(request: Request, number: int) -> Answer:
    count = request.number("quantity", "Quantity", 1, MOST_OF_ONE)
    request.write("UPDATE cart SET quantity = ? WHERE customer = ? AND product = ?", count, request.login, number)
    return go("/shop/cart", notice="saved")


@SITE.post("/cart/remove/{number:int}")
def remove_from_cart(request: Request, number: int) -> Answer:
    request.write("DELETE FROM cart WHERE customer = ? AND product = ?", request.login, number)
    return go("/shop/cart", notice="removed")


@SITE.get("/checkout")
def checkout(request: Request) -> Html:
    rows = _in_cart(request)
    if not rows:
        return _page(request, "Checkout", tag("p", "Your cart is empty."))
    buyer = request.row("SELECT * FROM customers WHERE user = ?", request.login)
    lines = [[row["name"], row["quantity"], money(row["price"] * row["quantity"])] for row in rows]
    fields = [
        field("Street", "street", buyer["street"]),
        field("City", "city", buyer["city"]),
        radios("Shipping method", "shipping", _SHIPPING_NAMES, "standard"),
        choice("Payment method", "payment", [(name, name.capitalize()) for name in PAYMENTS]),
    ]
    shown = table(("Product", "Quantity", "Price"), lines)
    return _page(request, "Checkout", shown, form("/shop/checkout", "Place Order", fields))


@SITE.post("/checkout")
def place_order(request: Request) -> Answer:
    rows, user = _in_cart(request), request.login
    if not rows:
        raise Refused(400, "Your cart is empty.")
    street, city = request.text("street", "Street"), request.text("city", "City")
    shipping = request.one_of("shipping", "Shipping method", list(SHIPPING))
    payment = request.one_of("payment", "Payment method", PAYMENTS)
    total = _subtotal(rows) + SHIPPING[shipping]
    number = request.write(
        "INSERT INTO orders VALUES (NULL, ?, 'pending', ?, ?, ?, ?, ?, ?)",
        *(user, shipping, payment, street, city, total, TODAY),
    )
    for row in rows:
        request.write("INSERT INTO order_lines VALUES (?, ?, ?, ?)", number, row["id"], row["quantity"], row["price"])
    request.write("DELETE FROM cart WHERE customer = ?", user)
    return go(f"/shop/order/{number}", notice="added")


@SITE.get("/orders")
def orders(request: Request) -> Html:
    rows = request.rows("SELECT * FROM orders WHERE customer = ? ORDER BY id DESC", request.login)
    lines = [
        tag("article", link(f"Order {row['id']}", f"/shop/order/{row['id']}"), f" of {row['date']}, {row['status']}")
        for row in rows
    ]
    return _page(request, "My Orders", piece(request, lines, "/shop/orders"))


@SITE.get("/order/{number:int}")
def order(request: Request, number: int) -> Html:
    row = _own_order(request, number)
    facts: list[tuple[str, Node]] = [("Status", tag("span", row["status"], class_="status")), ("Date", row["date"])]
    facts += [("Shipping method", row["shipping"]), ("Payment method", row["payment"])]
    facts += [("Address", f"{row['street']}, {row['city']}")]
    facts += [("Grand total", tag("span", money(row["total"]), class_="total"))]
    cancel = form(f"/shop/order/{number}/cancel", "Cancel Order") if row["status"] == "pending" else None
    return _page(request, f"Order {number}", details(facts), order_lines(request, number), cancel)


def order_lines(request: Request, number: int) -> Html:
    """What an order is made of."""
    lines = request.rows(
        "SELECT * FROM order_lines JOIN products ON id = product WHERE order_id = ? ORDER BY id", number
    )
    # The names of both tables' price columns are the same: the order's, which was paid, comes first.
    cells = [[line["name"], line["quantity"], money(line["price"] * line["quantity"])] for line in lines]
    return table(("Product", "Quantity", "Price"), cells)


def _own_order(request: Request, number: int) -> sqlite3.Row:
    return request.row("SELECT * FROM orders WHERE id = ? AND customer = ?", number, request.login)


@SITE.post("/order/{number:int}/cancel")
def cancel_order(request: Request, number: int) -> Answer:
    if _own_order(request, number)["status"] != "pending":
        raise Refused(400, "Only pending orders can be canceled.")
    request.write("UPDATE orders SET status = 'canceled' WHERE id = ?", number)
    return go(f"/shop/order/{number}", notice="saved")


@SITE.get("/wishes")
def wishes(request: Request) -> Html:
    rows = request.rows(
        "SELECT id, name FROM wishes JOIN products ON id = product WHERE customer = ? ORDER BY id", request.login
    )
    lines = [
        tag("article", link(row["name"], f"/shop/product/{row['id']}"), _unwish(row["id"], row["name"])) for row in rows
    ]
    return _page(request, "My Wish List", piece(request, lines, "/shop/wishes"))


def _unwish(number: int, name: str) -> Html:
    return form(f"/shop/wishes/remove/{number}", f"Remove {name}")


@SITE.post("/wishes/add/{number:int}")
def add_wish(request: Request, number: int) -> Answer:
    _offered(request, number)
    request.write("INSERT OR IGNORE INTO wishes VALUES (?, ?)", request.login, number)
    return go("/shop/wishes", notice="added")


@SITE.post("/wishes/remove/{number:int}")
def remove_wish(request: Request, number: int) -> Answer:
    request.write("DELETE FROM wishes WHERE customer = ? AND product = ?", request.login, number)
    return go("/shop/wishes", notice="removed")


@SITE.get("/account")
def account(request: Request) -> Html:
    row = request.row("SELECT * FROM customers WHERE user = ?", request.login)
    fields = [
        field("Street", "street", row["street"]),
        field("City", "city", row["city"]),
        field("Phone", "phone", row["phone"]),
        check("Send me the newsletter", "newsletter", ticked=bool(row["newsletter"])),
    ]
    known = details([("Name", row["name"]), ("Email", row["email"])])
    return _page(request, "My Account", known, form("/shop/account", "Save Account", fields))


@SITE.post("/account")
def save_account(request: Request) -> Answer:
    values = [request.text(name, name.capitalize()) for name in ("street", "city", "phone")]
    values.append("1" if request.several("newsletter") else "0")
    request.write(
        "UPDATE customers SET street = ?, city = ?, phone = ?, newsletter = ? WHERE user = ?", *values, request.login
    )
    return go("/shop/account", notice="saved")
