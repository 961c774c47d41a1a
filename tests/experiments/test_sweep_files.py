"""Sweeps as files: how they expand, what those that are shipped expand to, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from eoh_esopt.experiments.presets import sweep_names
from eoh_esopt.experiments.select import select, settings_of
from eoh_esopt.experiments.sweep import Cell, Sweep, load_sweep
from operators.errors import UserError

SMALL = """
tasks = ["tsp_construct", "kp_construct"]
methods = ["eoh", "esopt-eoh"]
seeds = [3, 1]

[settings]
model = "m"
budget = 50
"""


def sweep_of(folder: Path, text: str = SMALL) -> Sweep:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_sweep(str(path))


def names(cells: list[Cell]) -> list[str]:
    return [cell.name for cell in cells]


def test_the_order_leaves_whole_comparisons(tmp_path: Path) -> None:
    """Else a sweep that is stopped half way holds one arm with all seeds and the other with none."""
    assert names(sweep_of(tmp_path).cells()) == [
        f"{task}/{arm}/seed-{seed}"
        for seed in (3, 1)
        for task in ("tsp_construct", "kp_construct")
        for arm in ("eoh", "esopt-eoh")
    ]


def test_what_is_nearer_to_a_cell_goes_over_the_rest(tmp_path: Path) -> None:
    """Else an arm's own setting is overruled by what holds for all."""
    text = """
        preset = ["ahd-1000"]
        methods = ["eoh"]
        seeds = [1]
        [settings]
        alpha = 0.1
        timeout = 5
        [tasks.tsp_construct]
        [tasks.aco_bpp]
        timeout = 60
        [budgets.100]
        [budgets.200]
        directions = 6
        alpha = 0.2
        [arms.noise]
        preset = "noise-only"
        alpha = 0.3
        """
    cells = {cell.name: cell.config for cell in sweep_of(tmp_path, text).cells()}
    assert len(cells) == 8
    assert {one.budget for one in cells.values()} == {100, 200}
    plain, noise = cells["tsp_construct/eoh-b100/seed-1"], cells["aco_bpp/noise-b200/seed-1"]
    assert (plain.method, plain.alpha, plain.timeout, plain.directions) == ("eoh", 0.1, 5.0, 10)
    assert (noise.method, noise.alpha, noise.timeout, noise.directions) == ("esopt-eoh", 0.3, 60.0, 6)
    assert (noise.ablation, noise.sigma, noise.seed) == ("noise-only", 1e-3, 1)


SHIPPED = {
    "smoke": (8, {"tsp_construct": 4, "kp_construct": 4}, {1: 4, 2: 4}),
    "cpu": (30, {"tsp_construct": 15, "kp_construct": 15}, dict.fromkeys(range(1, 6), 6)),
    "ablations": (65, {"tsp_construct": 65}, dict.fromkeys(range(1, 6), 13)),
    "ablations-paper": (65, {"tsp_construct": 65}, dict.fromkeys(range(2024, 2029), 13)),
    "paper": (
        144,
        {f"{one}_construct": 24 for one in ("tsp", "kp", "asp")} | {f"aco_{one}": 24 for one in ("tsp", "cvrp", "bpp")},
        {2024: 48, 2025: 48, 2026: 48},
    ),
}


@pytest.mark.parametrize("name", sweep_names())
def test_the_shipped_sweeps_are_paired(name: str) -> None:
    """Else a sweep of the manual ends in an error, or an arm lacks a seed that the others have."""
    sweep = load_sweep(name)
    found: dict[int, list[tuple[str, str, int]]] = {}
    for cell in sweep.cells():
        found.setdefault(cell.config.seed, []).append((cell.task, cell.arm, cell.config.budget))
    first, *others = found.values()
    assert len(first) > 1
    assert others, "one seed shows nothing"
    assert all(one == first for one in others)
    assert sweep.about


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_sweeps_expand(name: str) -> None:
    """Else a sweep leaves out a part of the comparison that the manual promises."""
    cells = load_sweep(name).cells()
    count, tasks, seeds = SHIPPED[name]
    assert (len(cells), Counter(cell.task for cell in cells)) == (count, tasks)
    assert Counter(cell.config.seed for cell in cells) == seeds


