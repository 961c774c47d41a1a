"""An agent by script that answers every question about a drawn document from the text that recognition finds on it."""

from __future__ import annotations

import json
import re

from eoh_esopt.models.protocol import Request

COMMAND = "tesseract document.png stdout --psm 6 2>/dev/null"
_DATE = r"\d+ [A-Z][a-z]+ \d{4}"

PATTERNS: dict[str, str] = {
    r"What is the invoice number\?": r"Invoice number: (\d+)",
    r"What is the due date of the invoice\?": rf"Due date: ({_DATE})",
    r"Who is the invoice billed to\?": r"Bill to: (.+)",
    r"What is the total due\?": r"Total due: (\S+)",
    r"What quantity of (.+) was ordered\?": r"<> (\d+)",
    r"What is the price of one (.+)\?": r"<> \d+ (\S+)",
    r"To whom is the letter addressed\?": r"Dear (.+),",
    r"Who signed the letter\?": r"Kind regards,\s+(.+)",
    r"On which date was the letter written\?": rf"^({_DATE})$",
    r"On which date is the meeting\?": rf"on ({_DATE}) at noon",
    r"Where does the meeting take place\?": r"take place in the (.+)",
    r"What is the meeting about\?": r"meeting is about (.+)\.",
    r"What is the total on the receipt\?": r"TOTAL (\S+)",
    r"How much change was given\?": r"CHANGE (\S+)",
    r"What is the price of the item (.+)\?": r"<> (\S+)",
    r"Who was the cashier\?": r"Cashier: (.+)",
    r"On which date was the purchase made\?": r"Date: (.+)",
    r"What is the (.+) on the form\?": r"(?i)<>: (.+)",
}
"""What to look for in the text of a page, by question; <> stands for what the question names."""


def perfect(request: Request, number: int) -> str:
    """Reads the page in the first turn and answers in the second."""
    question, last = request.prompt[1].text, request.prompt[-1].text  # type: ignore[union-attr]
    if not last.startswith("Observation from bash:"):
        return f"I read the page.\nAction: {json.dumps({'name': 'bash', 'command': COMMAND})}"
    asked = question.partition(": ")[2].partition("\n")[0]
    return f"Final answer: {answer(asked, last.partition(':')[2].strip())}"


def answer(question: str, page: str) -> str:
    """The answer that the text of a page gives; empty where it gives none."""
    for asked, wanted in PATTERNS.items():
        if found := re.fullmatch(asked, question):
            named = wanted.replace("<>", re.escape(found[1])) if found.groups() else wanted
            there = re.search(named, page, re.MULTILINE)
            return there[1] if there else ""
    return _from_table(question, page)


def _from_table(question: str, page: str) -> str:
    header = next(line.split() for line in page.splitlines() if line.startswith("City "))
    rows = {line.split()[0]: line.split() for line in page.splitlines() if len(line.split()) == len(header)}
    if found := re.fullmatch(r"How many units were sold in (\w+) in (\w+)\?", question):
        return rows[found[1]][header.index(found[2])]
    month = header.index(question.rstrip("?").split()[-1])
    return max((city for city in rows if city != "City"), key=lambda city: int(rows[city][month]))
