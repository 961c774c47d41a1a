"""What the evaluator says about candidates: one status each, the same for any number of workers."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eoh_esopt.sandbox import arrays, frames, verdict
from eoh_esopt.sandbox.evaluator import MAX_SOURCE_BYTES, Evaluator, describe
from eoh_esopt.sandbox.limits import Limits
from eoh_esopt.sandbox.spec import ProblemSpec
from operators.errors import UserError
from operators.records import Outcome, Status
from problems.references import references
from problems.tsp_construct import TASK, TspConstruct

SPEC = ProblemSpec("problems.tsp_construct:TspConstruct", {"n_instances": 3, "size": 10})
LIMITS = Limits(wall_s=10, memory_bytes=512 * 1024**2)
HEAD = "def select_next_node(current_node, destination_node, unvisited_nodes, distance_matrix):\n"
NEAREST = HEAD + "    return unvisited_nodes[0]\n"
FARTHEST = NEAREST.replace("[0]", "[-1]")
DRAWING = {
    "stateless": NEAREST,
    "random": "import random\n" + HEAD + "    return random.choice(unvisited_nodes)\n",
    "numpy": "import numpy as np\n" + HEAD + "    return np.random.choice(unvisited_nodes)\n",
    "both": "import random\nimport numpy as np\nrandom.random()\nnp.random.rand(9)\n"
    + HEAD
    + "    return unvisited_nodes[int(random.random() * np.random.rand() * len(unvisited_nodes))]\n",
}


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(SPEC, workers=1, limits=LIMITS) as evaluator:
        yield evaluator


def run(evaluator: Evaluator, *codes: str) -> list[Outcome]:
    found = dict(evaluator.evaluate(codes))
    return [found[index] for index in range(len(codes))]


def test_objective_is_that_of_the_parent(evaluator: Evaluator) -> None:
    """The objective of a run would not be the length of the tours the heuristic builds."""
    [outcome] = run(evaluator, NEAREST)
    problem = TspConstruct(size=10, n_instances=3)
    assert outcome.status is Status.OK
    assert outcome.objective == pytest.approx(references(problem)[0].mean, abs=1e-12)
    assert len(outcome.per_instance) == 3
    assert outcome.calls == problem.n_calls == 24


CASES = {
    "syntax": ("def select_next_node(:\n", Status.SYNTAX, "line 1", 0),
    "null byte": (NEAREST + "\0", Status.SYNTAX, "null", 0),
    "surrogate": (NEAREST + "# \ud800", Status.SYNTAX, "surrogates", 0),
    "too long": (NEAREST + "#" * MAX_SOURCE_BYTES, Status.SYNTAX, "longer than", 0),
    "nested brackets": (NEAREST + "(" * 10_000, Status.SYNTAX, "", 0),
    "nested operators": (NEAREST + "x = " + "-" * 40_000 + "1", Status.SYNTAX, "nested", 0),
    "empty": ("", Status.WRONG_NAME, "select_next_node", 0),
    "other name": (NEAREST.replace("select", "choose"), Status.WRONG_NAME, "select_next_node", 0),
    "method": ("class A:\n    def select_next_node(self, a, b, c, d): return 1\n", Status.WRONG_NAME, "", 0),
    "class": ("class select_next_node:\n    pass\n", Status.WRONG_NAME, "", 0),
    "three arguments": ("def select_next_node(a, b, c): return 1\n", Status.WRONG_ARGUMENTS, "(a, b, c)", 0),
    "keyword only": ("def select_next_node(a, b, c, *, d): return 1\n", Status.WRONG_ARGUMENTS, "", 0),
    "raises": (HEAD + "    x = 1\n    return x + ''\n", Status.RAISED, "TypeError", 0),
    "raises on import": ("import no_such_module\n" + NEAREST, Status.RAISED, "ModuleNotFoundError", 0),
    "raises later": (HEAD + "    return unvisited_nodes[5]\n", Status.RAISED, "IndexError", 4),
    "repeats": (HEAD + "    return 1\n", Status.INVALID_SOLUTION, "step 2", 2),
    "out of range": (HEAD + "    return 99\n", Status.INVALID_SOLUTION, "99", 1),
    "negative": (HEAD + "    return -1\n", Status.INVALID_SOLUTION, "-1", 1),
    "huge": (HEAD + "    return 10**30\n", Status.INVALID_SOLUTION, "10000", 1),
    "nan": (HEAD + "    return float('nan')\n", Status.NOT_FINITE, "nan", 1),
    "none": (HEAD + "    pass\n", Status.WRONG_SHAPE, "None", 1),
    "bool": (HEAD + "    return True\n", Status.WRONG_SHAPE, "True", 1),
    "text": (HEAD + "    return 'x' * 10**7\n", Status.WRONG_SHAPE, "str", 1),
    "complex": (HEAD + "    return 1 + 2j\n", Status.WRONG_SHAPE, "complex", 1),
    "coroutine": ("async " + NEAREST, Status.WRONG_SHAPE, "coroutine", 1),
    "memory": (HEAD + "    return bytes(1 << 40)\n", Status.OUT_OF_MEMORY, "MemoryError", 0),
}


@pytest.mark.parametrize("name", CASES)
def test_failure_has_its_own_status(name: str, evaluator: Evaluator) -> None:
    """Candidates would be blamed for the wrong thing, and the graded reward would pay the wrong step."""
    code, status, fragment, calls = CASES[name]
    [outcome] = run(evaluator, code)
    assert outcome.status is status, outcome
    assert fragment in outcome.detail
    assert outcome.calls == calls
    assert (outcome.objective, outcome.per_instance) == (None, ())


def test_error_names_the_line_of_the_candidate(evaluator: Evaluator) -> None:
    """A user who reads why a heuristic failed would have to search for the place."""
    [outcome] = run(evaluator, "import numpy as np\n" + HEAD + "    x = np.zeros(3)\n    return np.linalg.inv(x)\n")
    assert outcome.detail.startswith("LinAlgError: ")
    assert outcome.detail.endswith("(line 4)")


def test_trace_goes_through_the_candidates_lines(evaluator: Evaluator) -> None:
    """A user would not learn which of the heuristic's own calls led to the error."""
    helpers = "def helper(depth):\n    return deeper(depth)\n\n\ndef deeper(x):\n    return 1 / x\n"
    code = HEAD + "    return helper(0)\n\n\n" + helpers
    [outcome] = run(evaluator, code)
    assert outcome.trace.split("\n") == [
        "line 2, in select_next_node: return helper(0)",
        "line 6, in helper: return deeper(depth)",
        "line 10, in deeper: return 1 / x",
        "ZeroDivisionError: division by zero",
    ]
    assert run(evaluator, NEAREST)[0].trace == ""