def test_the_papers_sweep_has_the_published_numbers() -> None:
    """Else `eoh-esopt sweep paper` is another experiment than the published one."""
    for cell in load_sweep("paper").cells():
        config = cell.config
        assert cell.folder.parts[1] == f"{config.method}-b{config.budget}"
        assert (config.population, config.samples_per_direction, config.alpha) == (10, 1, 5e-4)
        assert (config.sigma, config.sigma_final) == (1e-3, 0.0)
        per_generation = sum(count for _, count in config.plan)
        assert per_generation * config.generations == config.budget in (1000, 2000)
        expected = 20 if config.samples else {1000: 10, 2000: 30}[config.budget]
        assert config.learning_batch == expected


@pytest.mark.parametrize("name", ["ablations", "ablations-paper"])
def test_no_two_arms_of_the_ablations_are_the_same(name: str) -> None:
    """Else hours are spent on an arm that is already there under another name."""
    first = [cell.config.resolved(135_000_000) for cell in load_sweep(name).cells()][:13]
    assert len({repr(config) for config in first}) == 13


def test_arms_of_a_sweep_spend_the_same_budget() -> None:
    """Else a comparison of them is refused, or is one of budgets."""
    for name in set(sweep_names()) - {"paper"}:
        assert len({cell.config.budget for cell in load_sweep(name).cells()}) == 1


