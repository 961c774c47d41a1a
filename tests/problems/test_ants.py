"""What holds for all three problems that ants solve: sets, seeds, what a function may return, and repeatable scores."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from operators.errors import UserError
from problems import aco_bpp, aco_cvrp, aco_tsp, ants, registry
from problems.aco_bpp import AcoBpp
from problems.aco_cvrp import AcoCvrp
from problems.aco_tsp import AcoTsp
from problems.base import BadReturn, InvalidSolution, NotFinite, Problem, WrongShape, as_decisions
from problems.references import key_of

PUBLISHED = Path(__file__).parents[2] / "../shared/data/ahd"
MODULES = {AcoTsp: aco_tsp, AcoCvrp: aco_cvrp, AcoBpp: aco_bpp}
KINDS = pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.name)

Function = Callable[..., Any]


def first_argument(problem: Problem) -> Any:
    """What the function is called with first: distances or sizes, without the depot's peculiarities."""
    return problem.instances[0].sizes if isinstance(problem, AcoBpp) else problem.instances[0].distances


def favoured(problem: Problem) -> Any:
    """A plausible matrix for the first instance."""
    given = first_argument(problem)
    return np.tile(given, (len(given), 1)) if given.ndim == 1 else 1 / given


def value_of(problem: Problem, matrix: object) -> float:
    """The objective of the first instance when the candidate returns this."""
    [one, *_] = problem.instances
    return problem.score(one, as_decisions(problem.solve(one, lambda *arguments: matrix), problem.name))


@pytest.mark.parametrize(
    ("kind", "split", "size"),
    [(kind, *chosen) for kind, module in MODULES.items() for chosen in module.SETS.published],
)
def test_drawn_sets_are_the_published_ones(kind: type[Problem], split: str, size: int) -> None:
    """Results could not be compared with those in the literature."""
    if not PUBLISHED.exists():
        pytest.skip("the published instances are not here (../shared/data/ahd)")
    sets = MODULES[kind].SETS
    drawn = sets.load(split, size)
    assert np.array_equal(drawn, sets.load(split, size, len(drawn), str(PUBLISHED)))
    problem = kind(split=split, size=size, n_instances=2)
    assert [problem.key(one) for one in problem.instances] == [key_of(raw) for raw in drawn[:2]]


@KINDS
def test_every_instance_has_its_documented_seed(kind: type[Problem]) -> None:
    """Candidates that use random numbers, and the ants, would see others than the ones a report names."""
    problem = kind(split="val", size=20, n_instances=3)
    assert [problem.seed(index) for index in range(3)] == [21234, 21235, 21236]
    other = kind(size=20, n_instances=2, evaluation_seed=5)
    assert [other.seed(index) for index in range(2)] == [20005, 20006]


@pytest.mark.parametrize("seed", [-1, 1.0, True, 2**32, None])
def test_impossible_seeds_are_named(seed: Any) -> None:
    """A user would get numpy's traceback for a typing error, or the same seed for 1 and True."""
    with pytest.raises(UserError, match=r"evaluation_seed must be a whole number from 0 to \d+, not"):
        ants.seeds(seed, 50, 5)


@KINDS
def test_problems_are_found_by_name(kind: type[Problem]) -> None:
    """No command would know the problem."""
    problem = registry.get(kind.name, size=20, n_instances=1)
    assert type(problem) is kind
    assert problem.n_calls == 1
    assert problem.sets is MODULES[kind].SETS


@KINDS
def test_same_matrix_same_value_in_any_thread(kind: type[Problem]) -> None:
    """A resumed run would continue with other objectives, and reports would depend on the number of workers."""
    problem = kind(split="val", size=20, n_instances=2)
    jobs = [(one, problem.solve(one, lambda *given: favoured(problem))) for one in problem.instances] * 6
    alone = [problem.score(*job) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda job: problem.score(*job), jobs))
    again = kind(split="val", size=20, n_instances=2)
    assert alone == together == [again.score(*job) for job in jobs]
    assert len(set(alone)) <= 2


