"""Seeds of sampled replies: common random numbers, the same for every direction of a generation."""

from __future__ import annotations

from eoh_esopt.engine.streams import place_seed


def turn_seed(seed: int, place: str, task: str, sample: int, turn: int) -> int:
    """64-bit seed of one reply.

    The direction is not part of it: directions differ by their weights alone, and not by how the dice fell, which is
    as much variance less between their rewards.

    Args:
        seed: of the run.
        place: what the episode is for: a generation, or a repeat of an evaluation.
        task: id of the task.
        sample: running number of the episode among those of the task.
        turn: running number of the reply, from 0.
    """
    return place_seed(f"{seed}/turn/{place}/{sample}/{turn}/{task}")
