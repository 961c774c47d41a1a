"""Tasks of the shop's customers."""

from __future__ import annotations

from train_adapters.webarena.sites.seed_shop import SHIPPING
from train_adapters.webarena.sites.template import (
    Check,
    Seed,
    Template,
    added,
    answer,
    changed,
    each,
    ends_at,
    price,
    removed,
    state,
)

_SHOP, _START = ("shop",), "__SHOP__/"


def _product_page(seed: Seed, product: str) -> Check:
    return ends_at(f"__SHOP__/product/{seed.product(product)}")


def _price(seed: Seed, product: str) -> Check:
    return price(seed.one("SELECT price FROM products WHERE name = ?", product))


def _color(seed: Seed, product: str) -> Check:
    return answer(seed.one("SELECT color FROM products WHERE name = ?", product))


def _category_page(seed: Seed, category: str) -> Check:
    number = seed.one("SELECT id FROM categories WHERE name = ?", category)
    return ends_at(f"__SHOP__/category/{number}")


def _section(seed: Seed, section: str) -> Check:
    return ends_at({"cart": "__SHOP__/cart", "list of orders": "__SHOP__/orders"}[section])


def _cheapest(seed: Seed, category: str) -> Check:
    in_category = "FROM products WHERE category = (SELECT id FROM categories WHERE name = ?1)"
    return answer(seed.one(f"SELECT name {in_category} AND price = (SELECT min(price) {in_category})", category))


def _in_cart(seed: Seed, product: str, count: int) -> Check:
    return state(added("cart", customer="emma", product=seed.product(product), quantity=count))


def _order_status(seed: Seed, order: int) -> Check:
    return answer(seed.one("SELECT status FROM orders WHERE id = ? AND customer = 'emma'", order))


def _order_total(seed: Seed, order: int) -> Check:
    return price(seed.one("SELECT total FROM orders WHERE id = ? AND customer = 'emma'", order))


def _canceled(seed: Seed, order: int) -> Check:
    return state(changed("orders", {"id": order, "status": "pending"}, status="canceled"))


def _wished(seed: Seed, product: str) -> Check:
    return state(added("wishes", customer="emma", product=seed.product(product)))


def _unwished(seed: Seed, product: str) -> Check:
    return state(removed("wishes", customer="emma", product=seed.product(product)))


def _bought(seed: Seed, product: str, shipping: str, payment: str) -> Check:
    number, cost = seed.product(product), seed.one("SELECT price FROM products WHERE name = ?", product)
    paid = {"shipping": shipping, "payment": payment, "total": cost + SHIPPING[shipping]}
    return state(
        added("order_lines", product=number, quantity=1),
        added("orders", customer="emma", street="12 Mill Lane", city="Ashford", **paid),
    )


def _reviewed(seed: Seed, product: str, stars: int, title: str, text: str) -> Check:
    number = seed.product(product)
    return state(added("reviews", customer="emma", product=number, rating=stars, title=title, text=text))


def _phone(seed: Seed, phone: str) -> Check:
    return state(changed("customers", {"user": "emma"}, phone=phone))


def _moved(seed: Seed, street: str, city: str) -> Check:
    return state(changed("customers", {"user": "emma"}, street=street, city=city))


def _newsletter(seed: Seed) -> Check:
    return state(changed("customers", {"user": "emma"}, newsletter=1))


def _reviewer(seed: Seed, product: str, stars: int) -> Check:
    query = (
        "SELECT customers.name FROM reviews JOIN customers ON user = customer JOIN products ON products.id = product"
        " WHERE products.name = ? AND rating = ? AND approved"
    )
    return answer(seed.one(query, product, stars))


