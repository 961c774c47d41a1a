"""Drawing tokens for the rows of a batch, each from its own counter-based stream.

A row's draws depend on its seed and the position of the token in the reply, not on the other rows or on any global
generator. Given to transformers' own generation loop as a logits processor that leaves one token possible.
"""

from __future__ import annotations

import numpy as np
import torch

from eoh_esopt.models.protocol import Sampling
from operators.errors import UserError
from operators.noise import uniform

_STREAM = "sampling"


class RowSampler:
    """Logits processor: presence penalty, temperature, top-k, top-p, then the token at the row's own uniform number.

    The order is vLLM's.
    """

    def __init__(self, sampling: Sampling, seeds: list[int], prompt_length: int) -> None:
        self._sampling = sampling
        self._prompt_length = prompt_length
        numbers = [uniform(seed, _STREAM, 0, sampling.max_new_tokens) for seed in seeds]
        self._numbers = torch.from_numpy(np.stack(numbers))

    def __call__(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores in which each row's drawn token has 0 and every other token minus infinity.

        Raises:
            UserError: a row has no highest score: the weights have been moved so far that they overflow.
        """
        if not bool(torch.isfinite(scores.amax(dim=1)).all()):
            raise UserError(
                "The model's logits are not finite: its weights have been moved too far. "
                "Begin a new run with a smaller sigma or alpha."
            )
        reply = tokens[:, self._prompt_length :]
        chosen = self._choose(self._penalised(scores.float(), reply), reply.shape[1])
        decided = torch.full_like(scores, -torch.inf)
        decided.scatter_(1, chosen[:, None], 0.0)
        return decided

    def _penalised(self, scores: torch.Tensor, reply: torch.Tensor) -> torch.Tensor:
        if self._sampling.presence_penalty == 0:
            return scores
        present = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, reply, True)
        return scores - self._sampling.presence_penalty * present

    def _choose(self, scores: torch.Tensor, position: int) -> torch.Tensor:
        if self._sampling.temperature == 0:
            return scores.argmax(dim=1)
        kept = min(self._sampling.top_k, scores.shape[1])
        values, indices = torch.topk(scores / self._sampling.temperature, kept, dim=1)
        probabilities = torch.softmax(values.double(), dim=1)
        before = probabilities.cumsum(dim=1) - probabilities
        probabilities = probabilities.masked_fill(before >= self._sampling.top_p, 0.0)
        cumulative = probabilities.cumsum(dim=1)
        target = self._numbers[:, position].to(scores.device)[:, None] * cumulative[:, -1:]
        place = torch.searchsorted(cumulative, target, right=True).clamp_(max=kept - 1)
        return indices.gather(1, place)[:, 0]
