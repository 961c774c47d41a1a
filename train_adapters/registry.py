"""From the name of an adapter, or the file that defines one, to the adapter with its settings.

A module holds an adapter when it has a function `make_adapter`, which takes the adapter's settings by name and returns
it. What the function takes, with which defaults, is what a user may set.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from eoh_esopt.experiments.settings_files import nearest
from operators.errors import UserError
from train_adapters.adapter import Adapter

SHIPPED = {
    "docvqa": "train_adapters.docvqa",
    "guess": "train_adapters.guess",
    "math": "train_adapters.math_tasks",
    "sudoku": "train_adapters.sudoku",
    "webarena": "train_adapters.webarena.adapter",
}
"""Modules by the names that users give."""

_MAKE = "make_adapter"


def absolute(name: str) -> str:
    """The name of a shipped adapter, or the absolute path of a file, as a run keeps it."""
    return str(Path(name).expanduser().resolve()) if name.endswith(".py") else name


def make_adapter(name: str, settings: Mapping[str, Any]) -> Adapter:
    """The adapter.

    Args:
        name: one of `SHIPPED`, or the path of a Python file.
        settings: of the adapter, by name.

    Raises:
        UserError: there is none, its module cannot be imported, or a setting is unknown or cannot be used.
    """
    make = getattr(_module(name), _MAKE, None)
    if make is None:
        raise UserError(f"{name} defines no function {_MAKE}. See docs/write-an-adapter.md.")
    known = inspect.signature(make).parameters
    for key in settings:
        if key not in known:
            hint = nearest(key, list(known)) if known else "It has none."
            raise UserError(f"Adapter {name} has no setting {key!r}. {hint}")
    try:
        adapter: Adapter = make(**settings)
    except (TypeError, ValueError) as error:
        raise UserError(f"Adapter {name} cannot be made with {dict(settings)}: {error}") from error
    return adapter


def _module(name: str) -> ModuleType:
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name not in SHIPPED:
        raise UserError(f"Unknown adapter {name!r}. {nearest(name, SHIPPED)} Or give the path of a .py file.")
    return importlib.import_module(SHIPPED[name])


def _from_file(path: Path) -> ModuleType:
    """The module of a user's file. It is entered in `sys.modules`, which dataclasses look into."""
    name = f"adapter_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UserError(f"There is no adapter at {path}. Give one of {', '.join(SHIPPED)}, or a .py file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{path} cannot be imported: {type(error).__name__}: {error}. Mend it.") from error
    return module