HOSTILE_ERRORS = {
    "many lines": "return '\\n' * 9 + '\\x1b[2J' + 'x' * 10**6",
    "no text": "raise ValueError",
    "wrong type": "return 3",
    "endless": "return str(self)",
    "surrogates": "return '\\udc80' * 300",
    "wide": "return chr(0x1F600) * 10**4",
}


@pytest.mark.parametrize("name", HOSTILE_ERRORS)
def test_trace_is_short_and_printable(name: str, evaluator: Evaluator) -> None:
    """The terminal of whoever reads a report would be steered by a candidate, or the log flooded."""
    error = f"class Evil(Exception):\n    def __str__(self):\n        {HOSTILE_ERRORS[name]}\n"
    deep = HEAD + f"    down(300)  # {'#' * 999}\n\ndef down(left):\n    if not left: raise Evil\n    down(left - 1)\n"
    [outcome] = run(evaluator, error + deep)
    assert outcome.status is Status.RAISED, outcome
    lines = outcome.trace.split("\n")
    assert 2 <= len(lines) <= 20
    assert all(line.isprintable() and len(line) <= 200 for line in [*lines, outcome.detail])
    assert outcome.detail.startswith("Evil: ")
    assert sum(line.startswith("line 9, in down: down(left - 1)") for line in lines) >= 3, lines


def test_timeout_tells_the_calls_that_returned() -> None:
    """A heuristic that is merely slow would look as bad as one that never returns."""
    code = HEAD + "    while len(unvisited_nodes) < 7: pass\n    return unvisited_nodes[0]\n"
    with Evaluator(SPEC, workers=1, limits=Limits(wall_s=0.4)) as evaluator:
        [outcome] = run(evaluator, code)
    assert (outcome.status, outcome.calls) == (Status.TIMEOUT, 3)
    assert "0.4 s" in outcome.detail


@pytest.mark.parametrize(
    "code",
    [
        NEAREST.replace("select_next_node", "select_next_node_v2"),
        FARTHEST + NEAREST.replace("select_next_node", "select_next_node_v2") + "del select_next_node\n",
        FARTHEST.replace("select_next_node", "select_next_node_v2") + NEAREST,
        NEAREST + FARTHEST.replace("select_next_node", "select_next_node_v3"),
        "select_next_node = lambda a, b, c, d: c[0]\n",
        "def select_next_node(a, b, c, d, e=1, *rest): return c[0]\n",
        "import numba\n@numba.njit\n" + NEAREST,
        "import scipy.spatial\n" + NEAREST,
    ],
    ids=["suffix", "suffix alone left", "name wins", "name wins over later", "lambda", "defaults", "numba", "scipy"],
)
def test_usable_function_is_found(code: str, evaluator: Evaluator) -> None:
    """Models that name a new version, or use numba or SciPy, would lose good heuristics."""
    expected, found = run(evaluator, NEAREST, code)
    assert found == expected, found


