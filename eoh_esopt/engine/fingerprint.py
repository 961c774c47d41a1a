"""One hash for all codes that differ only in how they are written: the search counts them as one candidate.

Two codes with the same fingerprint behave the same when the function is called by position, and the wanted function
is looked up with or without its version suffix. Where a rewriting could change what code does, it is left out, so
two codes that behave the same may have two fingerprints. Fingerprints are comparable within one Python version.
"""

from __future__ import annotations

import ast
import hashlib
import warnings

from eoh_esopt.engine._rename import rename
from eoh_esopt.engine._strip import drop_unused, sort_imports, strip

_INTROSPECTION = frozenset(
    {"locals", "globals", "vars", "eval", "exec", "compile", "dir", "inspect", "getsource", "_getframe", "modules"}
    | {"traceback", "importlib", "breakpoint", "get_type_hints", "singledispatch", "singledispatchmethod", "gc"}
    | {"ast", "dis", "warn", "logging", "pickle", "help", "TypeAlias", "TypeVar", "ParamSpec", "TypeVarTuple", "*"}
)


def fingerprint(code: str, function: str) -> str:
    """The sha256 of the normalised code, in hex; `function` is the name that was asked for."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
        if not _looks_at_itself(tree):
            strip(tree)
            drop_unused(tree, function)
            sort_imports(tree)
            rename(tree, function)
        text = ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        text = "\n".join(line.rstrip() for line in code.split("\n")).rstrip()
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _looks_at_itself(tree: ast.Module) -> bool:
    """Whether the code could see its own names, docstrings or annotations."""
    for node in ast.walk(tree):
        names = [getattr(node, field, None) for field in ("id", "attr", "asname")]
        names += [type(node).__name__]
        if isinstance(node, ast.alias):
            names += node.name.split(".")
        if isinstance(node, ast.ImportFrom):
            names += (node.module or "").split(".")
        if any(name in _INTROSPECTION or (name or "").startswith("__") for name in names):
            return True
    return False
