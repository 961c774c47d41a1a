"""A whole program as one function, for a host that keeps nothing else.

LLM4AD keeps the body of one function of each reply and throws away what stands beside it, so that programs with
imports or helper functions of their own fail. Here those go into the function.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence


def one_function(code: str, function: str, preface: str) -> str:
    """The source of the function, with what it needs from the rest of the program inside.

    Decorators are dropped, as LLM4AD does; so is a constant of the program that has the name of an argument.

    Args:
        code: the program.
        function: name of the function.
        preface: what stands above every function anyway; imports that it has are not repeated.

    Returns:
        The function alone; the program as it is where it does not parse, or does not define the function by `def`.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    if not found:
        return code
    target = found[-1]
    others = [node for node in tree.body if node not in found and _is_needed(node, target, preface)]
    if not others and _is_plain(target):
        return "\n".join(code.splitlines()[target.lineno - 1 : target.end_lineno]) + "\n"
    target.decorator_list = []
    target.body = [*others, *_without_docstring(target.body)] or target.body
    return ast.unparse(target) + "\n"


def _is_needed(node: ast.stmt, target: ast.FunctionDef, preface: str) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        known = {ast.dump(one) for one in ast.parse(preface).body}
        return ast.dump(node) not in known and not _is_future(node)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        arguments = {one.arg for one in ast.walk(target.args) if isinstance(one, ast.arg)}
        return not {one.id for one in targets if isinstance(one, ast.Name)} & arguments
    return not isinstance(node, ast.Expr)


def _is_future(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_plain(node: ast.FunctionDef) -> bool:
    """Whether the source can stay as it is: LLM4AD takes whole lines, indented by four."""
    first = node.body[0]
    return not node.decorator_list and first.lineno > node.lineno and first.col_offset == 4


def _without_docstring(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return list(body[1:] if is_docstring else body)
