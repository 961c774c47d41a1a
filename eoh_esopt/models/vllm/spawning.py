"""Starting vLLM's processes without the user's script.

They are spawned, and a spawned process runs the script of the one that started it again: all of it where it has no
guard, and else its imports, which vLLM 0.32's CPU workers do not survive if numba is among them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def script_left_out() -> Iterator[None]:
    """Processes that are spawned in the block do not run the script again. It must hold nothing that they need."""
    script = vars(sys.modules["__main__"])
    kept: dict[str, Any] = {name: script[name] for name in ("__spec__", "__file__") if name in script}
    script["__spec__"] = None
    script.pop("__file__", None)
    try:
        yield
    finally:
        script.update(kept)
