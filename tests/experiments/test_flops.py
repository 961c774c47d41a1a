"""Model FLOPs by the paper's formula."""

from __future__ import annotations

import pytest

from eoh_esopt.engine.ledger import Ledger
from eoh_esopt.experiments.flops import ledger_flops, model_flops


def test_the_three_methods_differ_by_what_they_run() -> None:
    """Else costs are compared by another formula than the paper's."""
    found = model_flops(8_000_000_000, 1_000)
    assert (found.forward, found.grpo, found.ppo) == (16_000_000_000_000, 64_000_000_000_000, 112_000_000_000_000)


def test_a_run_pays_for_what_it_reads_and_for_what_it_writes() -> None:
    """Else long prompts seem to cost nothing."""
    ledger = Ledger(prompt_tokens=300, new_tokens=200)
    assert ledger_flops(ledger, 10) == model_flops(10, 500)


def test_a_model_of_unknown_size_has_no_flops() -> None:
    """Else a run behind an endpoint is said to have cost nothing."""
    assert ledger_flops(Ledger(new_tokens=5), None) is None


def test_negative_sizes_are_refused() -> None:
    """Else a defect upstream shows as a saving."""
    with pytest.raises(ValueError, match="negative"):
        model_flops(1, -1)
