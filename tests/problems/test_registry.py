"""Problems by name and by file: whatever is wrong with a name or a file is told in one sentence."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from user_problems import BIN_PACKING, changed, put

from operators.errors import UserError
from problems import registry
from problems.base import Problem

TWO = BIN_PACKING + "\n\nclass Second(OnlineBinPacking):\n    '''Pack again.'''\n\n    measure = 'boxes'\n"


def refused(name: str, **selection: Any) -> str:
    """The message."""
    with pytest.raises(UserError) as caught:
        registry.get(name, **selection)
    return str(caught.value)


def test_built_in_problems_have_the_name_they_are_found_under() -> None:
    """Reference values would not be found, and a log would name a problem that does not exist."""
    assert "tsp_construct" in registry.names()
    assert list(registry.names()) == sorted(registry.names())
    for name in registry.names():
        problem = registry.get(name)
        assert isinstance(problem, Problem)
        assert problem.name == problem.task.name == name
        assert not registry.is_file(name)
        assert registry.absolute(name) == name


def test_unknown_names_are_helped() -> None:
    """The user would have to guess how a problem is called."""
    message = refused("tsp_constract")
    assert "Unknown problem 'tsp_constract'. Did you mean 'tsp_construct'?" in message
    assert all(name in message for name in registry.names())
    message = refused("xyz")
    assert "Did you mean" not in message
    assert "tsp_construct" in message
    assert ".py file" in message
    assert "Unknown problem ''" in refused("")


def test_a_file_with_one_problem(tmp_path: Path) -> None:
    """A user's own problem could not be searched."""
    path = put(tmp_path)
    problem = registry.get(path)
    assert (problem.name, len(problem.instances)) == ("OnlineBinPacking", 5)
    assert registry.get(f"{path}:OnlineBinPacking").name == "OnlineBinPacking"
    assert problem.task.signature == "def score_bins(item, room):"


def test_a_file_with_two_problems(tmp_path: Path) -> None:
    """A run would search another problem than the user means."""
    path = put(tmp_path, TWO)
    assert registry.get(f"{path}:Second").measure == "boxes"
    message = refused(path)
    assert "2 problems, not one. Problems there: OnlineBinPacking, Second." in message
    assert f"{path}:NAME" in message
    assert "no class 'Third' that is a Problem" in refused(f"{path}:Third")
    assert "no class 'np' that is a Problem" in refused(f"{path}:np")
    assert "no class 'Problem'" in refused(f"{path}:Problem")


