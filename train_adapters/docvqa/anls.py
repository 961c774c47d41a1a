"""ANLS: how close an answer in text is to the closest of several right ones.

Average Normalised Levenshtein Similarity, see Biten et al., Scene Text Visual Question Answering (ICCV 2019): 1 minus
the edit distance over the longer length, and 0 where that is half or more. The mean over questions is the trainer's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from operators.errors import UserError

SUCCESS = 0.5
"""Least similarity of a right answer. None lies on it: what is not above it is 0."""

_LIMIT = 0.5
_OTHER = re.compile(r"[^a-z0-9]+")


def similarity(prediction: str, answers: Sequence[str]) -> float:
    """ANLS of one question, from 0 to 1; 0 for an empty prediction.

    Raises:
        UserError: rapidfuzz is not installed.
    """
    return max((_similarity(prediction, answer) for answer in answers), default=0.0)


def normalised(text: str) -> str:
    """Lower case, with one space in place of whatever is no ASCII letter or digit."""
    return _OTHER.sub(" ", text.lower()).strip()


def _similarity(prediction: str, answer: str) -> float:
    left, right = normalised(prediction), normalised(answer)
    if not right:  # an answer such as "%" is compared as it stands
        left, right = prediction.strip(), answer.strip()
    if not left or not right:
        return 0.0
    distance = _distance(left, right)
    return 1.0 - distance if distance < _LIMIT else 0.0


def _distance(left: str, right: str) -> float:
    """Edit distance over the longer length."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise UserError("docvqa compares answers with rapidfuzz. Run: pip install 'eoh-esopt[agents]'") from error
    return Levenshtein.normalized_distance(left, right)
