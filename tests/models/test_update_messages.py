"""Updates as servers read them: those with inherited seeds and a measured signal too, and none that is damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eoh_esopt.models.vllm.arguments import ARGUMENTS, Refusal
from eoh_esopt.models.vllm.wire import hash_of
from operators.records import Update
from operators.update_fields import fields_of, update_of

PLAIN = Update(4, (1, 2**64 - 1), (0.5, 1.0), (-1.0, 1.0), 0.1, 0.01)
UPDATES = {
    "the paper's": PLAIN,
    "momentum": Update(4, (1, 2), (0.5, 1.0), (-1.0, 1.0), 0.1, 0.01, ((2**64 - 1, -1e-300), (0, 0.1 + 0.2))),
    "adaptive sigma": Update(4, (1, 2), (0.5, 1.0), (-1.0, 1.0), 0.1, 0.01, (), -0.25),
    "both": Update(4, (1, 2), (0.5, 1.0), (-1.0, 1.0), 0.1, 0.01, ((3, 1.0),), 0.0),
}


def read(fields: dict[str, Any]) -> dict[str, Any]:
    """What a server makes of an update that a client sends."""
    found: dict[str, Any] = ARGUMENTS["update"](json.loads(json.dumps({"update": fields})))["update"]
    return found


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_a_server_applies_and_counts_the_update_that_was_sent(update: Update) -> None:
    """A server that drops what it does not expect holds other weights, and its client gives it up."""
    sent = fields_of(update)
    received = read(sent)
    assert update_of(received) == update
    assert hash_of([received]) == hash_of([sent])


def test_the_hash_of_the_papers_update_is_that_of_earlier_releases() -> None:
    """Servers and clients of two releases would not understand one another although nothing new is asked."""
    assert hash_of([fields_of(PLAIN)]) == "11a763b58f094564334e477a42a69c2cb5c064b314e7b5e5e24ed088ef2e0c14"


WRONG = {
    "no pairs": [1, 2],
    "a seed alone": [[1]],
    "three numbers": [[1, 0.5, 0.5]],
    "no seed": [[0.5, 0.5]],
    "a negative seed": [[-1, 0.5]],
    "no number": [[1, None]],
    "no list": {"1": 0.5},
    "nothing": None,
}


@pytest.mark.parametrize("inherited", WRONG.values(), ids=WRONG)
def test_damaged_inherited_seeds_are_refused(inherited: object) -> None:
    """The weights would be moved elsewhere than the history says."""
    with pytest.raises(Refusal, match="inherited has to be"):
        read({**fields_of(PLAIN), "inherited": inherited})


@pytest.mark.parametrize("signal", [None, "0.5", True])
def test_a_damaged_signal_is_refused(signal: object) -> None:
    """Client and server would count different updates."""
    with pytest.raises(Refusal, match="signal has to be"):
        read({**fields_of(PLAIN), "signal": signal})
