"""The skill as a document: headings, and lines under them."""

from __future__ import annotations

from dataclasses import dataclass

_FENCE = "```"


@dataclass(frozen=True)
class Section:
    """A heading with what stands under it.

    Attributes:
        heading: the whole line, with its `#`.
        lines: under it, up to the next heading.
    """

    heading: str
    lines: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The heading's words."""
        return self.heading.lstrip("#").strip()


@dataclass(frozen=True)
class Document:
    """A skill.

    Attributes:
        preamble: lines before the first heading, such as front matter.
        sections: in their order.
    """

    preamble: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()

    @property
    def lines(self) -> list[str]:
        """All lines that are no headings."""
        return [*self.preamble, *(line for section in self.sections for line in section.lines)]


def parse(text: str) -> Document:
    """Read a skill. Lines of code, between fences, are no headings."""
    preamble: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    code = False
    for line in text.split("\n"):
        code ^= line.lstrip().startswith(_FENCE)
        if line.startswith("#") and not code:
            sections.append((line.rstrip(), []))
        else:
            (sections[-1][1] if sections else preamble).append(line.rstrip())
    return Document(_trimmed(preamble), tuple(Section(heading, _trimmed(lines)) for heading, lines in sections))


def render(document: Document) -> str:
    """A skill as text that ends in a line break; empty where there is nothing to say. Sections have a blank line
    between them."""
    blocks = [document.preamble, *((section.heading, *section.lines) for section in document.sections)]
    text = "\n\n".join("\n".join(block) for block in blocks if block)
    return f"{text}\n" if text else ""


def length(text: str) -> int:
    """Lines of a skill, blank ones among them."""
    return len(text.splitlines())


def _trimmed(lines: list[str]) -> tuple[str, ...]:
    """Without blank lines at the end."""
    filled = [place for place, line in enumerate(lines, 1) if line]
    return tuple(lines[: filled[-1]]) if filled else ()
