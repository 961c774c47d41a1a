"""Renames what a syntax tree binds, by scope and in order of first appearance, to names no code can contain.

Renamed are locals, parameters, helper functions and import aliases. Global variables, attributes, names bound in
a class body and parameters that some call names stay as they are. Assumes code that does not look at itself.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from eoh_esopt.engine._snippets import FUNCTION, is_version

_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def rename(tree: ast.Module, function: str) -> None:
    """Rename everything in place; the only version of `function` gets its plain name."""
    _Renamer(tree, function).visit(tree)


def bound_by(node: ast.AST) -> list[str]:
    """Names that a node itself binds, in whatever scope it stands."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.alias):
        return [node.asname or node.name.split(".")[0]]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    if isinstance(node, (*FUNCTION, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    return []


def _arguments(node: ast.arguments) -> list[ast.arg]:
    stars = [star for star in (node.vararg, node.kwarg) if star is not None]
    return [*node.posonlyargs, *node.args, *node.kwonlyargs, *stars]


def _outer(node: ast.AST) -> list[ast.AST]:
    """The parts of a function, lambda or class that are evaluated where it is defined."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    if not isinstance(node, (*FUNCTION, ast.Lambda)):
        return []
    defaults = [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
    if isinstance(node, ast.Lambda):
        return [*defaults]
    notes = [argument.annotation for argument in _arguments(node.args)]
    return [*node.decorator_list, *defaults, *(note for note in (*notes, node.returns) if note is not None)]


def _in_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes that bind in the scope of `nodes`."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*FUNCTION, ast.ClassDef, ast.Lambda)):
            yield node
            waiting += _outer(node)
        elif isinstance(node, _COMPREHENSION):
            inner = _in_scope(ast.iter_child_nodes(node))
            waiting += [walrus for walrus in inner if isinstance(walrus, ast.NamedExpr)]
        else:
            yield node
            waiting += ast.iter_child_nodes(node)


@dataclass
class _Scope:
    """What one scope binds, and the new names given so far."""

    kind: str
    bound: Counter[str]
    fixed: set[str]
    shared: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)


def _scope(kind: str, nodes: Iterable[ast.AST], fixed: set[str]) -> _Scope:
    scope = _Scope(kind, Counter(), set(fixed))
    for node in _in_scope(nodes):
        scope.bound.update(bound_by(node))
        if isinstance(node, ast.Global):
            scope.shared.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            scope.outer.update(node.names)
        elif isinstance(node, ast.alias) and "." in node.name and node.asname is None:
            scope.fixed.update(bound_by(node))
    return scope


class _Renamer(ast.NodeVisitor):
    def __init__(self, tree: ast.Module, function: str) -> None:
        self.count = 0
        self.keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        self.fixed = {name for node in classes for name in _scope("class", node.body, set()).bound}
        module = _scope("module", tree.body, self.fixed)
        for node in ast.walk(tree):
            module.fixed.update(node.names if isinstance(node, ast.Global) else [])
        self.helpers: set[str] = set()
        self.scopes = [module]
        self._name_module(tree, module, function)

    def _name_module(self, tree: ast.Module, module: _Scope, function: str) -> None:
        """Decide which names of the module change: its helper functions and imports, if bound once."""
        once = {name for name, count in module.bound.items() if count == 1} - module.fixed - set(dir(builtins))
        for statement in tree.body:
            if isinstance(statement, FUNCTION) and statement.name in once:
                self.helpers.add(statement.name)
            elif isinstance(statement, (ast.Import, ast.ImportFrom)):
                module.names.update(_origins(statement, once))
        self.helpers.discard(function)
        versions = {name for name in module.bound if is_version(name, function)}
        taken = any(function in (*bound_by(node), getattr(node, "id", "")) for node in ast.walk(tree))
        if taken or len(versions) != 1:
            self.helpers -= versions
        elif versions <= self.helpers:
            module.names[versions.pop()] = function

    def _new_name(self, name: str) -> str:
        """The new name of what `name` means in the current scope, or `name` itself."""
        for depth in range(len(self.scopes) - 1, 0, -1):
            scope = self.scopes[depth]
            if scope.kind == "class" and depth < len(self.scopes) - 1:
                continue
            if name in scope.shared:
                break
            if name in scope.bound and name not in scope.outer:
                return self._given(scope, name)
        module = self.scopes[0]
        if name in module.names or name in self.helpers:
            return self._given(module, name)
        return name

    def _given(self, scope: _Scope, name: str) -> str:
        if scope.kind == "class" or name in scope.fixed or name.startswith("__"):
            return name
        if name not in scope.names:
            scope.names[name] = f"@{self.count}"
            self.count += 1
        return scope.names[name]

    def visit_Name(self, node: ast.Name) -> None:
        node.id = self._new_name(node.id)

    def visit_Global(self, node: ast.Global) -> None:
        node.names = [self._new_name(name) for name in node.names]

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        node.names = [self._new_name(name) for name in node.names]

    def visit_arg(self, node: ast.arg) -> None:
        node.arg = self._new_name(node.arg)

    def visit_alias(self, node: ast.alias) -> None:
        bound = bound_by(node)[0]
        new = self._new_name(bound)
        if new != bound:
            node.asname = new

    def visit_ExceptHandler(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        node.name = self._new_name(node.name) if node.name else None
        self.generic_visit(node)

    visit_MatchAs = visit_ExceptHandler
    visit_MatchStar = visit_ExceptHandler

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        node.rest = self._new_name(node.rest) if node.rest else None
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        if not isinstance(node, ast.Lambda):
            node.name = self._new_name(node.name)
        for part in _outer(node):
            self.visit(part)
        arguments = _arguments(node.args)
        scope = _scope("function", body, self.fixed)
        scope.bound.update(argument.arg for argument in arguments)
        named = {argument.arg for argument in arguments} & self.keywords
        scope.fixed |= {argument.arg for argument in arguments} if None in self.keywords else named
        self._within(scope, [*arguments, *body])

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        node.name = self._new_name(node.name)
        for part in _outer(node):
            self.visit(part)
        self._within(_scope("class", node.body, set()), node.body)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first = node.generators[0]
        self.visit(first.iter)
        targets = [name for loop in node.generators for part in ast.walk(loop.target) for name in bound_by(part)]
        inner: list[ast.AST] = [first.target, *first.ifs]
        for loop in node.generators[1:]:
            inner += [loop.iter, loop.target, *loop.ifs]
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._within(_Scope("function", Counter(targets), self.fixed), [*inner, *results])

    visit_SetComp = visit_ListComp
    visit_DictComp = visit_ListComp
    visit_GeneratorExp = visit_ListComp

    def _within(self, scope: _Scope, nodes: Iterable[ast.AST]) -> None:
        self.scopes.append(scope)
        for node in nodes:
            self.visit(node)
        self.scopes.pop()


def _origins(statement: ast.Import | ast.ImportFrom, once: set[str]) -> dict[str, str]:
    """What each name that an import binds stands for."""
    origin = ""
    if isinstance(statement, ast.ImportFrom):
        origin = "." * statement.level + (statement.module or "") + ":"
    return {
        bound: f"@{origin}{alias.name}"
        for alias in statement.names
        for bound in bound_by(alias)
        if bound in once and (origin or alias.asname or "." not in alias.name)
    }
