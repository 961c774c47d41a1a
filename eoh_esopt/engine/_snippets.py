"""Python source as text: does it parse, what does it define, which part of it is worth keeping.

Works on sources of any origin and never runs them. Where the source stood in a reply is not known here.
"""

from __future__ import annotations

import ast
import re
import warnings

_MAX_PARSED = 1_000_000
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*FUNCTION, ast.ClassDef)
_ALWAYS_KEPT = (ast.Import, ast.ImportFrom, *_DEFINITIONS)


class Parser:
    """`ast.parse` with a bound on the characters parsed in all.

    Attributes:
        left: characters that may still be parsed.
        line: line of the last failure, 0 when there was none or it has no line.
        message: what the last failure was.
    """

    def __init__(self, left: int = _MAX_PARSED) -> None:
        self.left = left
        self.line = 0
        self.message = ""

    def __call__(self, source: str) -> ast.Module | None:
        """The module, or None when the source does not parse or the bound is reached."""
        self.line, self.message = 0, ""
        self.left -= len(source)
        if self.left < 0:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(source)
        except SyntaxError as error:
            self.line, self.message = error.lineno or 0, error.msg
        except (ValueError, RecursionError, MemoryError) as error:
            self.message = str(error)
        return None


def longest_prefix(source: str, parse: Parser) -> tuple[ast.Module, str] | None:
    """The longest run of lines from the start that parses; each failure says where to cut next."""
    lines = source.split("\n")
    end = len(lines)
    while end > 0 and parse.left > 0:
        prefix = "\n".join(lines[:end])
        tree = parse(prefix)
        if tree is not None:
            return tree, prefix
        end = min(end, parse.line) - 1
        if "'except' or 'finally'" in parse.message:
            end = next((at for at in range(end, 0, -1) if lines[at].strip().startswith("try:")), end)
    return None


def is_version(name: str, function: str) -> bool:
    """Whether `name` is `function` with a version suffix, such as `_v2` or `_2`."""
    return re.fullmatch(rf"{re.escape(function)}_?v?\d+", name) is not None


def defined(statement: ast.stmt) -> set[str]:
    """Names of the functions and classes that a top-level statement defines; a lambda or an alias counts."""
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Lambda, ast.Name, ast.Attribute)):
        return _targets(statement)
    return set()


def docstring(tree: ast.Module, function: str) -> str:
    """First line of the docstring of the wanted function, else of the last function that has one."""
    texts = {node.name: text for node in tree.body if isinstance(node, FUNCTION) and (text := ast.get_docstring(node))}
    text = texts.get(function) or next(reversed(texts.values()), "")
    return text.strip().split("\n")[0]


def kept_source(tree: ast.Module, source: str, function: str) -> str:
    """The source without its example calls, prints and main block; unchanged when there are none."""
    kept = _kept(tree.body, function)
    if len(kept) == len(tree.body):
        return source
    lines = source.encode().split(b"\n")
    shared = _shared_lines(tree.body)
    gaps = [b"\n\n" if isinstance(statement, _DEFINITIONS) else b"" for statement in kept]
    parts = [gap + _segment(statement, lines, shared) for gap, statement in zip(gaps, kept, strict=True)]
    return b"\n".join(parts).decode()


def _kept(body: list[ast.stmt], function: str) -> list[ast.stmt]:
    """Definitions, imports and literals, and those computed values that a kept function reads."""
    needed = {function}
    for statement in body:
        if isinstance(statement, _ALWAYS_KEPT):
            needed |= _free_names(statement)
    kept: list[ast.stmt] = []
    for statement in reversed(body):
        used = isinstance(statement, (ast.Assign, ast.AnnAssign)) and bool(_targets(statement) & needed)
        if used or _is_plain(statement):
            needed |= _free_names(statement) if used else set()
            kept.append(statement)
    return kept[::-1]


def _is_plain(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but bind names."""
    if isinstance(statement, _ALWAYS_KEPT):
        return True
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return statement.value is None or _is_literal(statement.value)
    if isinstance(statement, ast.Try):
        handlers = [inner for handler in statement.handlers for inner in handler.body]
        parts = [*statement.body, *handlers, *statement.orelse, *statement.finalbody]
        return all(isinstance(part, ast.Pass) or _is_plain(part) for part in parts)
    return False


def _is_literal(value: ast.expr) -> bool:
    """Whether an expression depends on no name; what a lambda reads is looked up later."""
    return isinstance(value, ast.Lambda) or not any(isinstance(node, ast.Name) for node in ast.walk(value))


def _targets(statement: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _free_names(statement: ast.stmt) -> set[str]:
    """Names that a statement reads and nowhere binds itself."""
    read: set[str] = set()
    bound: set[str] = set()
    shared: set[str] = set()
    local = isinstance(statement, _ALWAYS_KEPT)
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) or not local else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Global):
            shared.update(node.names)
    return (read - bound) | shared


def _shared_lines(body: list[ast.stmt]) -> set[int]:
    """Lines on which one statement ends and the next begins."""
    ends = [statement.end_lineno or statement.lineno for statement in body]
    return {end for end, following in zip(ends, body[1:], strict=False) if _first_line(following) == end}


def _first_line(statement: ast.stmt) -> int:
    decorators = statement.decorator_list if isinstance(statement, _DEFINITIONS) else []
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _segment(statement: ast.stmt, lines: list[bytes], shared: set[int]) -> bytes:
    first, last = _first_line(statement), statement.end_lineno or statement.lineno
    chosen = lines[first - 1 : last]
    if last in shared:
        chosen[-1] = chosen[-1][: statement.end_col_offset]
    if first in shared:
        chosen[0] = chosen[0][statement.col_offset :]
    return b"\n".join(chosen)
