"""What requests to a server carry, read strictly, and how they are refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from eoh_esopt.models.vllm.wire import NONCE


class Refusal(Exception):
    """A request was not done.

    Args:
        code: one word for clients: invalid, token, lease, busy, writing, expect, state, refused or failed.
        message: for people.
        status: of the HTTP answer.
        wait_s: after how many seconds another attempt may succeed, where that is known.
    """

    def __init__(self, code: str, message: str, status: int = 409, *, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.status, self.wait_s = code, message, status, wait_s

    def as_answer(self) -> dict[str, Any]:
        """The body of the HTTP answer."""
        wait = {} if self.wait_s is None else {"wait_s": self.wait_s}
        return {"error": {"code": self.code, "message": self.message, **wait}}


def _init(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _text(fields, name) for name in ("scope", "restore")}


def _perturb(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"seed": _seed(fields.get("seed"), "seed"), "sigma": _number(fields.get("sigma"), "sigma")}


def _update(fields: Mapping[str, Any]) -> dict[str, Any]:
    update = fields.get("update")
    if not isinstance(update, Mapping):
        raise _invalid("update", "an object")
    step = update.get("step")
    if type(step) is not int:
        raise _invalid("step", "an integer")
    seeds = [_seed(one, "seeds") for one in _list(update, "seeds")]
    rewards = [_number(one, "rewards") for one in _list(update, "rewards")]
    weights = [_number(one, "weights") for one in _list(update, "weights")]
    if not seeds or not len(seeds) == len(rewards) == len(weights):
        raise Refusal("invalid", "An update needs as many rewards and weights as seeds, and at least one.", 400)
    numbers = {name: _number(update.get(name), name) for name in ("alpha", "sigma")}
    read: dict[str, Any] = {"step": step, "seeds": seeds, "rewards": rewards, "weights": weights, **numbers}
    if "inherited" in update:
        read["inherited"] = [_inherited(pair) for pair in _list(update, "inherited")]
    if "signal" in update:
        read["signal"] = _number(update["signal"], "signal")
    return {"update": read}


def _export(fields: Mapping[str, Any]) -> dict[str, Any]:
    folder, nonce = Path(_text(fields, "folder")), _text(fields, "nonce")
    float32 = fields.get("float32", False)
    if not isinstance(float32, bool):
        raise _invalid("float32", "true or false")
    try:
        seen = (folder / NONCE).read_text(encoding="ascii") == nonce
    except (OSError, ValueError):
        seen = False
    if not folder.is_absolute() or not seen:
        raise Refusal("invalid", f"The server does not see the folder {folder} that the client means.", 400)
    return {"folder": folder, "float32": float32}


def _nothing(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {}


ARGUMENTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "init": _init,
    "perturb": _perturb,
    "restore": _nothing,
    "update": _update,
    "checksum": _nothing,
    "export": _export,
    "release": _nothing,
}
"""By operation: what its arguments are, from the fields of a message. Raises Refusal."""


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise _invalid(name, "a text")
    return value


def _list(fields: Mapping[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    if not isinstance(value, list):
        raise _invalid(name, "a list")
    return value


def _inherited(pair: Any) -> list[int | float]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise _invalid("inherited", "pairs of a seed and a coefficient")
    return [_seed(pair[0], "inherited"), _number(pair[1], "inherited")]


def _seed(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise _invalid(name, "integers from 0 to 2**64 - 1")
    return value


def _number(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _invalid(name, "finite numbers")
    return float(value)


def _invalid(name: str, what: str) -> Refusal:
    return Refusal("invalid", f"{name} has to be {what}.", 400)