def test_outcomes_do_not_depend_on_workers() -> None:
    """A run with more processes would find other heuristics."""
    drawn = (
        "import random\nimport numpy as np\n"
        + HEAD
        + "    np.random.rand()\n    return random.choice(unvisited_nodes)\n"
    )
    hashed = HEAD + "    return min(unvisited_nodes, key=lambda node: hash(str(node)))\n"
    codes = [NEAREST, FARTHEST, drawn, hashed, "def", HEAD + "    return 1 / 0\n"] * 2
    with Evaluator(SPEC, workers=1, limits=LIMITS) as one, Evaluator(SPEC, workers=3, limits=LIMITS) as three:
        assert run(one, *codes) == run(three, *codes)


def test_seeds_solve_the_training_set() -> None:
    """The start population would be worse than what the documentation says, or empty."""
    with Evaluator(ProblemSpec.named("tsp_construct"), workers=2) as evaluator:
        found = run(evaluator, *(seed.code for seed in TASK.seeds))
    objectives = [outcome.objective for outcome in found]
    assert objectives == pytest.approx([7.0044, 6.6554, 6.4381], abs=5e-5)


def test_iteration_may_be_left_and_begun_again(evaluator: Evaluator) -> None:
    """A search that stops early would get stale outcomes from its next batch."""
    iterator = evaluator.evaluate([NEAREST, FARTHEST])
    next(iterator)
    with pytest.raises(RuntimeError, match="in use"):
        list(evaluator.evaluate([NEAREST]))
    iterator.close()
    assert run(evaluator, FARTHEST)[0].objective != run(evaluator, NEAREST)[0].objective
    assert list(evaluator.evaluate([])) == []


def each(evaluator: Evaluator, code: str) -> list[Outcome]:
    found = dict(evaluator.evaluate_each(code))
    return [found[index] for index in range(3)]


@pytest.mark.parametrize("name", DRAWING)
def test_each_instance_alone_has_the_same_value(name: str, evaluator: Evaluator) -> None:
    """The values of `eoh-esopt evaluate` would not be those that the search saw."""
    [whole] = run(evaluator, DRAWING[name])
    found = each(evaluator, DRAWING[name])
    assert tuple(one.objective for one in found) == whole.per_instance
    assert all(one.per_instance == (one.objective,) for one in found)
    assert sum(one.calls for one in found) == whole.calls
    assert len(set(whole.per_instance)) == 3


def test_instances_do_not_wait_for_each_other() -> None:
    """Values would depend on the number of workers, and a slow instance would hold up the others."""
    with Evaluator(SPEC, workers=3, limits=LIMITS) as three, Evaluator(SPEC, workers=1, limits=LIMITS) as one:
        for code in DRAWING.values():
            assert each(three, code) == each(one, code)


@pytest.mark.parametrize("failing", [0, 2])
def test_one_failing_instance_does_not_hide_the_others(failing: int) -> None:
    """A user would not learn on which instance a heuristic fails, nor what it is worth on the rest."""
    problem = TspConstruct(size=10, n_instances=3)
    here = f"    if distance_matrix[0][1] == {float(problem.instances[failing].distances[0][1])!r}:\n"
    with Evaluator(SPEC, workers=2, limits=Limits(wall_s=1.5)) as evaluator:
        expected = each(evaluator, NEAREST)
        for then, status in (("raise KeyError", Status.RAISED), ("while True: pass", Status.TIMEOUT)):
            found = each(evaluator, HEAD + here + f"        {then}\n" + NEAREST.removeprefix(HEAD))
            assert found[failing].status is status
            assert found[:failing] == expected[:failing]
            assert found[failing + 1 :] == expected[failing + 1 :]


@pytest.mark.parametrize("name", ["surrogate", "too long", "syntax"])
def test_a_refused_source_is_refused_on_each_instance(name: str, evaluator: Evaluator) -> None:
    """A report would have no rows, or end in an error, for a file that is no heuristic."""
    code, status, fragment, _ = CASES[name]
    for outcome in each(evaluator, code):
        assert outcome.status is status
        assert fragment in outcome.detail


def test_each_instance_may_be_left_and_begun_again(evaluator: Evaluator) -> None:
    """An interrupted evaluation would leave an evaluator that cannot be used, or hand out stale outcomes."""
    iterator = evaluator.evaluate_each(FARTHEST)
    next(iterator)
    with pytest.raises(RuntimeError, match="in use"):
        list(evaluator.evaluate_each(NEAREST))
    iterator.close()
    assert tuple(one.objective for one in each(evaluator, NEAREST)) == run(evaluator, NEAREST)[0].per_instance