REFUSED = {
    "unknown key": (SMALL.replace("methods", "method"), r"mine.toml: unknown key 'method'. Did you mean 'methods'\?"),
    "unknown setting": (SMALL + "alfa = 1", r"mine.toml, \[settings\]: unknown key 'alfa'. Did you mean 'alpha'\?"),
    "unknown setting of an arm": (SMALL + "[arms.a]\nscop = 'full'", r"\[arms.a\]: unknown key 'scop'. .*'scope'"),
    "unknown task": (SMALL.replace("kp_", "kb_"), r"unknown task 'kb_construct'. Did you mean 'kp_construct'\?"),
    "unknown method": (SMALL.replace('"eoh"', '"eho"'), r"unknown method 'eho'. Did you mean 'eoh'\?"),
    "unknown preset": (SMALL + "[arms.a]\npreset = 'noise'", r"'noise'. Did you mean 'noise-only'\?"),
    "a preset that is no name": ("preset = 3\n" + SMALL, "preset must be a name or a list of names, not 3"),
    "methods with settings": (
        "tasks = ['tsp_construct']\nseeds = [1]\n[methods.eoh]\nalpha = 1",
        r"methods must be a list. .*\[arms.NAME\]",
    ),
    "no tasks": ("methods = ['eoh']\nseeds = [1]", "tasks is missing"),
    "no seeds": (SMALL.replace("[3, 1]", "[]"), "seeds is missing"),
    "no arms": ("tasks = ['tsp_construct']\nseeds = [1]", "neither methods nor"),
    "a seed twice": (SMALL.replace("[3, 1]", "[1, 1]"), "seeds must be a list of different whole numbers"),
    "a seed below 0": (SMALL.replace("[3, 1]", "[-1]"), "seeds must be"),
    "a task twice": (SMALL.replace("kp_construct", "tsp_construct"), "tasks names 'tsp_construct' twice"),
    "a budget that is no number": (SMALL + "[budgets.many]", "a budget must be a whole number, not 'many'"),
    "an arm that is a method": (SMALL + "[arms.eoh]", "the arm 'eoh' is a method that is listed already"),
    "an arm that is no folder": (SMALL + "[arms.'../up']", "cannot be a folder"),
    "an arm that is no table": (SMALL + "[arms]\na = 3", r"\[arms.a\] must be a table"),
    "no workers": ("workers = 0\n" + SMALL, "workers must be a whole number of at least 1, not 0"),
    "two kinds of replicas": ("replicas = [{device = 'cpu'}, {servers = 'a:1'}]\n" + SMALL, "of one kind"),
    "a replica of two kinds": ("replicas = [{device = 'cpu', servers = 'a:1'}]\n" + SMALL, "a replica is one of"),
    "an unknown replica": ("replicas = [{gpu = '0'}]\n" + SMALL, "unknown key 'gpu'"),
    "an unknown device": ("replicas = [{device = 'gpu0'}]\n" + SMALL, "unknown device 'gpu0'"),
    "replicas that are no list": ("replicas = 'cuda:0'\n" + SMALL, "replicas must be a list"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_files_that_are_not_understood_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """Else hours of work go into cells that nobody wanted."""
    with pytest.raises(UserError, match=message):
        sweep_of(tmp_path, text)


CELLS_REFUSED = {
    "one direction": (SMALL + "directions = 1", "cell tsp_construct/esopt-eoh/seed-3: An update needs at least 2"),
    "no model": (SMALL.replace('model = "m"', ""), "No model is named"),
    "two cells of one name": (
        SMALL.replace('"tsp_construct", "kp_construct"', '"a/mine.py", "b/mine.py"'),
        "two cells that are called mine/eoh/seed-3",
    ),
}


@pytest.mark.parametrize(("text", "message"), CELLS_REFUSED.values(), ids=CELLS_REFUSED)
def test_cells_that_cannot_be_run_are_named_before_anything_runs(tmp_path: Path, text: str, message: str) -> None:
    """Else the first arm runs for hours, and then it turns out that the second cannot."""
    with pytest.raises(UserError, match=message):
        sweep_of(tmp_path, text).cells()


def test_a_users_own_problem_is_found_from_the_sweeps_file(tmp_path: Path) -> None:
    """Else a sweep works in one working folder only, or two problems share a folder."""
    sweep = sweep_of(tmp_path, SMALL.replace('"kp_construct"', '"mine.py:Second"'))
    cell = sweep.cells()[2]
    assert (cell.task, cell.folder) == (f"{tmp_path}/mine.py:Second", Path("mine-Second/eoh/seed-3"))


def test_only_takes_cells_by_name_or_by_part(tmp_path: Path) -> None:
    """Else a part of a sweep cannot be run first, or a typing error runs nothing and says that all went well."""
    cells = sweep_of(tmp_path).cells()
    assert names(select(cells, ["tsp_construct/*/seed-1"])) == [
        "tsp_construct/eoh/seed-1",
        "tsp_construct/esopt-eoh/seed-1",
    ]
    assert len(select(cells, ["eoh"])) == 4
    assert len(select(cells, ["seed-1", "kp_construct/eoh/seed-3"])) == 5
    assert select(cells, []) == cells
    with pytest.raises(UserError, match=r"'tsp_constrct' is no cell of the sweep. Did you mean 'tsp_construct'\?"):
        select(cells, ["eoh", "tsp_constrct"])


def test_settings_for_all_cells(tmp_path: Path) -> None:
    """Else a sweep cannot be run with another model without writing a file."""
    sweep = sweep_of(tmp_path)
    cells = sweep.cells(settings_of(["model=org/other", "temperature=0.5", "antithetic=true", 'scope="norms"']))
    for cell in cells:
        config = cell.config
        assert (config.model, config.sampling.temperature, config.antithetic) == ("org/other", 0.5, True)
        assert config.scope == "norms"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("model", "has no value"),
        ("modell=x", r"--set: unknown key 'modell'. Did you mean 'model'\?"),
        ("budget=few", "--set: budget must be a whole number, not 'few'"),
        ("method=eoh", "method cannot be set for the whole sweep"),
        ("seed=4", "seed cannot be set for the whole sweep"),
        ("ablation=none", "ablation cannot be set for the whole sweep"),
    ],
)
def test_settings_that_cannot_hold_for_all_cells(tmp_path: Path, given: str, message: str) -> None:
    """Else two arms of a comparison become one without a word."""
    sweep = sweep_of(tmp_path, SMALL + "[arms.noise]\npreset = 'noise-only'")
    with pytest.raises(UserError, match=message):
        sweep.cells(settings_of([given]))
