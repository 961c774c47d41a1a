"""What a program must define, read from the template that a host gives its model."""

from __future__ import annotations

import ast

from operators.errors import UserError


def entry(template: str, problem: str) -> tuple[str, tuple[str, ...] | None]:
    """What a program must define, as EoH reads it from a template: its first class, else its last function.

    Returns:
        The name, and the function's arguments where each of them has to be given.

    Raises:
        UserError: the template is no program, or defines neither.
    """
    try:
        body = ast.parse(template).body
    except SyntaxError as error:
        raise UserError(f"template_program of {problem} does not parse: {error.msg} (line {error.lineno}).") from error
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    if classes:
        return classes[0].name, None
    if not functions:
        raise UserError(f"template_program of {problem} defines no function. Give it one, as EoH's examples do.")
    given = functions[-1].args
    if len(functions) > 1 or given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
        return functions[-1].name, None
    return functions[-1].name, tuple(one.arg for one in given.posonlyargs + given.args)
