"""What a host's candidate is made of."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eoh_esopt.hosts.eoh_common import host_objective, individual, parent_of
from eoh_esopt.hosts.host import Draft, Written
from eoh_esopt.hosts.reading import NO_IDEA, read_reply
from operators.records import Outcome, Status

CODE = "def value(first, second):\n    return first"


@pytest.mark.parametrize(
    ("text", "idea"),
    [
        (f"{{Take the first.}}\n```python\n{CODE}\n```", "Take the first."),
        (f"```python\n{CODE}\n```", NO_IDEA),
        (f"{{Take the first.}}\n```bash\npip install x\n```\n```python\n{CODE}\n```", "Take the first."),
        (
            f"<think>```python\ndef wrong(): pass\n```</think>{{Take the first.}}\n```python\n{CODE}\n```",
            "Take the first.",
        ),
        (f"{{Take the first.}}\n{CODE}\n", "Take the first."),
    ],
)
def test_program_and_description_of_a_reply(text: str, idea: str) -> None:
    """Without it good programs are lost where a host's own extraction takes the wrong fence, or needs a description."""
    assert read_reply(text, "value") == (CODE, idea)


def test_class_of_a_reply() -> None:
    """Without it problems whose template is a class would get the last class of a reply, not the one asked for."""
    code = "class Wanted:\n    def run(self):\n        return 1"
    found = read_reply(f"```python\n{code}\n```\nUse it so:\n```python\nWanted().run()\n```", "Wanted")
    assert found is not None
    assert found[0] == code


def test_reply_without_a_program() -> None:
    """Without it prose would be evaluated as a program."""
    assert read_reply("I would rather not.", "value") is None


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_keeps_small_objectives_apart(objective: float) -> None:
    """Without it objectives of a millionth would all be 0.0, and candidates be dropped as duplicates."""
    assert host_objective(objective) == pytest.approx(objective, rel=1e-3, abs=1e-320)


@settings(deadline=None)
@given(st.floats(min_value=0.01, max_value=1e6))
def test_rounding_is_the_hosts_for_usual_objectives(objective: float) -> None:
    """Without it the same search would show other numbers than before."""
    assert host_objective(objective) == round(objective, 5)


def test_measured_objective_comes_back_from_the_hosts_files() -> None:
    """Without it a search that goes on from a file would compute rewards from rounded numbers."""
    written = Written(Draft(CODE, "an idea", ()), Outcome(Status.OK, 1 / 3), {"id": 3, "objective": 1 / 3})
    kept = individual(written)
    assert kept is not None
    assert kept["objective"] == 0.33333
    assert parent_of(kept).objective == 1 / 3
    assert parent_of({**kept, "other_inf": None}).objective == 0.33333
    assert parent_of({**kept, "other_inf": {"mine": 1}}).objective == 0.33333
