"""The page: complete, self-contained, honest about its runs, the same for the same runs, deaf to what models wrote."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_runs import Maker, mixed, reply

from eoh_esopt.engine.events import BEST
from eoh_esopt.experiments.find_runs import run_folders
from eoh_esopt.experiments.held_out import FILE
from eoh_esopt.models.protocol import Request
from eoh_esopt.reports.page.build import Report, build, page
from eoh_esopt.reports.page.data import read_runs
from operators.errors import UserError
from problems.tsp_construct import TASK

VOID = {"meta", "link", "br", "img", "hr", "input"}
HOSTILE = "<script>alert(1)</script><img src=http://a.b/c onerror=alert(2)>"


class Parsed(HTMLParser):
    """Elements, attributes and text of a page; fails on elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def report_of(*places: Path) -> Report:
    return build(read_runs(run_folders(places), lambda: None))


@pytest.fixture(scope="module")
def many(many_runs: Path) -> Report:
    return report_of(many_runs)


def check_loads_nothing(parsed: Parsed) -> None:
    assert not {"script", "iframe", "object", "embed", "base", "form"} & set(parsed.tags)
    for tag, name, value in parsed.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
            assert value.startswith(("#", "data:")), (tag, name, value)
        for target in re.findall(r"url\(([^)]*)\)", value):
            assert target.startswith("#"), (tag, name, value)


def test_the_page_loads_nothing(many: Report) -> None:
    """Else a page that was mailed is broken without a network, or tells a server who reads it."""
    text = page(many)
    check_loads_nothing(Parsed(text))
    style = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert "@import" not in style
    assert "url(" not in style


def test_what_pictures_refer_to_is_there_once(many: Report) -> None:
    """Else clips and hatches of one figure are taken from another, or are missing."""
    parsed = Parsed(page(many))
    names = [value for _, name, value in parsed.attributes if name == "id"]
    assert len(names) == len(set(names))
    for _, name, value in parsed.attributes:
        for target in re.findall(r"url\(#([^)]*)\)", value) + ([value[1:]] if name.endswith("href") else []):
            assert target in names or value.startswith("data:")


def test_all_parts_are_there(many: Report) -> None:
    """Else a reader misses what the report promises."""
    text = Parsed(page(many)).text
    for title in ("Results", "Best heuristic", "nearest seed heuristic", "Ledger", "How to reproduce", "Checksums"):
        assert title in text
    names = {figure.name.partition("-")[2] for figure in many.figures}
    for name in ("best-so-far", "validity", "learning", "outcomes"):
        assert any(one.endswith(name) for one in names)
    assert {section.task.name for section in many.sections} == {"kp_construct", "tsp_construct"}


def test_figures_say_how_many_runs_they_show(many: Report) -> None:
    """Else a curve of one run is taken for a mean."""
    tsp = many.sections[1]
    for figure in tsp.figures:
        assert "n\u00a0=\u00a03 (esopt-eoh)" in figure.caption
        if not figure.name.endswith("learning"):
            assert "n\u00a0=\u00a03 (eoh; 1 unfinished)" in figure.caption
    assert "band: their range" in tsp.figures[0].caption


def test_colours_follow_the_reader(many: Report) -> None:
    """Else figures are black on black where a reader has dark pages."""
    text = page(many)
    assert "prefers-color-scheme: dark" in text
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        assert not re.findall(r"(?:fill|stroke): #", drawing)


def test_the_same_runs_give_the_same_page(one_run: Path, many_runs: Path) -> None:
    """Else nobody can tell whether a report that was sent is that of these runs."""
    assert page(report_of(one_run, many_runs)) == page(report_of(one_run, many_runs))


def test_unfinished_runs_are_named_and_in_no_mean(many: Report) -> None:
    """Else a run that was stopped pulls the mean of its arm."""
    text = Parsed(page(many)).text
    assert "eoh: unfinished runs (seed 3)" in text
    assert "1 unfinished" in text
    arms = {row[0]: row for row in many.sections[1].results.rows}
    assert arms["eoh"][1] == 2


def test_a_run_that_is_unfinished_alone_has_no_mean(maker: Maker) -> None:
    """Else the best so far of a run that goes on is taken for its result."""
    made = report_of(maker.unfinished("half/one"))
    label, runs, best, mean, *_ = made.sections[0].results.rows[0]
    assert (label, runs, mean) == ("esopt-eoh (unfinished)", 1, None)
    assert best is not None
    assert "unfinished" in Parsed(page(made)).text


def test_unequal_budgets_are_labelled(maker: Maker) -> None:
    """Else an arm that was given twice the candidates looks better than one that was not."""
    folders = (maker.run("unequal/a"), maker.run("unequal/b", method="eoh", budget=30))
    text = Parsed(page(report_of(*folders))).text
    assert "Unequal budgets" in text


def test_a_seed_that_comes_twice_is_named(maker: Maker) -> None:
    """Else one run and its copy count as two repetitions."""
    folders = (maker.run("twice/a"), maker.run("twice/b"))
    assert "2 runs have seed 1" in Parsed(page(report_of(*folders))).text


def test_a_run_without_a_new_heuristic_says_so(barren_run: Path) -> None:
    """Else a seed heuristic is taken for something that the search found."""
    text = Parsed(page(report_of(barren_run))).text
    assert "found nothing better than what it began with (valid new candidates: 0)" in text
    assert "it is one of the heuristics that the search began with" in text


def test_a_run_that_was_killed_at_once_has_a_page(maker: Maker) -> None:
    """Else a folder with one run that has only just begun stops the report on all the others."""
    text = Parsed(page(report_of(maker.unfinished("begun/one", batches=1)))).text
    assert "0 of 15" in text


