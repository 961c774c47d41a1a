"""GPUs are found by the names people use, and their figures are those of their data sheets."""

from __future__ import annotations

import pytest

from eoh_esopt.planning.cards import CARDS, find_card
from operators.errors import UserError

SPELLINGS = {
    "RTX 3090": ["rtx3090", "RTX-3090", "NVIDIA GeForce RTX 3090", "3090"],
    "A100-40": ["a100-40gb", "A100 40", "NVIDIA A100-SXM4-40GB"],
    "A100-80": ["A100-80GB", "a100", "NVIDIA A100 80GB"],
    "H100": ["h100", "NVIDIA H100", "H100 SXM", "H100-SXM5"],
    "L40S": ["l40s"],
}


@pytest.mark.parametrize(("name", "written"), [(name, one) for name, all_ in SPELLINGS.items() for one in all_])
def test_a_card_is_found_however_it_is_written(name: str, written: str) -> None:
    """Else a user has to guess which of many spellings is the right one."""
    assert find_card(written).name == name


@pytest.mark.parametrize("name", [card.name for card in CARDS])
def test_every_card_is_found_by_its_own_name(name: str) -> None:
    """Else the name that an error message lists is refused."""
    assert find_card(name).name == name


@pytest.mark.parametrize("name", ["", " ", "GTX", "100", "A", "H100-40", "RTX"])
def test_an_unknown_card_is_refused_with_the_known_ones(name: str) -> None:
    """Else a typing error is planned as some other card."""
    with pytest.raises(UserError, match=r"Unknown GPU .* Known: RTX 3090, .*B200; or cpu"):
        find_card(name)


def test_newer_cards_are_faster_in_everything_that_counts() -> None:
    """Else two columns of the table were exchanged."""
    old, new, newest = (find_card(name) for name in ("A100-80", "H100", "B200"))
    for figure in ("bandwidth", "flops", "instructions", "link"):
        assert getattr(old, figure) < getattr(new, figure) <= getattr(newest, figure)
    assert find_card("H200").flops == new.flops
    assert find_card("H200").memory > 1.5 * new.memory