TEMPLATES = (
    Template(
        *("shop-open-product", "train", _SHOP, _START, "Open the page of the product {{product}}."),
        each("product", "Walnut Coffee Grinder", "Maple Ukulele", "Two Person Tent"),
        *(_product_page, 2),
    ),
    Template(
        *("shop-open-category", "train", _SHOP, _START, "Open the category {{category}} of the shop."),
        each("category", "Garden", "Music", "Toys"),
        *(_category_page, 2),
    ),
    Template(
        *("shop-open-section", "val", _SHOP, _START, "Show my {{section}}."),
        each("section", "cart", "list of orders"),
        *(_section, 2),
    ),
    Template(
        "shop-price",
        *("train", _SHOP, _START, "How much does the {{product}} cost? Exit with the price only."),
        each("product", "Steel Watering Can", "Marble Run Set", "Oak Desk Organizer"),
        *(_price, 1),
    ),
    Template(
        "shop-color",
        *("train", _SHOP, _START, "Which color does the {{product}} have? Exit with the color only."),
        each("product", "Two Person Tent", "Oak Desk Organizer"),
        *(_color, 2),
    ),
    Template(
        "shop-search-price",
        *("train", _SHOP, _START, "Search for the {{product}} and exit with its price only."),
        each("product", "Brass Desk Lamp", "Plush Fox", "Trekking Poles"),
        *(_price, 2),
    ),
    Template(
        "shop-cheapest",
        *(
            "test",
            _SHOP,
            _START,
            "Which product of the category {{category}} is the cheapest? Exit with its name only.",
        ),
        each("category", "Garden", "Outdoor", "Kitchen"),
        *(_cheapest, 4),
    ),
    Template(
        *("shop-cart", "train", _SHOP, _START, "Put {{count}} of the product {{product}} into my cart."),
        [{"product": "Marble Run Set", "count": 3}, {"product": "Maple Ukulele", "count": 2}],
        *(_in_cart, 4, True),
    ),
    Template(
        "shop-order-status",
        *("train", _SHOP, _START, "What is the status of my order {{order}}? Exit with one word."),
        each("order", 1031, 1019, 1027),
        *(_order_status, 2),
    ),
    Template(
        "shop-order-total",
        *("test", _SHOP, _START, "What is the grand total of my order {{order}}? Exit with the amount only."),
        each("order", 1015, 1023),
        *(_order_total, 3),
    ),
    Template(
        *("shop-cancel", "test", _SHOP, _START, "Cancel my order {{order}}."),
        each("order", 1021, 1023),
        *(_canceled, 4, True),
    ),
    Template(
        *("shop-wish", "val", _SHOP, _START, "Add the {{product}} to my wish list."),
        each("product", "Two Person Tent", "Marble Run Set"),
        *(_wished, 3, True),
    ),
    Template(
        *("shop-unwish", "train", _SHOP, _START, "Take the {{product}} off my wish list."),
        each("product", "Glass Spice Jars", "Felt Laptop Sleeve"),
        *(_unwished, 3, True),
    ),
    Template(
        *("shop-buy", "test", _SHOP, _START),
        "Buy one {{product}}, with {{shipping}} shipping, payment by {{payment}}, sent to the address of my account.",
        [
            {"product": "Steel Watering Can", "shipping": "express", "payment": "card"},
            {"product": "Oak Desk Organizer", "shipping": "pickup", "payment": "cash"},
        ],
        *(_bought, 7, True),
    ),
    Template(
        *("shop-review", "train", _SHOP, _START),
        "Write a review of the {{product}} with {{stars}} stars, the title “{{title}}” and the text “{{text}}”.",
        [
            {"product": "Maple Ukulele", "stars": 4, "title": "Warm sound", "text": "Stays in tune for days."},
            {
                "product": "Two Person Tent",
                "stars": 2,
                "title": "Leaks",
                "text": "Water came in during the first night.",
            },
        ],
        *(_reviewed, 6, True),
    ),
    Template(
        *("shop-phone", "train", _SHOP, _START, "Change the phone number of my account to {{phone}}."),
        each("phone", "555-0199", "555-0123"),
        *(_phone, 4, True),
    ),
    Template(
        *(
            "shop-move",
            "test",
            _SHOP,
            _START,
            "I have moved. Change the address of my account to {{street}}, {{city}}.",
        ),
        [{"street": "5 River Bank", "city": "Newport"}, {"street": "20 Park View", "city": "Lakeside"}],
        *(_moved, 5, True),
    ),
    Template(
        *("shop-newsletter", "val", _SHOP, _START, "Subscribe me to the newsletter of the shop."),
        [{}],
        *(_newsletter, 4, True),
    ),
    Template(
        *("shop-reviewer", "test", _SHOP, _START),
        "Who gave the {{product}} {{stars}} of 5 stars? Exit with the full name only.",
        [{"product": "Bamboo Cutting Board", "stars": 1}, {"product": "Copper Saucepan", "stars": 4}],
        *(_reviewer, 3),
    ),
)