def descendants() -> set[int]:
    """Processes that this one or its children started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted in /proc")
def test_leaving_early_ends_what_runs() -> None:
    """Candidates of an interrupted evaluation would go on and take the machine's cores."""
    problem, before = TspConstruct(size=10, n_instances=3), descendants()
    first = float(problem.instances[0].distances[0][1])
    sleeping = "import time\n" + HEAD + f"    if distance_matrix[0][1] != {first!r}: time.sleep(60)\n"
    with Evaluator(SPEC, workers=2, limits=Limits(wall_s=60)) as evaluator:
        iterator = evaluator.evaluate_each(sleeping + NEAREST.removeprefix(HEAD))
        assert next(iterator)[0] == 0
        busy = descendants() - before
        iterator.close()
        assert len(descendants() - before) <= len(busy) - 3, "guardian, zygote and candidate"
        assert tuple(one.objective for one in each(evaluator, NEAREST)) == run(evaluator, NEAREST)[0].per_instance
    assert descendants() <= before


def test_closed_evaluator_says_so() -> None:
    """Using an evaluator after its end would hang or start processes nobody ends."""
    with Evaluator(SPEC, workers=1, limits=LIMITS) as evaluator:
        pass
    evaluator.close()
    for iterator in (evaluator.evaluate([NEAREST]), evaluator.evaluate_each(NEAREST)):
        with pytest.raises(RuntimeError, match="closed"):
            list(iterator)


def test_wrong_arguments_are_named() -> None:
    """A user with a typing error would get a traceback, or a sandbox weaker than asked for."""
    with pytest.raises(UserError, match="at least 1, not 0"):
        Evaluator(SPEC, workers=0)
    with pytest.raises(UserError, match=r"'strict'.*best, required, none"):
        Evaluator(SPEC, workers=1, isolation="strict")
    with pytest.raises(UserError, match="'strict'"):
        describe("strict")
    with pytest.raises(UserError, match="no_such_problem"):
        Evaluator(ProblemSpec("no_such_problem:Tsp"), workers=1)
    with pytest.raises(UserError, match="Unknown problem"):
        Evaluator(ProblemSpec.named("tsp"), workers=1)
    for arguments in ({"wall_s": 0.0}, {"wall_s": float("nan")}, {"memory_bytes": 1}, {"output_bytes": 1}):
        with pytest.raises(UserError, match="candidate"):
            Limits(**arguments)


def report(body: bytes) -> Outcome:
    header = {"end": "answer", "status": 0, "calls": 10**30, "peak": 0}
    return verdict.judge(header, body, TspConstruct(size=5, n_instances=2), Limits())


@given(st.binary(max_size=200))
def test_any_answer_is_an_outcome(body: bytes) -> None:
    """Bytes written by a hostile candidate would end the search with a traceback."""
    assert report(body).status is Status.KILLED


TOURS = b"".join(arrays.pack([np.arange(5)] * 2))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner),
    max_leaves=9,
)


@given(
    st.sampled_from(["ok", "raised", "timeout", "infrastructure", "no_code", 1, None]) | json_values,
    st.sampled_from(["int64", "float64", "object", "O8"]) | json_values,
    st.sampled_from([[2, 5], [10], [2, 5, 1], [-2, -5], [True, 10]]) | json_values,
    json_values,
    st.binary(min_size=80, max_size=80) | st.sampled_from([TOURS, TOURS[:-1], TOURS.replace(b"\3", b"\4")]),
)
def test_any_header_is_an_outcome(status: object, dtype: object, shape: object, detail: object, data: bytes) -> None:
    """A well-formed frame with absurd contents would end the search, or be scored without a check."""
    outcome = report(frames.pack({"status": status, "dtype": dtype, "shape": shape, "detail": detail}, data))
    assert outcome.calls == 6
    assert outcome.detail.isprintable()
    assert outcome.valid == (status == "ok" and data == TOURS)
    assert outcome.status not in (Status.INFRASTRUCTURE, Status.NO_CODE, Status.TIMEOUT)


def test_headers_are_bounded() -> None:
    """Reading a header could use up the parent's time or stack."""
    deep = b"[" * 4000
    for data in (struct.pack("!IQ", 4000, 0) + deep, struct.pack("!IQ", 5000, 0) + b" " * 5000, b"\xff" * 12):
        with pytest.raises(frames.BadFrame):
            frames.untrusted(data)


def test_spec_survives_the_command_line() -> None:
    """A worker would load another problem than its parent."""
    assert ProblemSpec.from_json(SPEC.to_json()) == SPEC