def test_values_of_a_maximised_problem_are_as_people_read_them(many: Report) -> None:
    """Else a knapsack is worth less than nothing, and the worst run is called the best."""
    kp = many.sections[0]
    runs = {row[1]: row[4] for row in kp.details[0].rows}
    assert min(runs.values()) > 0
    _, _, best, mean, *_ = kp.results.rows[0]
    assert best == max(runs.values())
    assert best >= mean > 0
    curves = next(table for table in kp.details if table.name.endswith("best-so-far"))
    means = [row[3] for row in curves.rows]
    assert means == sorted(means)


def test_what_a_model_wrote_is_text(maker: Maker) -> None:
    """Else a reply with a script in it runs in the browser of whoever opens the report."""

    def write(request: Request, number: int) -> str:
        body = (
            f"    '''{HOSTILE}'''\n    near = distance_matrix[current_node][unvisited_nodes]\n"
            "    far = distance_matrix[unvisited_nodes][:, unvisited_nodes].mean(axis=1)\n"
            f"    return unvisited_nodes[np.argmin(near - {number % 50 / 50} * far)]  # {HOSTILE}\n"
        )
        return reply(TASK, HOSTILE, body)

    made = report_of(maker.run("hostile/one", write=write))
    assert made.sections[0].best is not None
    parsed = Parsed(page(made))
    check_loads_nothing(parsed)
    assert "img" not in parsed.tags
    folder = made.runs[0].folder
    (folder / BEST).write_text((folder / BEST).read_text() + f"# {HOSTILE} \u202e\x00\n")
    parsed = Parsed(page(report_of(folder)))
    check_loads_nothing(parsed)
    assert HOSTILE in parsed.text
    assert "\u202e" not in parsed.text


def test_settings_that_tell_arms_apart_are_shown(maker: Maker) -> None:
    """Else the control with shuffled rewards is taken for the method."""
    folders = (maker.run("arms/a"), maker.run("arms/b", shuffle_rewards=True), maker.run("arms/c", alpha=0.5))
    made = report_of(*folders)
    labels = [arm.label for arm in made.sections[0].task.arms]
    assert len(set(labels)) == 3
    assert any("shuffled" in label for label in labels)
    assert any("alpha 0.5" in label for label in labels)


def test_arms_are_compared(many: Report) -> None:
    """Else a reader takes two means that differ for a difference."""
    assert many.comparison is not None
    differences, tests = many.comparison.tables
    assert {row[1:3] for row in differences.rows} == {("esopt-eoh", "eoh")}
    assert "Mann-Whitney" in {row[2] for row in tests.rows}
    assert "Comparison of the arms" in Parsed(page(many)).text


def test_why_arms_are_not_compared_is_said(maker: Maker) -> None:
    """Else the part is missing without a reason, or the report stops where only the comparison cannot be made."""
    made = report_of(maker.run("refused/a"), maker.run("refused/b", method="eoh", budget=30))
    assert made.comparison is not None
    assert not made.comparison.tables
    assert "The runs are not compared: " in Parsed(page(made)).text


def test_one_arm_is_compared_with_nothing(one_run: Path) -> None:
    """Else a report on one run has an empty part."""
    made = report_of(one_run)
    assert made.comparison is None
    assert "Comparison" not in Parsed(page(made)).text


def test_tasks_on_other_instances_are_apart(maker: Maker, one_run: Path) -> None:
    """Else tours through other towns are averaged."""
    other = maker.run("instances/one")
    log = other / "events.jsonl"
    log.write_text(log.read_text().replace('"optimum": 2.5', '"optimum": 2.75'))
    made = report_of(one_run, other)
    assert [section.task.name for section in made.sections] == ["tsp_construct (1)", "tsp_construct (2)"]
    assert len({section.task.key for section in made.sections}) == 2


def test_held_out_values_are_shown(maker: Maker) -> None:
    """Else only the instances that a heuristic was chosen by are reported."""
    folder = maker.run("held/one")
    digest = hashlib.sha256((folder / BEST).read_bytes()).hexdigest()
    entries = [
        {"heuristic": digest, "set": "test50", "values": [1.0, 2.0]},
        {"heuristic": "of another", "set": "test100", "values": [9.0]},
    ]
    (folder / FILE).write_text(json.dumps(entries))
    best = report_of(folder).sections[0].best
    assert best is not None
    assert best.held_out is not None
    assert best.held_out.rows == (("test50", 2, 1.5, 0.5),)
    (folder / FILE).write_text("{")
    assert "cannot be read" in Parsed(page(report_of(folder))).text


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    """Else a mistyped name gives an empty report."""
    with pytest.raises(UserError, match="holds no run"):
        run_folders([tmp_path])
    with pytest.raises(UserError, match="is not there"):
        run_folders([tmp_path / "missing"])


def test_a_run_that_is_named_twice_counts_once(one_run: Path) -> None:
    """Else `report runs runs/a` counts a run twice."""
    assert len(run_folders([one_run, one_run.parent])) == 1


def test_a_problem_that_is_gone_is_said_to_be(maker: Maker) -> None:
    """Else runs of a problem of one's own cannot be reported on where its file is not."""
    folder = maker.run("moved/one")
    log = folder / "events.jsonl"
    log.write_text(log.read_text().replace('"problem": "tsp_construct"', '"problem": "/gone/towns.py"'))
    made = report_of(folder)
    assert made.sections[0].task.name == "towns"
    assert "There is no file /gone/towns.py" in Parsed(page(made)).text


def test_a_best_heuristic_that_is_gone_is_said_to_be(maker: Maker) -> None:
    """Else one lost file stops the report on a hundred runs."""
    folder = maker.run("lost/one", write=mixed("tsp_construct"))
    (folder / BEST).unlink()
    assert "Cannot read" in Parsed(page(report_of(folder))).text
