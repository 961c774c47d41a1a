"""From the source of a plain solution to what the model is told: the template of a user's own problem."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

from operators.errors import UserError
from operators.task import Idea, SeedHeuristic, Task

_GENERAL_IDEAS = (
    "Weigh two of the arguments against each other.",
    "Look one step further ahead.",
    "Change the rule as the work goes on.",
    "Treat rare or extreme cases first.",
    "Combine the present rule with its opposite.",
)


def task_from_template(
    template: str, *, name: str, description: str, function: str = "", ideas: Sequence[str] = ()
) -> Task:
    """The task of a problem whose plain solution is given.

    Args:
        template: Python source: imports, and the function with a docstring that says what goes in and out.
        name: the problem's name.
        description: what the function is for.
        function: which function of the template the model writes; may be empty when it defines only one.
        ideas: suggestions for mutation; general ones when empty.

    Raises:
        UserError: the template or the description is empty, the template does not compile or has no such function, or
            an argument of it has a default or a star; or the ideas are no list.
    """
    source = textwrap.dedent(template).strip() + "\n"
    where = f"the template of {name}"
    if not description.strip():
        raise UserError(f"{name} has no description. Give its class a docstring that says what the function is for.")
    if isinstance(ideas, str):
        raise UserError(f"`ideas` of {name} is one text. Give a list of sentences.")
    try:
        tree = ast.parse(source, "template")
        compile(tree, "template", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        what = f"{error.msg} (line {error.lineno})" if isinstance(error, SyntaxError) else error
        raise UserError(f"Syntax error in {where}: {what}. Correct the source in `template`.") from error
    chosen = _choose(tree, function, where)
    arguments = _arguments(chosen, where)
    documentation = ast.get_docstring(chosen) or ""
    if not documentation:
        raise UserError(f"{chosen.name} in {where} has no docstring. Say there what goes in and what comes out.")
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return Task(
        name=name,
        description=" ".join(description.split()),
        function=chosen.name,
        arguments=arguments,
        signature=f"def {chosen.name}({', '.join(arguments)}):",
        docstring=documentation,
        imports="\n".join(imports) or "import numpy as np",
        ideas=tuple(Idea(text, "") for text in ideas or _GENERAL_IDEAS),
        seeds=(SeedHeuristic(documentation.split("\n")[0], source),),
    )


def _arguments(chosen: ast.FunctionDef, where: str) -> tuple[str, ...]:
    """The names of the arguments. The model is told no more, so each has to stand for one value that is passed."""
    given = chosen.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
        raise UserError(
            f"{chosen.name} in {where} has arguments with a default or a star. "
            "Give it one plain argument for each value that `solve` passes."
        )
    return tuple(argument.arg for argument in given.posonlyargs + given.args)


def _choose(tree: ast.Module, wanted: str, where: str) -> ast.FunctionDef:
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if wanted in functions:
        return functions[wanted]
    there = ", ".join(functions) or "none"
    if wanted:
        raise UserError(f"No function {wanted!r} in {where}. Functions there: {there}.")
    if len(functions) != 1:
        remedy = "Name the one that the model writes in `function`" if functions else "Define the one the model writes"
        raise UserError(f"Cannot tell which function of {where} is wanted. Functions there: {there}. {remedy}.")
    return next(iter(functions.values()))
