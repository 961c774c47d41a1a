"""Heuristic search in which the language model learns: engine, models, sandbox, reports, command line.

`attach` and `detach` bring the learning into searches of other engines, see docs/plug-in.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eoh_esopt.hosts.attach import attach, detach

__all__ = ["attach", "detach"]


def __getattr__(name: str) -> Any:
    """Load the plug-in when it is asked for: importing the package stays cheap."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eoh_esopt.hosts import attach as module

    return getattr(module, name)
