"""Finds the stretches of a reply that hold code: fences of every sort, and definitions that stand in the open.

Says where they are, not which of them is wanted.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from eoh_esopt.engine._snippets import Parser, longest_prefix

_MAX_CODE = 100_000
_MAX_ANCHORS = 5
_MAX_CLOSINGS = 8
PYTHON = frozenset({"", "python", "py", "python3", "py3", "python2", "ipython", "ipython3"})
_SHELL = frozenset({"bash", "sh", "shell", "zsh", "console", "terminal", "cmd", "powershell", "pip", "bat"})
_SHELL_LINE = re.compile(r"\s*(?:[$!]|(?:pip3?|conda|apt|apt-get|uv|python3?) )")
_WORD = re.compile(r"[\w+#-]+")
_WORDS = re.compile(r"[\w+#-]*")
_ANY_DEFINITION = re.compile(r"[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w+[ \t]*[(:]")
_HEADER = re.compile(r"(?:[#@\s)\]}]|$|(?:async[ \t]+)?def[ \t]|class[ \t])")
_BINDING = re.compile(r"(?:import[ \t]|from[ \t]|\w+[ \t]*[:=])")


@dataclass(frozen=True)
class Block:
    """Lines `start` to `end` of a reply, fence lines included, and the code that stands in them."""

    code: str
    start: int
    end: int
    language: str
    found: str

    @property
    def closed(self) -> bool:
        return self.found == "fence"

    @property
    def is_shell(self) -> bool:
        return self.language in _SHELL or ("def " not in self.code and bool(_SHELL_LINE.match(self.code)))


def _mark(line: str) -> tuple[str, str, str] | None:
    """(text before, fence mark, language) of a line that opens or closes a fence."""
    start = min((at for at in (line.find("```"), line.find("~~~")) if at >= 0), default=-1)
    if start < 0:
        return None
    before, rest = line[:start], line[start:].lstrip(line[start])
    info = rest.strip()
    inline = before.strip() and (line[start] == "~" or not _WORDS.fullmatch(info))
    if len(line) - len(rest) - start < 3 or "`" in info or inline:
        return None
    word = _WORD.search(info)
    language = word[0].lower() if word else ""
    known = " " not in info or language in PYTHON | _SHELL
    return before, line[start : len(line) - len(rest)], language if known else ""


def fenced(lines: list[str], parse: Parser) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        mark = _mark(lines[at])
        end = _fence_end(lines, at, mark[1], parse) if mark else at
        if mark is None or (end == len(lines) and mark[1][0] == "~" and any("```" in x for x in lines[at:])):
            at += 1  # prose, or a row of tildes under a heading
            continue
        closing = _mark(lines[end]) if end < len(lines) else None
        following = end if closing and closing[2] else end + 1  # "```python" inside a fence opens the next one
        indent = 0 if mark[0].strip() else len(mark[0])
        code = _content(lines, at + 1, end, indent)
        found = "fence" if closing and len(code) < _MAX_CODE else "unclosed fence"
        yield Block(code, at, min(following, len(lines)), mark[2], found)
        at = following


def _content(lines: list[str], start: int, end: int, indent: int) -> str:
    """The code in lines[start:end], and whatever stands before the closing mark on its line."""
    body = lines[start:end]
    closing = _mark(lines[end]) if end < len(lines) else None
    if closing and closing[0].strip():
        body = [*body, closing[0]]
    code = "\n".join(line[indent:] if not line[:indent].strip() else line for line in body)
    return textwrap.dedent(code[:_MAX_CODE])


def _fence_end(lines: list[str], opening: int, mark: str, parse: Parser) -> int:
    """The line that closes a fence: the first closing mark, unless that one stands inside a docstring."""
    closings: list[int] = []
    for at in range(opening + 1, len(lines)):
        closing = _mark(lines[at])
        if closing is None or closing[1][0] != mark[0] or len(closing[1]) < len(mark):
            continue
        code = _content(lines, opening + 1, at, 0)
        if parse(code) if closings else not _ends_in_docstring(code, parse):
            return at
        closings.append(at)
        if len(closings) > _MAX_CLOSINGS:
            return closings[0]
    if not closings:
        return len(lines)
    prefix = longest_prefix(_content(lines, opening + 1, len(lines), 0), parse)
    torn = prefix is not None and prefix[1].count("\n") > closings[0] - opening
    return len(lines) if torn else closings[0]


def _ends_in_docstring(code: str, parse: Parser) -> bool:
    if '"""' not in code and "'''" not in code:
        return False
    return parse(code) is None and "unterminated triple-quoted" in parse.message


def outside(lines: list[str], blocks: list[Block]) -> list[str]:
    """The reply with its fences blanked, so that line numbers stay."""
    prose = list(lines)
    for block in blocks:
        opening = _mark(lines[block.start])
        prose[block.start : block.end] = [""] * (block.end - block.start)
        prose[block.start] = opening[0] if opening else ""
    return prose


def unfenced(lines: list[str], function: str, parse: Parser) -> Iterator[Block]:
    """Blocks of lines around definitions that stand in the open."""
    name = re.escape(function)
    wanted = re.compile(rf"[ \t]*(?:(?:async[ \t]+)?def[ \t]+{name}(?:_?v?\d+)?[ \t]*\(|{name}[ \t]*=[ \t]*lambda\b)")
    anchors = _anchors(lines, wanted)[-_MAX_ANCHORS:] or _anchors(lines, _ANY_DEFINITION)[:1]
    for at, indent in anchors:
        start = _start(lines, at, indent, parse)
        ends = (i for i in range(at, len(lines)) if lines[i][:indent].strip())
        end = next(ends, len(lines))
        code = textwrap.dedent("\n".join(lines[start:end])[:_MAX_CODE])
        yield Block(code, start, end, "", "no fence")


def _anchors(lines: list[str], pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    """(line, indentation) of each match that stands in no class or function."""
    anchors: list[tuple[int, int]] = []
    owner = -1  # indentation of the definition that the current line may stand in
    for at, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if indent <= owner:
            owner = -1
        match = pattern.match(line) if owner < 0 else None
        if match:
            anchors.append((at, indent))
        if owner < 0 and _ANY_DEFINITION.match(line):
            owner = indent
    return anchors


def _start(lines: list[str], anchor: int, indent: int, parse: Parser) -> int:
    """The first line of the code that a definition belongs to: imports, constants and helpers above it."""
    start = anchor
    while start > 0:
        line = lines[start - 1]
        if line.strip() and line[:indent].strip():
            break
        line = line[indent:]
        opens = line.rstrip().endswith(("(", "[", "{", ",", "\\"))
        if not _HEADER.match(line) and not (_BINDING.match(line) and (opens or parse(line))):
            break
        start -= 1
    return start
