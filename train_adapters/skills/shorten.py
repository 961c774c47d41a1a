"""The hard limit of a skill's lines: what is longer is compressed by the language model, or refused."""

from __future__ import annotations

from train_adapters.skills.document import length, parse, render
from train_adapters.skills.markdown import fenced
from train_adapters.skills.writer import Answers, Writer


def shortened(writer: Writer, text: str, lines: int) -> Answers[str]:
    """The skill in at most so many lines; a failure where the model does not manage that.

    Raises:
        UserError: the model in training is gone.
    """
    question = "\n".join(
        (
            f"Shorten this guide to at most {lines} lines. Keep what helps most, keep the headings, join lines that "
            "say the same. Reply with the guide only.",
            fenced(text),
        )
    )
    return writer.ask({"shorten": (question,)}, lambda reply: _within(reply, lines))


def _within(reply: str, lines: int) -> str | None:
    """The guide of a reply, where it is one: a heading, something under it, and not too long."""
    kept = "\n".join(line for line in reply.strip().split("\n") if not line.startswith("```"))
    document = parse(kept)
    text = render(document)
    says = any(line for section in document.sections for line in section.lines)
    return text if says and length(text) <= lines else None
