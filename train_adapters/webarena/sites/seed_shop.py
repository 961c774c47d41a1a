"""What the shop sells, to whom, and what they say of it."""

from __future__ import annotations

PRODUCTS = {
    "Kitchen": [
        ("Walnut Coffee Grinder", "Brown"),
        ("Copper Saucepan", "Copper"),
        ("Stoneware Teapot", "Blue"),
        ("Bamboo Cutting Board", "Natural"),
        ("Enamel Baking Tray", "White"),
        ("Glass Spice Jars", "Clear"),
        ("Cast Iron Skillet", "Black"),
        ("Linen Tea Towel", "Grey"),
    ],
    "Garden": [
        ("Steel Watering Can", "Green"),
        ("Cedar Bird House", "Natural"),
        ("Clay Flower Pot", "Terracotta"),
        ("Folding Garden Chair", "Green"),
        ("Pruning Shears", "Red"),
        ("Solar Path Light", "Black"),
        ("Jute Garden Twine", "Natural"),
        ("Raised Herb Planter", "Grey"),
    ],
    "Office": [
        ("Oak Desk Organizer", "Brown"),
        ("Brass Desk Lamp", "Brass"),
        ("Dotted Notebook", "Blue"),
        ("Mesh Office Chair", "Black"),
        ("Ceramic Pen Holder", "White"),
        ("Wall Calendar", "White"),
        ("Felt Laptop Sleeve", "Grey"),
        ("Standing Desk Mat", "Black"),
    ],
    "Outdoor": [
        ("Two Person Tent", "Orange"),
        ("Merino Hiking Socks", "Grey"),
        ("Trekking Poles", "Red"),
        ("Titanium Camp Mug", "Silver"),
        ("Down Sleeping Bag", "Blue"),
        ("Waterproof Map Case", "Clear"),
        ("Rechargeable Headlamp", "Yellow"),
        ("Packable Rain Jacket", "Yellow"),
    ],
    "Music": [
        ("Maple Ukulele", "Natural"),
        ("Studio Headphones", "Black"),
        ("Clip-on Tuner", "Black"),
        ("Vinyl Record Brush", "Red"),
        ("Bluetooth Speaker", "Blue"),
        ("Wooden Metronome", "Brown"),
        ("Harmonica in C", "Silver"),
        ("Folding Music Stand", "Black"),
    ],
    "Toys": [
        ("Marble Run Set", "Multicolor"),
        ("Plush Fox", "Orange"),
        ("Wooden Train Set", "Natural"),
        ("Puzzle of the Alps", "Multicolor"),
        ("Kite with Tail", "Red"),
        ("Magnetic Letters", "Multicolor"),
        ("Toy Sailboat", "Blue"),
        ("Stacking Cups", "Multicolor"),
    ],
}
"""Name and colour by category."""

PRAISE = (
    "Made in a small workshop.",
    "A favourite of our regular customers.",
    "Simple, sturdy and easy to use.",
    "Designed to last for many years.",
    "Tested by our own team.",
)
CARE = (
    "Wipe clean with a damp cloth.",
    "Comes with a warranty of two years.",
    "Ships in a plain paper box.",
    "Spare parts are available.",
    "Please keep away from open fire.",
)

CUSTOMERS = [
    ("emma", "Emma Weber", "emma.weber@example.com", "12 Mill Lane", "Ashford", "555-0101", 0),
    ("liam", "Liam O'Brien", "liam.obrien@example.com", "4 Harbour Road", "Newport", "555-0102", 1),
    ("noor", "Noor Haddad", "noor.haddad@example.com", "77 Garden Street", "Ashford", "555-0103", 0),
    ("otto", "Otto Lindqvist", "otto.lindqvist@example.com", "9 Station Square", "Redhill", "555-0104", 1),
    ("priya", "Priya Nair", "priya.nair@example.com", "31 College Avenue", "Newport", "555-0105", 0),
    ("diego", "Diego Fuentes", "diego.fuentes@example.com", "8 Orchard Close", "Lakeside", "555-0106", 1),
    ("hana", "Hana Sato", "hana.sato@example.com", "55 Temple Row", "Lakeside", "555-0107", 0),
    ("marek", "Marek Dvorak", "marek.dvorak@example.com", "2 Castle Hill", "Redhill", "555-0108", 0),
    ("zoe", "Zoe Martin", "zoe.martin@example.com", "19 Beach Walk", "Newport", "555-0109", 1),
    ("tariq", "Tariq Aziz", "tariq.aziz@example.com", "63 North Parade", "Ashford", "555-0110", 0),
]
"""Rows of the table of that name."""

STATUSES = ("pending", "processing", "shipped", "delivered", "canceled")
SHIPPING = {"standard": 490, "express": 1290, "pickup": 0}
"""Price in cents by method."""
PAYMENTS = ("invoice", "card", "cash")

REVIEWS = {
    1: (
        ("Broke after a week", "Sadly it did not survive the first week of use."),
        ("Very disappointed", "Not at all what the pictures promised."),
    ),
    2: (
        ("Not great", "It works, but the finish is poor for the price."),
        ("Expected more", "Smaller and thinner than I thought."),
    ),
    3: (
        ("It is okay", "Does the job, nothing more and nothing less."),
        ("Average", "Good idea, the details could be better."),
    ),
    4: (
        ("Good value", "Happy with it, only the delivery took a while."),
        ("Nice quality", "Feels solid, one small scratch on arrival."),
    ),
    5: (
        ("Love it", "I use it every day and would buy it again."),
        ("Excellent", "Better than I had hoped for, a perfect gift."),
    ),
}
"""Title and text by rating."""
