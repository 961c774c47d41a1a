"""The error model: what the user can mend is a `UserError`; a bad candidate is data, never an exception."""

from __future__ import annotations


class UserError(Exception):
    """Bad input. The message names the value, the place and the remedy; commands print it and exit with code 2."""
