"""Finds the heuristic in what a language model wrote: the code, and the idea behind it in one sentence.

Covers reasoning tags, fences of every sort, replies cut off by the token limit and code without a fence. Does not
run or judge the code: a reply whose code is broken gives that code back, so that the failure is recorded as what
it is. Never raises, and parses a bounded number of characters a reply.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from eoh_esopt.engine._blocks import PYTHON, Block, fenced, outside, unfenced
from eoh_esopt.engine._snippets import (
    FUNCTION,
    Parser,
    defined,
    docstring,
    is_version,
    kept_source,
    longest_prefix,
)

_MAX_BLOCKS = 64
_MAX_IDEA = 300
_REASONING = re.compile(r"<(/?)(?:think|thinking|thought|thoughts|reasoning)>", re.IGNORECASE)
_EXACT, _VERSION, _BROKEN, _SOME_FUNCTION, _NO_FUNCTION = 4, 3, 2, 1, 0


@dataclass(frozen=True)
class ParsedReply:
    """What a reply contains.

    Attributes:
        code: Python source; None when the reply has no code at all.
        idea: one sentence, empty when the reply gives none.
        note: how the code was found, in a few words.
    """

    code: str | None
    idea: str
    note: str


@dataclass(frozen=True)
class _Reading:
    """A block as read: `tree` is None when it does not parse."""

    block: Block
    rank: int
    source: str
    tree: ast.Module | None = None
    trimmed: bool = False


def parse_reply(text: str, function: str) -> ParsedReply:
    """Find the code that defines `function`, and the idea, in a reply."""
    lines = _without_reasoning(_plain(text)).split("\n")
    parse = Parser()
    blocks = list(fenced(lines, parse))
    prose = outside(lines, blocks)
    best = _best([block for block in blocks if not block.is_shell], function, parse)
    if best is None or best.rank < _BROKEN:
        bare = _best(list(unfenced(prose, function, parse)), function, parse)
        if bare is not None and (best is None or bare.rank > best.rank):
            best = bare
    if best is None:
        return ParsedReply(None, _idea("\n".join(prose)), "no code")
    idea = _idea("\n".join(prose[: best.block.start + (best.block.found != "no fence")]))
    code = best.source
    if best.tree is not None:
        idea = idea or _one_line(docstring(best.tree, function))
        code = kept_source(best.tree, best.source, function)
    return ParsedReply(code.strip("\n").rstrip() + "\n", idea, _note(best))


def _plain(text: str) -> str:
    """One kind of line end and of space, and nothing that Python's parser refuses to look at."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    text = text.replace("\ufeff", "").replace("\u200b", "").replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8")


def _without_reasoning(text: str) -> str:
    kept: list[str] = []
    position, inside = 0, False
    for tag in _REASONING.finditer(text):
        if tag[1]:
            kept = kept if inside else []  # a closing tag alone: the reply began inside its reasoning
            inside = False
        elif not inside:
            kept.append(text[position : tag.start()])
            inside = True
        position = tag.end()
    return "".join(kept) if inside else "".join(kept) + text[position:]


def _best(blocks: list[Block], function: str, parse: Parser) -> _Reading | None:
    """The last block among those that define the function best."""
    best: _Reading | None = None
    for block in reversed(blocks[-_MAX_BLOCKS:]):
        reading = _read(block, function, parse)
        usable = reading.rank > _NO_FUNCTION or (block.language in PYTHON and block.code.strip())
        if usable and (best is None or reading.rank > best.rank):
            best = reading
        if best is not None and best.rank == _EXACT:
            break
    return best


def _read(block: Block, function: str, parse: Parser) -> _Reading:
    """Parse a block; cut what follows the function, or the torn end of a reply, where that is needed."""
    if "def" not in block.code and "lambda" not in block.code:
        return _Reading(block, _NO_FUNCTION, block.code)
    variants = dict.fromkeys([block.code, block.code.expandtabs(4), block.code.expandtabs(8)])
    for source in variants:
        tree = parse(source)
        if tree is not None:
            return _Reading(block, _rank(tree, function), source, tree)
    for source in variants:
        tree, prefix = longest_prefix(source, parse) or (None, "")
        torn = not block.closed or not source[len(prefix) :].lstrip("\n")[:1].isspace()
        if tree is not None and torn and _rank(tree, function) >= _VERSION:
            return _Reading(block, _rank(tree, function), prefix, tree, trimmed=True)
    wanted = re.search(rf"\bdef[ \t]+{re.escape(function)}\b", block.code)
    return _Reading(block, _BROKEN if wanted else _NO_FUNCTION, block.code)


def _rank(tree: ast.Module, function: str) -> int:
    names = {name for statement in tree.body for name in defined(statement)}
    if function in names:
        return _EXACT
    if any(is_version(name, function) for name in names):
        return _VERSION
    return _SOME_FUNCTION if any(isinstance(node, FUNCTION) for node in ast.walk(tree)) else _NO_FUNCTION


def _idea(prose: str) -> str:
    """The first balanced pair of braces that is not a subscript of a formula."""
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    for match in re.finditer(r"[{}]", prose):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            pairs.append((opened.pop(), match.start()))
    for start, end in sorted(pairs):
        text = _one_line(prose[start + 1 : end].strip())
        if text and not re.match(r"[\w^}\\]", prose[start - 1 : start]):
            return text
    return ""


def _one_line(text: str) -> str:
    return " ".join(text[: 20 * _MAX_IDEA].split())[:_MAX_IDEA].rstrip()


def _note(reading: _Reading) -> str:
    parts = [reading.block.found]
    if reading.trimmed:
        parts.append("trimmed")
    if reading.tree is None:
        parts.append("does not parse")
    elif reading.rank < _VERSION:
        parts.append("other name")
    return ", ".join(parts)