@KINDS
def test_the_evaluation_seed_decides_the_value(kind: type[Problem]) -> None:
    """A comparison over several seeds would repeat one and the same run."""
    sizes = {"size": 60, "n_instances": 1}
    values = {value_of(kind(**sizes, evaluation_seed=k), np.ones((60 + (kind is AcoCvrp),) * 2)) for k in range(10)}
    assert len(values) > 1


@KINDS
def test_global_generators_are_left_alone(kind: type[Problem]) -> None:
    """Scoring a candidate would change the random numbers of the program around it."""
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    problem = kind(size=20, n_instances=1)
    value_of(problem, favoured(problem))
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@KINDS
def test_mutated_arguments_do_not_leak(kind: type[Problem]) -> None:
    """A heuristic that writes into its arguments would change the instances for all that follow."""
    problem = kind(size=20, n_instances=1)
    matrix = favoured(problem)
    expected = value_of(problem, matrix)

    def vandal(*arguments: Any) -> object:
        for one in arguments:
            if isinstance(one, np.ndarray):
                one[:] = 0
        return matrix

    [instance] = problem.instances
    assert problem.score(instance, np.asarray(problem.solve(instance, vandal))) == expected


@KINDS
@pytest.mark.parametrize(
    ("make", "same"),
    [
        (lambda one: one.tolist(), lambda one: one),
        (lambda one: one.astype(np.float32), lambda one: one.astype(np.float32).astype(np.float64)),
        (lambda one: one > one.mean(), lambda one: (one > one.mean()) * 1.0),
        (lambda one: np.asfortranarray(one), lambda one: one),
        (lambda one: (one * 100).astype(np.int32), lambda one: (one * 100).astype(np.int32) * 1.0),
        (lambda one: np.where(one > one.mean(), one, -5.0), lambda one: np.where(one > one.mean(), one, 0.0)),
    ],
    ids=["lists", "float32", "bool", "column by column", "integers", "negative"],
)
def test_matrices_of_all_kinds_are_taken(kind: type[Problem], make: Function, same: Function) -> None:
    """Good heuristics would be lost for the type of their numbers."""
    problem = kind(size=20, n_instances=1)
    matrix = favoured(problem)
    assert value_of(problem, make(matrix)) == value_of(problem, same(matrix))


def _with(place: tuple[int, ...], value: object, dtype: Any = np.float64) -> Function:
    def make(matrix: Any) -> Any:
        changed = matrix.astype(dtype)
        changed[place] = value
        return changed

    return make


@KINDS
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (_with((0, 1), np.inf), NotFinite, "1 values"),
        (_with((0, 1), -np.inf), NotFinite, "1 values"),
        (_with((0, 0), np.nan), NotFinite, "1 values"),
        (lambda one: np.full_like(one, np.nan, dtype=np.float64), NotFinite, "values that are NaN"),
        (_with((0, 1), 1j, np.complex128), WrongShape, "complex"),
        (_with((0, 1), "x", object), WrongShape, "object"),
        (lambda one: one.astype(str), WrongShape, "real numbers"),
        (lambda one: one[:-1], WrongShape, r"shape \(\d+, \d+\)"),
        (lambda one: one[0], WrongShape, "shape"),
        (lambda one: one.ravel(), WrongShape, "shape"),
        (lambda one: one[None], WrongShape, "shape"),
        (lambda one: None, WrongShape, "None"),
        (lambda one: 1.0, WrongShape, "shape"),
        (lambda one: [[1.0], [1.0, 2.0]], WrongShape, "no array"),
        (lambda one: {"matrix": one}, WrongShape, "dict"),
        (lambda one: (one, one), WrongShape, "shape"),
    ],
)
def test_everything_else_is_refused(kind: type[Problem], make: Function, error: type[BadReturn], message: str) -> None:
    """A wrong return value would be scored, or end with an obscure error."""
    problem = kind(size=20, n_instances=1)
    with pytest.raises(error, match=message):
        value_of(problem, make(favoured(problem)))


