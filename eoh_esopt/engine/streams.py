"""Random streams of a run, each derived from the run's seed and its place, so that a resumed run draws the same."""

from __future__ import annotations

import hashlib

import numpy as np


def batch_stream(seed: int, generation: int, operator: str, purpose: str) -> np.random.Generator:
    """The stream of one operator batch, for asking or for telling."""
    return np.random.Generator(np.random.Philox(_entropy(f"{seed}/{generation}/{operator}/{purpose}")))


def reply_seed(seed: int, candidate: int, attempt: int = 0) -> int:
    """64-bit seed of the sampling of one candidate's reply; further attempts at the same candidate have their own."""
    place = f"{candidate}" if attempt == 0 else f"{candidate}/{attempt}"
    return place_seed(f"{seed}/reply/{place}")


def place_seed(place: str) -> int:
    """64-bit seed of a place, which begins with the run's seed."""
    return _entropy(place) % 2**64


def _entropy(place: str) -> int:
    return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=16).digest(), "little")
