"""Takes out of a syntax tree what has no effect: docstrings, annotations, unused functions and imports.

Assumes code that does not look at itself. What might fail or act when it is executed is left where it is.
"""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile

from eoh_esopt.engine._rename import bound_by
from eoh_esopt.engine._snippets import FUNCTION, defined, is_version

_HARMLESS = frozenset(
    {"typing", "math", "random", "heapq", "itertools", "functools", "collections", "collections.abc", "bisect"}
    | {"operator", "copy", "dataclasses", "statistics", "time", "numpy", "numpy.typing"}
)
_TYPES = ("int", "float", "str", "bool", "bytes", "complex", "object", "list", "dict", "tuple", "set", "frozenset")
_ARRAYS = ("ndarray", "generic", "number", "integer", "floating", "int32", "int64", "float32", "float64")
_ATOMS = {*(f"builtins.{name}" for name in _TYPES), *(f"numpy.{name}" for name in _ARRAYS), "typing.Any"}
_ARITY = {f"builtins.{name}": 0 for name in ("list", "dict", "tuple", "set", "frozenset")} | {
    f"typing.{name}": count
    for count, names in enumerate((("Tuple", "Union"), ("List", "Set", "Optional", "Sequence", "Iterable"), ("Dict",)))
    for name in names
}
"""How many parameters a generic type takes; 0 for any number."""


def strip(tree: ast.Module) -> None:
    """Remove docstrings and those annotations that certainly evaluate."""
    tree.body = [node for node in tree.body if not _is_idle(node)]
    _Stripper(_known(tree)).visit(tree)


def drop_unused(tree: ast.Module, function: str) -> None:
    """Remove top-level functions that nothing reaches, then imports that nothing reads."""
    tree.body = _reachable(tree.body, function)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and _certain(statement):
            statement.names = [alias for alias in statement.names if _bound(alias) in used]
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom)) or node.names]


def sort_imports(tree: ast.Module) -> None:
    """Write the imports at the start of a module one a statement and in a fixed order."""
    count = 0
    while count < len(tree.body) and _certain(tree.body[count]):
        count += 1
    single = [
        ast.Import([alias]) if isinstance(statement, ast.Import) else ast.ImportFrom(statement.module, [alias], 0)
        for statement in tree.body[:count]
        if isinstance(statement, (ast.Import, ast.ImportFrom))
        for alias in statement.names
    ]
    bound = [_bound(alias) for statement in single for alias in statement.names]
    if len(set(bound)) == len(bound):
        tree.body[:count] = sorted(single, key=ast.dump)


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def _certain(statement: ast.stmt) -> bool:
    """Whether a statement is an import that cannot fail and does nothing else."""
    if isinstance(statement, ast.Import):
        return all(alias.name in _HARMLESS for alias in statement.names)
    if isinstance(statement, ast.ImportFrom) and statement.module in _HARMLESS and statement.level == 0:
        module = importlib.import_module(statement.module)
        return all(hasattr(module, alias.name) for alias in statement.names)
    return False


def _leading_imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    leading = takewhile(lambda statement: isinstance(statement, (ast.Import, ast.ImportFrom)), tree.body)
    return [statement for statement in leading if isinstance(statement, (ast.Import, ast.ImportFrom))]


def _known(tree: ast.Module) -> dict[str, str]:
    """What each builtin type and each import at the start stands for, unless the code binds the name again."""
    leading = [statement for statement in _leading_imports(tree) if _certain(statement)]
    names = {name: f"builtins.{name}" for name in _TYPES}
    for statement in leading:
        origin = f"{statement.module}." if isinstance(statement, ast.ImportFrom) else ""
        names.update({_bound(alias): origin + alias.name for alias in statement.names})
    counts = Counter(name for node in ast.walk(tree) for name in bound_by(node))
    counts.subtract(_bound(alias) for statement in leading for alias in statement.names)
    return {name: origin for name, origin in names.items() if counts[name] == 0}


def _is_idle(item: ast.stmt) -> bool:
    """Whether a statement does nothing: `pass`, or a string or number alone."""
    return isinstance(item, ast.Pass) or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))


class _Stripper(ast.NodeTransformer):
    def __init__(self, known: dict[str, str]) -> None:
        self.known = known
        self.owner = "Module"

    def generic_visit(self, node: ast.AST) -> ast.AST:
        owner = self.owner
        if isinstance(node, (*FUNCTION, ast.ClassDef)):
            self.owner = type(node).__name__
        super().generic_visit(node)
        self.owner = owner
        if isinstance(node, FUNCTION) and node.returns and self._evaluates(node.returns):
            node.returns = None
        elif isinstance(node, ast.arg) and node.annotation and self._evaluates(node.annotation):
            node.annotation = None
        elif isinstance(node, ast.Constant):
            node.kind = None
        if isinstance(getattr(node, "body", None), list):
            self._drop_constants(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        local = self.owner.endswith("FunctionDef")
        if self.owner == "ClassDef" or not (local or self._evaluates(node.annotation)):
            return node
        if node.value is not None:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        node.annotation = ast.Constant(None)
        return node

    def _drop_constants(self, node: ast.AST) -> None:
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, [])
            kept = [item for item in body if not _is_idle(item)]
            if body and len(kept) < len(body):
                setattr(node, field, kept or [ast.Pass()])

    def _evaluates(self, node: ast.expr) -> bool:
        """Whether an annotation is of a form that cannot fail."""
        return isinstance(node, ast.Constant) or self._is_type(node)

    def _is_type(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._is_type(node.left) and (_is_none(node.right) or self._is_type(node.right))
        if isinstance(node, ast.Subscript):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            arity = _ARITY.get(self._meaning(node.value))
            fits = arity is not None and arity in (0, len(items)) and len(items) > 0
            return fits and all(_is_none(item) or self._is_type(item) for item in items)
        meaning = self._meaning(node)
        return meaning in _ARITY or meaning in _ATOMS

    def _meaning(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self.known.get(node.id, "")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = self.known.get(node.value.id, "")
            return f"{module}.{node.attr}" if module in ("numpy", "typing") else ""
        return ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _reachable(body: list[ast.stmt], function: str) -> list[ast.stmt]:
    """The statements that running the module and calling the wanted function can reach."""
    names = {name for statement in body for name in defined(statement)}
    wanted = {name for name in names if name == function or is_version(name, function)}
    plain = [statement for statement in body if _is_plain(statement)]
    reached = [statement for statement in body if statement not in plain or not wanted or defined(statement) & wanted]
    used = set(_names(reached))
    while True:
        more = [node for node in plain if node not in reached and defined(node) & used]
        if not more:
            return [statement for statement in body if statement in reached]
        reached += more
        used |= set(_names(more))


def _names(statements: list[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Global):
                yield from node.names


def _is_plain(statement: ast.stmt) -> bool:
    """Whether a statement is a function whose definition itself does nothing and cannot fail."""
    if not isinstance(statement, FUNCTION) or statement.decorator_list or statement.returns:
        return False
    arguments = statement.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    defaults = [*arguments.defaults, *arguments.kw_defaults]
    return all(default is None or isinstance(default, ast.Constant) for default in defaults) and not any(
        argument is not None and argument.annotation for argument in every
    )