@KINDS
@pytest.mark.parametrize(
    ("forge", "error"),
    [
        (_with((3, 4), np.nan), NotFinite),
        (_with((3, 4), np.inf), NotFinite),
        (lambda one: one[1:], WrongShape),
        (lambda one: np.array(0), WrongShape),
        (lambda one: np.zeros((0, 0)), WrongShape),
        (lambda one: one.astype(np.complex128), WrongShape),
    ],
)
def test_score_checks_forged_matrices(kind: type[Problem], forge: Function, error: type[BadReturn]) -> None:
    """Whoever forges decisions in the sandbox would be paid for them, or break the scorer."""
    problem = kind(size=20, n_instances=1)
    with pytest.raises(error):
        problem.score(problem.instances[0], forge(favoured(problem)))


@KINDS
def test_a_matrix_of_zeros(kind: type[Problem]) -> None:
    """A candidate that favours nothing would divide by zero instead of being told, or walking anywhere."""
    problem = kind(size=20, n_instances=1)
    nothing = np.zeros_like(favoured(problem), dtype=np.float64)
    if kind is AcoBpp:
        for matrix in (nothing, nothing - 1):
            with pytest.raises(InvalidSolution, match="no value above 0"):
                value_of(problem, matrix)
    else:
        floor = 1e-9 if kind is AcoTsp else 0.0
        assert value_of(problem, nothing) == value_of(problem, nothing + floor) == value_of(problem, nothing - 1)


@KINDS
def test_hints_run(kind: type[Problem]) -> None:
    """Every program that starts from a suggestion with a broken line of code would fail."""
    problem = kind(size=20, n_instances=1)
    task = problem.task
    assert 6 <= len(task.ideas) <= 8
    for idea in task.ideas:
        name, _, _ = idea.hint.partition(" = ")
        assert name.isidentifier()
        names: dict[str, Any] = {}
        exec(f'{task.imports}\n{task.signature}\n    """{idea.text}"""\n    {idea.hint}\n    return {name}\n', names)
        given: list[object] = []

        def note(*arguments: object, given: list[object] = given) -> object:
            given.extend(arguments)
            return favoured(problem)

        problem.solve(problem.instances[0], note)
        assert np.isfinite(names[task.function](*given)).all(), idea.hint


@KINDS
def test_seeds_of_the_search_are_written_as_the_model_is_asked_to(kind: type[Problem]) -> None:
    """Parents in a prompt would contradict the signature that the prompt asks for."""
    task = kind(size=20, n_instances=1).task
    assert len(task.seeds) == 3
    for seed in task.seeds:
        assert seed.code.startswith(f'{task.imports}\n\n\n{task.signature}\n    """{seed.idea}"""\n')


@pytest.mark.parametrize(
    ("kind", "objectives"),
    [
        (AcoTsp, [6.5196, 5.9566, 5.8069]),
        (AcoCvrp, [18.7243, 9.8896, 9.1874]),
        (AcoBpp, [203.0, 202.2, 201.8]),
    ],
)
def test_seeds_of_the_search_are_solutions_and_improve(kind: type[Problem], objectives: list[float]) -> None:
    """The start population would hold heuristics that fail, or an evaluation would no longer mean what it did."""
    problem, found = kind(), []
    for seed in problem.task.seeds:
        names: dict[str, Any] = {}
        exec(seed.code, names)
        function = names[problem.task.function]
        scores = [problem.score(one, np.asarray(problem.solve(one, function))) for one in problem.instances]
        found.append(float(np.mean(scores)))
    assert found == pytest.approx(objectives, abs=5e-5)


@KINDS
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_instances": 0}, "n_instances of aco.*0"),
        ({"n_instances": 65, "split": "val"}, "64 instances in val.*, not 65"),
        ({"size": 0}, "size of aco.*0"),
        ({"size": -3}, "size of aco.*-3"),
        ({"size": 2.5}, "size of aco.*2.5"),
        ({"split": "tests"}, "'tests'.*train, val, test"),
        ({"data": "/no/such/folder"}, "/no/such/folder does not exist"),
        ({"evaluation_seed": -1}, "evaluation_seed"),
    ],
)
def test_impossible_sets_are_named(kind: type[Problem], arguments: dict[str, Any], message: str) -> None:
    """A user would get a numpy traceback for a typing error."""
    with pytest.raises(UserError, match=message):
        kind(**arguments)
