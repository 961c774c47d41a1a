"""From a user's template to what the model is told: every mistake is named, and prompts can be built."""

from __future__ import annotations

import ast
import textwrap

import numpy as np
import pytest
from user_problems import BIN_PACKING

from operators import prompts
from operators.errors import UserError
from operators.records import Candidate
from operators.search import PREFILLS, Situation, search_operators
from operators.task import Task
from problems.template import task_from_template

TEMPLATE = '''
    import numpy as np
    from math import sqrt as root, pi

    WEIGHT = 0.5

    def helped(x):
        return WEIGHT * x

    def choose(here: int, there: "np.ndarray", /, cost) -> int:
        """Take the cheapest.

        here: where we are.
            there: more deeply indented.
        Returns "an id".
        """
        return int(np.argmin(0.75 * cost + helped(root(pi))))
'''


def task_of(template: str = TEMPLATE, function: str = "choose", **given: object) -> Task:
    names = {"name": "own", "description": "Choose\n    the next one.", **given}
    return task_from_template(template, function=function, **names)  # type: ignore[arg-type]


def test_the_model_is_told_what_the_template_says() -> None:
    """The model would write a function the problem does not call."""
    task = task_of()
    assert task.name == "own"
    assert task.description == "Choose the next one."
    assert task.function == "choose"
    assert task.arguments == ("here", "there", "cost")
    assert task.signature == "def choose(here, there, cost):"
    assert task.docstring.split("\n") == [
        "Take the cheapest.",
        "",
        "here: where we are.",
        "    there: more deeply indented.",
        'Returns "an id".',
    ]


def test_imports_are_kept() -> None:
    """Replies begin with the imports: the model's code would not find its modules."""
    assert task_of().imports == "import numpy as np\nfrom math import sqrt as root, pi"
    assert task_of("def f(x):\n    'Same.'\n    return x", "").imports == "import numpy as np"


def test_the_seed_runs_as_it_is_written() -> None:
    """The start population would hold a heuristic that fails."""
    [seed] = task_of().seeds
    names: dict[str, object] = {}
    exec(seed.code, names)
    function = names["choose"]
    assert callable(function)
    assert function(0, None, np.array([2.0, 1.0])) == 1
    assert seed.idea == "Take the cheapest."
    assert seed.code == textwrap.dedent(TEMPLATE).strip() + "\n"


@pytest.mark.parametrize("indentation", ["", "    ", "\t"])
def test_indentation_does_not_matter(indentation: str) -> None:
    """A template would have to stand at the left margin of the file, in the middle of a class."""
    plain = textwrap.dedent(TEMPLATE)
    assert task_of(textwrap.indent(plain, indentation)) == task_of(plain)


@pytest.mark.parametrize("given", [[], ["Try this.", "Try that."], ("Try this.",)])
def test_ideas(given: list[str]) -> None:
    """The mutation operator would suggest something else than the user asks for, or nothing."""
    found = [idea.text for idea in task_of(ideas=given).ideas]
    assert len(found) > 1 if not given else found == list(given)
    assert all(text.endswith(".") for text in found)


ONE = "def f(x):\n    'Same.'\n    return x\n"


@pytest.mark.parametrize(
    ("template", "function", "message"),
    [
        ("", "", "Cannot tell.*none. Define the one"),
        ("import numpy as np\nf = lambda x: x\n", "", "Cannot tell.*none"),
        ("async " + ONE, "", "Cannot tell.*none"),
        ("class A:\n" + textwrap.indent(ONE, "    "), "", "Cannot tell.*none"),
        (ONE, "g", "No function 'g' in the template of own. Functions there: f"),
        (ONE + ONE.replace("f(", "g("), "", "Cannot tell which.*f, g. Name the one.*`function`"),
        (ONE + ONE.replace("f(", "g("), "h", "No function 'h'.*f, g"),
        ("def f(x:\n    'Same.'\n", "", r"Syntax error in the template of own: .*never closed \(line 1\)\. Correct"),
        ("x = 1\n" + ONE + "return 1\n", "", r"'return' outside function \(line 5\)"),
        ("def f(x, x):\n    'Same.'\n", "", r"duplicate argument 'x' in function definition \(line 1\)"),
        ("import os\n    def f(x):\n        'Same.'\n", "", r"unexpected indent \(line 2\)"),
        (ONE + "\0", "", "null byte"),
        ("def f(x):\n    return x\n", "", "f in the template of own has no docstring. Say there"),
        ("def f(x):\n    '  '\n    return x\n", "", "no docstring"),
        ("def f(x):\n    f'Same {x}.'\n    return x\n", "", "no docstring"),
        (ONE.replace("x)", "x, y=1)"), "", "f in the template of own has arguments with a default or a star.*`solve`"),
        (ONE.replace("x)", "x=1, /)"), "", "default or a star"),
        (ONE.replace("x)", "*x)"), "", "default or a star"),
        (ONE.replace("x)", "**x)"), "", "default or a star"),
        (ONE.replace("x)", "x, *, y)"), "", "default or a star"),
    ],
)
def test_mistakes_are_named(template: str, function: str, message: str) -> None:
    """The user would learn of a wrong template from thousands of failed candidates."""
    with pytest.raises(UserError, match=message) as caught:
        task_of(template, function)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("description", ["", " \n "])
def test_a_description_is_needed(description: str) -> None:
    """The model would not be told what the function is for."""
    with pytest.raises(UserError, match="own has no description"):
        task_of(description=description)


def test_one_idea_is_no_list_of_letters() -> None:
    """The mutation operator would suggest to try "T"."""
    with pytest.raises(UserError, match="`ideas` of own is one text"):
        task_of(ideas="Try this.")


def bin_packing() -> Task:
    """Of the example in the documentation."""
    names: dict[str, type] = {}
    exec(BIN_PACKING, names)
    task: Task = names["OnlineBinPacking"]().task
    return task


@pytest.mark.parametrize("prefill", PREFILLS)
@pytest.mark.parametrize("task", [task_of(), bin_packing()], ids=["own", "bin packing"])
def test_prompts_can_be_built(task: Task, prefill: str) -> None:
    """A run on a user's problem would end at its first proposal, or small models would close their reply at once."""
    [seed] = task.seeds
    population = [Candidate(number, "seed", seed.idea, seed.code, float(number)) for number in range(3)]
    for name, operator in search_operators(task, prefill=prefill).items():
        [proposal] = operator.ask(1, Situation(population, 0, np.random.default_rng(0)))
        assert proposal.operator == name
        assert task.description in proposal.prompt
        assert f"def {task.function}(" in proposal.prompt
        assert (proposal.prefill == "") == (prefill == "none")
        assert proposal.prefill == proposal.prefill.rstrip()
        assert proposal.prefill.startswith("```python\n" if prefill != "none" else "")


def test_what_the_model_is_shown_is_python() -> None:
    """The model would be shown a program that is none, and answer in kind."""
    tree = ast.parse(prompts.stub(task_of()))
    [function] = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert ast.get_docstring(function) == task_of().docstring
