"""Model FLOPs by the paper's formula: a count of arithmetic from sizes alone, nothing measured.

A forward pass of a model with P weights takes about 2 P FLOPs a token. Evolution strategies need nothing else, so a
trajectory of L tokens costs 2 P L. The paper counts 8 P L for GRPO (writing, a pass of the reference model, and forward
and backward of the policy) and 14 P L for PPO, which has a value model to train besides.
Source: Agentic-ESOpt, comparison of training costs; the 2 P of a forward pass is Kaplan et al., arXiv 2001.08361,
section 2.1. Moving the weights, attention over the context and the work of the sandbox are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from eoh_esopt.engine.ledger import Ledger

FORWARD = 2
"""FLOPs for each weight and token of a method that only runs the model, as evolution strategies do."""
GRPO = 8
"""The same for group relative policy optimisation."""
PPO = 14
"""The same for proximal policy optimisation."""


@dataclass(frozen=True)
class ModelFlops:
    """FLOPs of the model for some tokens, by the method that would have written and learnt from them.

    Attributes:
        forward: what was spent: the tokens were read and written, with or without updates by evolution strategies.
        grpo: what learning from as many tokens by GRPO takes.
        ppo: what learning from as many tokens by PPO takes.
    """

    forward: int
    grpo: int
    ppo: int


def model_flops(parameters: int, tokens: int) -> ModelFlops:
    """FLOPs for tokens that were read and written.

    Args:
        parameters: weights of the model, P.
        tokens: read and written, over all trajectories: the sum of their L.

    Raises:
        ValueError: one of them is negative (an error of the caller).
    """
    if parameters < 0 or tokens < 0:
        raise ValueError(f"{parameters} weights and {tokens} tokens: neither can be negative.")
    return ModelFlops(*(factor * parameters * tokens for factor in (FORWARD, GRPO, PPO)))


def ledger_flops(ledger: Ledger, parameters: int | None) -> ModelFlops | None:
    """FLOPs of a run; None where the number of weights is not known, as behind an endpoint."""
    return None if parameters is None else model_flops(parameters, ledger.tokens)
