"""The random streams: the same place gives the same numbers, another place gives others."""

from __future__ import annotations

from itertools import product

from eoh_esopt.engine.streams import batch_stream, reply_seed


def first(seed: int, generation: int, operator: str, purpose: str) -> int:
    return int(batch_stream(seed, generation, operator, purpose).integers(2**63))


def test_the_same_place_gives_the_same_stream() -> None:
    """Else a resumed run draws other parents and directions than the run it goes on with."""
    assert first(1, 2, "m1", "ask") == first(1, 2, "m1", "ask")
    assert reply_seed(1, 2) == reply_seed(1, 2)


def test_every_place_has_a_stream_of_its_own() -> None:
    """Else two batches share their directions, or two candidates their words."""
    places = list(product((1, 12), (-1, 0, 2, 12), ("m1", "m2", "i1"), ("ask", "tell")))
    assert len({first(*place) for place in places}) == len(places)
    assert len({reply_seed(seed, candidate) for seed in (1, 11) for candidate in range(100)}) == 200


def test_the_streams_do_not_change_between_releases() -> None:
    """Else a run cannot be resumed after an upgrade, and published runs cannot be repeated."""
    assert reply_seed(2024, 0) == 4888974263399850410
    assert first(2024, 0, "m1", "ask") == 4186962821519615480


def test_reply_seeds_fit_into_64_bits() -> None:
    """Else the model's generator refuses them."""
    assert all(0 <= reply_seed(seed, candidate) < 2**64 for seed in (0, 2**70) for candidate in (0, 10**9))
