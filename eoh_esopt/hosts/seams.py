"""Whether the places that an adapter takes hold of are there."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from eoh_esopt.hosts.host import Seam
from operators.errors import UserError


def seam(owner: object, owner_name: str, name: str, arguments: Sequence[str] | None = None) -> Seam:
    """Look for one name.

    Args:
        owner: a class or a module; None where that is not there itself.
        owner_name: what it is called for people.
        name: of the seam.
        arguments: what it must take, where that matters.
    """
    shown = f"{owner_name}.{name}" + ("" if arguments is None else f"({', '.join(arguments)})")
    found = getattr(owner, name, None)
    if found is None:
        return Seam(shown, False, f"{owner_name} is not there" if owner is None else "not there")
    if arguments is not None:
        there = tuple(inspect.signature(found).parameters)
        if there != tuple(arguments):
            return Seam(shown, False, f"takes ({', '.join(there)})")
    return Seam(shown, True)


def require(seams: Sequence[Seam], host: str) -> None:
    """Refuse a host that lacks a seam.

    Raises:
        UserError: one is not there.
    """
    for one in seams:
        if not one.found:
            raise UserError(
                f"This looks like {host}, but {one.name} is not what the plug-in knows ({one.detail}): it is another "
                f"version, or a fork. `eoh-esopt host check` shows what was found and what is supported."
            )
