"""Updates as plain data: nothing is lost on the way, and the paper's updates look as they always did."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.records import Update
from operators.update_fields import fields_of, update_of

PLAIN = Update(3, (2**64 - 1, 5), (0.1 + 0.2, -1e-300), (1.0000000000000002, -1.0), 0.03, 0.06)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SEEDS = st.integers(0, 2**64 - 1)


def test_the_papers_update_has_the_fields_it_always_had() -> None:
    """Histories and logs of default runs would change, and servers of another release would count other updates."""
    assert json.dumps(fields_of(PLAIN)) == (
        '{"step": 3, "seeds": [18446744073709551615, 5], "rewards": [0.30000000000000004, -1e-300], '
        '"weights": [1.0000000000000002, -1.0], "alpha": 0.03, "sigma": 0.06}'
    )


@given(
    directions=st.lists(st.tuples(SEEDS, NUMBERS, NUMBERS), min_size=1, max_size=4),
    inherited=st.lists(st.tuples(SEEDS, NUMBERS), max_size=4),
    signal=st.none() | NUMBERS,
    alpha=NUMBERS,
)
def test_updates_come_back_to_the_last_bit(
    directions: list[tuple[int, float, float]],
    inherited: list[tuple[int, float]],
    signal: float | None,
    alpha: float,
) -> None:
    """A replay would end in other weights than the run."""
    seeds, rewards, weights = (tuple(column) for column in zip(*directions, strict=True))
    update = Update(1, seeds, rewards, weights, alpha, 0.5, tuple(inherited), signal)
    again = update_of(json.loads(json.dumps(fields_of(update))))
    assert again == update
    assert (again.noise_seeds, again.coefficients) == (update.noise_seeds, update.coefficients)


DAMAGED = {
    "no weights": {"weights": []},
    "inherited numbers": {"inherited": [1, 2]},
    "inherited seed alone": {"inherited": [[1]]},
    "seeds no list": {"seeds": 7},
}


@pytest.mark.parametrize("change", DAMAGED.values(), ids=DAMAGED)
def test_damaged_fields_are_refused(change: dict[str, object]) -> None:
    """Half of an update would be applied without a word."""
    with pytest.raises((TypeError, ValueError)):
        update_of({**fields_of(PLAIN), **change})
