"""What the agent is shown of a page, and what is cut away when it is too long."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from train_adapters.webarena.page_view import PageView, cut, page_view


def row(
    depth: int, tag: str, text: str = "", *, id: str = "", clickable: bool = False, seen: bool = True, **attributes: str
) -> list[Any]:
    return [depth, tag, id, attributes, text, clickable, seen]


def shown(*rows: list[Any]) -> list[str]:
    return list(page_view({"nodes": list(rows)}).lines)


def test_what_can_be_acted_on_has_its_id() -> None:
    """Without ids in the text the agent could name no element."""
    assert shown(
        row(0, "body", id="1"),
        row(1, "a", id="2"),
        row(2, "", "Cart"),
        row(1, "input", id="3", type="text", name="q", placeholder="Search"),
        row(1, "div", id="4", clickable=True),
        row(2, "", "Open"),
    ) == [
        '<a id="2">Cart</a>',
        '<input id="3" type="text" name="q" placeholder="Search">',
        '<div id="4">Open</div>',
    ]


def test_wrappers_are_left_out_and_text_runs_on() -> None:
    """Pages are mostly wrappers; each line of them would cost the model tokens and tell it nothing."""
    assert shown(
        row(0, "div", id="1"),
        row(1, "div", id="2"),
        row(2, "", "Price:"),
        row(2, "b", id="3"),
        row(3, "", "$5 & more"),
    ) == ["Price: $5 &amp; more"]


def test_a_list_shows_what_is_chosen() -> None:
    """The agent has to see whether its choice was taken."""
    lines = shown(
        row(0, "select", id="5", value="b"),
        row(1, "option", id="6", value="a"),
        row(2, "", "First"),
        row(1, "option", id="7", value="b"),
        row(2, "", "Second"),
    )
    assert lines[-1].endswith('<option id="7" selected>Second</option></select>')
    assert "selected>First" not in lines[-1]


def test_a_table_row_is_a_line() -> None:
    """What belongs together has to stand together, or prices could not be told from one another."""
    assert shown(
        row(0, "table"),
        *(
            one
            for name, price in (("Mug", "$5"), ("Pot" * 40, "$9"))
            for one in (row(1, "tr"), row(2, "td"), row(3, "", name), row(2, "td"), row(3, "", price))
        ),
    )[:2] == ["<table>", "  <tr><td>Mug</td> <td>$5</td></tr>"]


def test_the_accessibility_tree_passes_through() -> None:
    """It is text already; empty lines in it would only cost tokens."""
    assert page_view({"lines": ["RootWebArea 'Shop'", "", " [3] link 'Cart'"]}).lines == (
        "RootWebArea 'Shop'",
        " [3] link 'Cart'",
    )


LONG = PageView(tuple(f'<a id="{number}">link {number}</a>' for number in range(100)), first_visible=70)


def test_a_page_that_fits_is_shown_whole() -> None:
    """A cut where none is needed would hide elements."""
    assert cut(LONG, 10_000) == "\n".join(LONG.lines)


def test_the_cut_is_around_the_element_acted_on() -> None:
    """After filling a field the agent needs what stands beside it, wherever on the page that is."""
    text = cut(LONG, 300, element="50")
    assert 'id="50"' in text
    assert 'id="49"' in text
    assert 'id="51"' in text
    assert "lines above" in text
    assert "lines below" in text
    assert 'id="0"' not in text


def test_the_cut_follows_the_window_after_scrolling() -> None:
    """Else Scroll Down would show the same part of a long page again, and the rest never."""
    assert 'id="70"' in cut(LONG, 300, element="5", scrolled=True)


def test_an_element_that_is_gone_shows_the_beginning() -> None:
    """A new page has other ids; it is read from its top."""
    assert cut(LONG, 300, element="1234").startswith(LONG.lines[0])


@given(
    st.lists(st.text(st.characters(exclude_characters="\n"), max_size=80), min_size=1),
    st.integers(1, 400),
    st.integers(0, 60),
)
def test_a_cut_keeps_to_its_size(lines: list[str], most: int, first: int) -> None:
    """The page is what fills a context: without a limit that holds, a long one would end the episode."""
    view = PageView(tuple(lines), min(first, len(lines) - 1))
    kept = [line for line in cut(view, most, scrolled=True).split("\n") if not line.startswith("... ")]
    assert len(kept) <= 1 or sum(map(len, kept)) <= most + max(map(len, lines))
