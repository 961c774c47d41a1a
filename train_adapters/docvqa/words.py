"""Names and things that drawn documents speak of."""

from __future__ import annotations

from random import Random

FIRST = ("Anna", "Boris", "Carla", "David", "Elena", "Frank", "Greta", "Henry", "Maria", "Nora", "Oscar", "Peter")
LAST = ("Adams", "Becker", "Carter", "Dawson", "Ferrer", "Hansen", "Keller", "Lambert", "Morgan", "Novak", "Parker")
FIRMS = ("Harbor", "Summit", "Maple", "Granite", "Meadow", "Beacon", "Canyon", "Orchard", "Prairie", "Cedar")
TRADES = ("Supply", "Trading", "Motors", "Foods", "Textiles", "Systems", "Travel", "Printing", "Gardens", "Tools")
CITIES = ("Boston", "Denver", "Dresden", "Geneva", "Hamburg", "London", "Madrid", "Oxford", "Prague", "Vienna")
STREETS = ("Park Road", "Station Street", "Mill Road", "Bridge Street", "Garden Road", "Church Street")
GOODS = ("Wall clock", "Paper box", "Office chair", "Steel bolt", "Garden hose", "Paint brush", "Hand towel", "Tea cup")
FOODS = ("Bread", "Butter", "Cheese", "Coffee", "Honey", "Grapes", "Pepper", "Tomatoes", "Yogurt", "Noodles")
ROOMS = ("Conference Room", "Main Hall", "Reading Room", "Town Hall", "Garden House", "Board Room")
TOPICS = ("the annual budget", "the new warehouse", "the summer festival", "the safety report", "the staff training")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")
POSTS = ("Accountant", "Engineer", "Nurse", "Teacher", "Driver", "Librarian", "Chemist", "Carpenter")


def person(rng: Random) -> str:
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def firm(rng: Random) -> str:
    return f"{rng.choice(FIRMS)} {rng.choice(TRADES)}"


def address(rng: Random) -> str:
    return f"{rng.randint(2, 98)} {rng.choice(STREETS)}, {rng.choice(CITIES)}"


def date(rng: Random) -> str:
    return f"{rng.randint(2, 28)} {rng.choice(MONTHS)} {rng.randint(1985, 2024)}"


def money(cents: int) -> str:
    """Dollars and cents, with a comma before each three digits."""
    return f"{cents // 100:,}.{cents % 100:02}"
