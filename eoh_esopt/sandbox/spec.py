"""How a problem is named so that another process can build it again. Carries text and plain values only."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from operators.errors import UserError
from problems.base import Problem


@dataclass(frozen=True)
class ProblemSpec:
    """A call that makes a problem.

    Attributes:
        target: "module:attribute" of a function or class at the top level of an importable module.
        arguments: its keyword arguments; JSON values only.
    """

    target: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def named(cls, name: str, **selection: object) -> ProblemSpec:
        """The problem the registry finds under that name or file, with what is given (not None) of split, size, ..."""
        given = {key: value for key, value in selection.items() if value is not None}
        return cls("problems.registry:get", {"name": name, **given})

    def build(self) -> Problem:
        """Make the problem.

        Raises:
            UserError: the target cannot be imported or found.
        """
        module, _, attribute = self.target.partition(":")
        try:
            make = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise UserError(f"Cannot find the problem {self.target!r} (module:attribute): {error}") from error
        return cast(Problem, make(**self.arguments))

    def to_json(self) -> str:
        """The spec as one line of JSON."""
        return json.dumps({"target": self.target, "arguments": dict(self.arguments)})

    @classmethod
    def from_json(cls, text: str) -> ProblemSpec:
        """The inverse of `to_json`."""
        values = json.loads(text)
        return cls(values["target"], values["arguments"])
