"""Made-up documents of five kinds, with questions about them and the exact answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from train_adapters.docvqa import words
from train_adapters.docvqa.page import MARGIN, TITLE, WIDTH, Line, Text, plain

_RIGHT = WIDTH - MARGIN
_RECEIPT = WIDTH // 2


@dataclass(frozen=True)
class Question:
    """A question about a document.

    Attributes:
        text: the question.
        answers: all that is right, as the page has it.
    """

    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """What is on one page.

    Attributes:
        lines: from top to bottom.
        questions: about it, at least 3.
    """

    lines: tuple[Line, ...]
    questions: tuple[Question, ...]


def invoice(rng: Random) -> Document:
    """An invoice with a table of items."""
    seller, buyer, number = words.firm(rng), words.person(rng), str(rng.randint(10_000, 99_999))
    issued, due = words.date(rng), words.date(rng)
    rows = [
        (name, rng.randint(2, 40), rng.randint(150, 9_900)) for name in rng.sample(words.GOODS, k=rng.randint(2, 4))
    ]
    total = words.money(sum(count * price for _, count, price in rows))
    table = [_row("Description", "Quantity", "Price", "Amount", bold=True, ruled=True)]
    table += [_row(name, str(n), words.money(price), words.money(n * price)) for name, n, price in rows]
    name, count, price = rng.choice(rows)
    return Document(
        (
            plain(seller, size=TITLE, bold=True),
            plain(words.address(rng)),
            Line(),
            plain(f"Invoice number: {number}"),
            plain(f"Date: {issued}"),
            plain(f"Due date: {due}"),
            plain(f"Bill to: {buyer}"),
            Line(),
            *table,
            Line((Text(MARGIN, "Total due:"), Text(_RIGHT, f"${total}", right=True)), bold=True),
        ),
        (
            Question("What is the invoice number?", (number,)),
            Question("What is the due date of the invoice?", (due,)),
            Question("Who is the invoice billed to?", (buyer,)),
            Question("What is the total due?", (f"${total}", total)),
            Question(f"What quantity of {name} was ordered?", (str(count),)),
            Question(f"What is the price of one {name}?", (words.money(price), f"${words.money(price)}")),
        ),
    )


def letter(rng: Random) -> Document:
    """An invitation to a meeting."""
    sender, reader, firm = words.person(rng), words.person(rng), words.firm(rng)
    written, meeting = words.date(rng), words.date(rng)
    room, topic = rng.choice(words.ROOMS), rng.choice(words.TOPICS)
    return Document(
        (
            plain(firm, size=TITLE, bold=True),
            plain(words.address(rng)),
            Line(),
            plain(written),
            Line(),
            plain(f"Dear {reader},"),
            Line(),
            plain("We invite you to our next meeting."),
            plain(f"The meeting is about {topic}."),
            plain(f"It will take place in the {room}"),
            plain(f"on {meeting} at noon."),
            plain("Please let us know whether you can come."),
            Line(),
            plain("Kind regards,"),
            plain(sender),
        ),
        (
            Question("To whom is the letter addressed?", (reader,)),
            Question("Who signed the letter?", (sender,)),
            Question("On which date was the letter written?", (written,)),
            Question("On which date is the meeting?", (meeting,)),
            Question("Where does the meeting take place?", (room, f"the {room}", f"in the {room}")),
            Question("What is the meeting about?", (topic, topic.removeprefix("the "))),
        ),
    )


def form(rng: Random) -> Document:
    """A form that was filled in."""
    fields = {
        "Full name": words.person(rng),
        "Date of birth": words.date(rng),
        "City": rng.choice(words.CITIES),
        "Occupation": rng.choice(words.POSTS),
        "Employer": words.firm(rng),
        "Telephone": f"{rng.randint(200, 999)}-{rng.randint(2000, 9999)}",
    }
    names = rng.sample(list(fields), k=rng.randint(4, 6))
    return Document(
        (
            plain("Registration Form", size=TITLE, bold=True),
            Line(),
            *(plain(f"{name}: {fields[name]}") for name in names),
        ),
        tuple(Question(f"What is the {name.lower()} on the form?", (fields[name],)) for name in names),
    )


def table(rng: Random) -> Document:
    """Sales by city and month."""
    months = [words.MONTHS[i] for i in sorted(rng.sample(range(len(words.MONTHS)), k=3))]
    cities = rng.sample(words.CITIES, k=rng.randint(3, 5))
    numbers = rng.sample(range(120, 990), k=len(cities) * len(months))
    cells = {city: numbers[i * len(months) :][: len(months)] for i, city in enumerate(cities)}
    city, other = rng.sample(cities, k=2)
    month = rng.randrange(len(months))
    best = max(cities, key=lambda one: cells[one][month])
    return Document(
        (
            plain(f"Units sold by {words.firm(rng)}", size=TITLE - 8, bold=True),
            Line(),
            _row("City", *months, bold=True, ruled=True),
            *(_row(one, *map(str, cells[one])) for one in cities),
        ),
        (
            Question(f"How many units were sold in {city} in {months[month]}?", (str(cells[city][month]),)),
            Question(f"How many units were sold in {other} in {months[0]}?", (str(cells[other][0]),)),
            Question(f"Which city sold the most units in {months[month]}?", (best,)),
        ),
    )


def receipt(rng: Random) -> Document:
    """A receipt of a shop."""
    shop, till = words.firm(rng), words.person(rng)
    rows = [(name, rng.randint(120, 2_400)) for name in rng.sample(words.FOODS, k=rng.randint(2, 5))]
    total = sum(price for _, price in rows)
    paid = total + rng.randint(100, 2_000)
    name, price = rng.choice(rows)
    bought = words.date(rng)
    return Document(
        (
            plain(shop, size=TITLE, bold=True),
            plain(words.address(rng)),
            plain(f"Date: {bought}"),
            plain(f"Cashier: {till}"),
            Line(),
            *(_sum(item, cents) for item, cents in rows),
            _sum("TOTAL", total, bold=True),
            _sum("CASH", paid),
            _sum("CHANGE", paid - total),
        ),
        (
            Question("What is the total on the receipt?", _amounts(total)),
            Question("How much change was given?", _amounts(paid - total)),
            Question(f"What is the price of the item {name}?", _amounts(price)),
            Question("Who was the cashier?", (till,)),
            Question("On which date was the purchase made?", (bought,)),
        ),
    )


KINDS: Mapping[str, Callable[[Random], Document]] = {
    "form": form,
    "receipt": receipt,
    "invoice": invoice,
    "letter": letter,
    "table": table,
}
"""How to draw a document of each kind."""


def _row(first: str, *others: str, bold: bool = False, ruled: bool = False) -> Line:
    """A row of a table: the first column at the left, the others with their right ends below each other."""
    step = (_RIGHT - MARGIN) // (len(others) + 1)
    columns = [Text(MARGIN + (place + 2) * step, text, right=True) for place, text in enumerate(others)]
    return Line((Text(MARGIN, first), *columns), bold=bold, ruled=ruled)


def _sum(name: str, cents: int, *, bold: bool = False) -> Line:
    return Line((Text(MARGIN, name), Text(_RECEIPT, words.money(cents), right=True)), bold=bold)


def _amounts(cents: int) -> tuple[str, ...]:
    return words.money(cents), f"${words.money(cents)}"