def test_a_file_without_a_problem(tmp_path: Path) -> None:
    """The user would not learn what the file lacks."""
    for source in ("", "from problems import Problem\n", "class P:\n    pass\n"):
        message = refused(put(tmp_path, source))
        assert (
            "0 problems, not one. Problems there: none. Define a class that inherits from problems.Problem" in message
        )


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import no_such_module_here\n", "ModuleNotFoundError: No module named 'no_such_module_here' (line 1)"),
        (BIN_PACKING + "\n\ndef f():\n    return 1 / 0\n\n\nf()\n", "ZeroDivisionError: division by zero (line 46)"),
        (BIN_PACKING.replace("= np.full", "= np full"), "SyntaxError: invalid syntax (my_problem.py, line 28). Run"),
        (BIN_PACKING + "\0", "null bytes"),
        ("import sys\nsys.exit('no arguments')\n", "SystemExit: no arguments (line 2)"),
        ("x = '\udcff'\n", "UTF-8"),
    ],
)
def test_a_file_that_does_not_load(tmp_path: Path, source: str, told: str) -> None:
    """The user would get a traceback through our own modules, or nothing at all."""
    path = tmp_path / "my_problem.py"
    path.write_bytes(source.encode(errors="surrogateescape"))
    before = list(sys.path)
    message = refused(str(path))
    assert message.startswith(f"{path} does not load: ")
    assert told.lower() in message.lower()
    assert sys.path == before


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    """The user would not see that the path is wrong."""
    for name in (tmp_path / "none.py", f"{tmp_path / 'none.py'}:Own", "none.py"):
        assert "There is no file" in refused(str(name))
    (tmp_path / "folder.py").mkdir()
    assert "There is no file" in refused(str(tmp_path / "folder.py"))
    assert "or the path of a .py file" in refused(str(tmp_path))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("self.instances = list(", "self.instances = open('none') or list("), "FileNotFoundError.*none.*line 25"),
        (("self.instances = list(", "raise SystemExit\n        self.instances = list("), "SystemExit"),
        (("def score(", "def rate("), "TypeError.*abstract.*score"),
        (("self.instances =", "self.things ="), "OnlineBinPacking in .* has no instances. Set self.instances"),
        (("size=(5, 120)", "size=(0, 120)"), "has no instances"),
        (("self.instances = list(", "self.instances = iter("), "has no instances"),
    ],
)
def test_a_problem_that_cannot_be_made(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    """A slip in the user's constructor would end in a traceback as if it were a defect of ours."""
    path = put(tmp_path, changed(change))
    with pytest.raises(UserError, match=told) as caught:
        registry.get(path)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_users_own_error_is_told_as_it_is(tmp_path: Path) -> None:
    """A problem that names what is wrong with its arguments would be talked over."""
    raising = ("self.instances = list(", "raise UserError('Give more.')\n        self.instances = list(")
    path = put(tmp_path, "from operators.errors import UserError\n" + changed(raising))
    assert refused(path) == "Give more."


def test_arguments_reach_the_class(tmp_path: Path) -> None:
    """A user's problem could not have sets of several sizes."""
    taking = changed(("__init__(self)", "__init__(self, size=120)"), ("(5, 120)", "(5, size)"))
    assert len(registry.get(put(tmp_path, taking), size=7).instances[0]) == 7
    with pytest.raises(UserError, match=r"cannot be made with split.*unexpected.*'split'.*__init__.*defaults"):
        registry.get(put(tmp_path, taking), split="test")
    needing = changed(("__init__(self)", "__init__(self, size)"), ("(5, 120)", "(5, size)"))
    assert "cannot be made with no arguments: missing a required argument: 'size'" in refused(put(tmp_path, needing))
    assert "cannot be made with depth" in refused("tsp_construct", depth=3)


def test_files_beside_it_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem in two files could not be loaded, or would change what other programs import."""
    put(tmp_path, "SIZE = 9\n", "sizes_of_mine.py")
    path = put(tmp_path, "from sizes_of_mine import SIZE\n" + changed(("(5, 120)", "(5, SIZE)")))
    monkeypatch.delitem(sys.modules, "sizes_of_mine", raising=False)
    before = list(sys.path)
    assert len(registry.get(path).instances[0]) == 9
    assert sys.path == before
    monkeypatch.delitem(sys.modules, "sizes_of_mine")
    tidied = f"import sys\nsys.path.remove({str(tmp_path)!r})\n"
    assert "sizes_of_mine" in refused(put(tmp_path, tidied + Path(path).read_text()))
    assert sys.path == before


@pytest.mark.parametrize("name", ["my_problem.py", "random.py", "problems.py", "with-dash.py", "two.dots.py"])
def test_any_name_of_the_file(tmp_path: Path, name: str) -> None:
    """A file that is called like a module would take its place."""
    module = sys.modules.get(name.removesuffix(".py"))
    assert registry.get(put(tmp_path, name=name)).name == "OnlineBinPacking"
    assert sys.modules.get(name.removesuffix(".py")) is module


def test_instances_may_be_dataclasses(tmp_path: Path) -> None:
    """A file written in the style of ours would not load: `dataclass` looks the module up."""
    source = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        + BIN_PACKING
        + "\n\n@dataclass\nclass Instance:\n    items: list[int]\n"
    )
    assert registry.get(put(tmp_path, source)).name == "OnlineBinPacking"


def test_a_changed_file_is_loaded_anew(tmp_path: Path) -> None:
    """Corrections would not take effect until the program is started again."""
    for size in (3, 4):
        path = put(tmp_path, changed(("(5, 120)", f"(5, {size})")))
        os.utime(path, (size, size))
        assert len(registry.get(path).instances[0]) == size


def test_absolute_names_hold_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers of the sandbox, which have another working folder, would not find the file."""
    put(tmp_path, TWO)
    monkeypatch.chdir(tmp_path)
    assert registry.absolute("my_problem.py") == str(tmp_path.resolve() / "my_problem.py")
    second = registry.absolute("./my_problem.py:Second")
    monkeypatch.chdir("/")
    assert second == f"{tmp_path.resolve() / 'my_problem.py'}:Second"
    assert registry.get(second).measure == "boxes"
