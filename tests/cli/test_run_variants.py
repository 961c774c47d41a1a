"""The options for variants of the update: refused with what to do before anything is loaded or written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]

REFUSED = {
    "shaping": (["--shaping", "ranks"], "Unknown shaping 'ranks'. Choose one of: z-score, centred-rank."),
    "odd pairs": (["--antithetic", "--directions", "5"], "5 is odd: give an even --directions"),
    "momentum": (["--momentum", "1"], "momentum must lie in [0, 1), not 1.0"),
    "adaptive sigma": (["--adaptive-sigma"], "at least 2 --samples-per-direction, not 1"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_variants_that_cannot_be_are_refused(call: Call, tmp_path: Path, options: list[str], message: str) -> None:
    """Else a run begins, and ends hours later in something else than was asked for."""
    code, _, said = call("run", "tsp_construct", "--model", tmp_path / "none", "--out", tmp_path / "out", *options)
    assert code == 2
    assert message in " ".join(said.split())
    assert not (tmp_path / "out").exists()


def test_variants_cannot_be_given_on_resume(call: Call, tmp_path: Path) -> None:
    """Else half of a run is learnt one way and half another."""
    code, _, said = call("run", "--resume", tmp_path, "--antithetic")
    assert code == 2
    assert "--antithetic cannot be given with --resume" in " ".join(said.split())


def test_every_variant_is_explained(call: Call) -> None:
    """Else nobody finds them."""
    _, out, _ = call("run", "--help")
    for option in ("--shaping", "--antithetic", "--momentum", "--adaptive-sigma"):
        assert option in out
