"""Start programs from the files of EoH and LLM4AD: what is taken from them, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eoh_esopt.hosts.populations import read_population
from operators.errors import UserError

IMPORTS = "import numpy as np"
EOH = {
    "algorithm": "{Go near.}",
    "code": "import numpy as np\ndef f(x):\n    return x",
    "objective": 6.1,
    "other_inf": None,
}
LLM4AD = {"algorithm": "{Go\n far.}", "function": "def f(x):\n    return 2 * x\n\n", "score": float("-inf")}


def put(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_both_forms_are_read(tmp_path: Path) -> None:
    """Without it users of one of the hosts could not bring their heuristics along."""
    [first] = read_population(put(tmp_path / "eoh.json", [EOH]), IMPORTS)
    assert (first.idea, first.code) == ("Go near.", EOH["code"] + "\n")
    [second] = read_population(put(tmp_path / "llm4ad.json", [LLM4AD]), IMPORTS)
    assert second.idea == "Go far."
    assert second.code == "import numpy as np\n\ndef f(x):\n    return 2 * x\n", "LLM4AD keeps no imports"


def test_best_file_and_failed_attempts_are_read(tmp_path: Path) -> None:
    """Without it pops_best, or a file with a failed attempt in it, would be refused."""
    assert len(read_population(put(tmp_path / "best.json", EOH), IMPORTS)) == 1
    failed = {**EOH, "code": None, "algorithm": None}
    assert len(read_population(put(tmp_path / "failed.json", [failed, EOH]), IMPORTS)) == 1


@pytest.mark.parametrize("under", [".", "pops", "results/pops"])
def test_newest_population_of_a_folder(tmp_path: Path, under: str) -> None:
    """Sorted as text, generation 9 would be newer than 10."""
    for generation in (0, 9, 10):
        program = {**EOH, "algorithm": f"From generation {generation}."}
        put(tmp_path / under / f"population_generation_{generation}.json", [program])
    put(tmp_path / under / "notes_11.json", "{}")
    assert [one.idea for one in read_population(tmp_path, IMPORTS)] == ["From generation 10."]


def test_newest_population_of_llm4ad_beside_its_end_file(tmp_path: Path) -> None:
    """LLM4AD's own reader fails on the end.json that its profilers leave beside the populations."""
    put(tmp_path / "population" / "pop_2.json", [LLM4AD])
    put(tmp_path / "population" / "end.json", [])
    assert len(read_population(tmp_path, IMPORTS)) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<html>", r"file\.json is no JSON: .*line 1"),
        ("[{", "is no JSON"),
        ("3", "holds a int, not a list of programs"),
        ([], "holds no program"),
        ([{**EOH, "code": None}], "holds no program"),
        ([EOH, 3], "entry 2 is a int, not an object"),
        ([EOH, {"algorithm": "a", "objective": 1}], "entry 2 has neither code nor function, only algorithm, objective"),
        ([{}], "entry 1 has neither code nor function, only nothing"),
        ([{**EOH, "code": ["def f"]}], "entry 1: code is a list, not a text"),
        ([{**EOH, "algorithm": 7}], "entry 1: algorithm is a int, not a text"),
    ],
)
def test_bad_files_are_named_with_their_entry(tmp_path: Path, content: Any, message: str) -> None:
    """Without it a user with a file of hundreds of entries gets a KeyError."""
    path = put(tmp_path / "file.json", content)
    with pytest.raises(UserError, match=message) as caught:
        read_population(path, IMPORTS)
    assert str(path) in str(caught.value)


def test_places_without_a_population(tmp_path: Path) -> None:
    """Without it a wrong path ends in a traceback, and a run of ours is not told apart from a folder of anything."""
    with pytest.raises(UserError, match=r"Cannot read .*no\.json: No such file"):
        read_population(tmp_path / "no.json", IMPORTS)
    with pytest.raises(UserError, match="holds no population"):
        read_population(tmp_path, IMPORTS)
    put(tmp_path / "run" / "events.jsonl", "")
    with pytest.raises(UserError, match=re.escape(f"eoh-esopt export-population {tmp_path / 'run'}")):
        read_population(tmp_path / "run", IMPORTS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["code", "function", "algorithm", "x"]), inner),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    """Without it some file would end in a traceback."""
    path = put(tmp_path_factory.mktemp("any") / "file.json", json.dumps(content))
    try:
        programs = read_population(path, IMPORTS)
    except UserError:
        return
    assert programs
    assert all(isinstance(one.code, str) and isinstance(one.idea, str) for one in programs)
