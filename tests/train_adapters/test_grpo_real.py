"""The comparison with a real model: both arms run, learn, and stand side by side; what is finished is not run again."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from grpo_cases import BASELINE, SETTINGS, import_trl, talk

from eoh_esopt.cli import main
from eoh_esopt.engine.events import EVENTS, read_events
from operators.errors import UserError
from train_adapters.grpo.comparison import compared

pytestmark = pytest.mark.model


@pytest.fixture(scope="module", autouse=True)
def _trl() -> None:
    import_trl()


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main.cli, ["compare-training", *map(str, arguments)])


@pytest.fixture(scope="module")
def finished(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a comparison that nobody interrupted."""
    folder = tmp_path_factory.mktemp("comparison")
    preset = folder / "tiny.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in SETTINGS.items()]
    lines += ["[grpo]", *(f"{name} = {value}" for name, value in BASELINE.items())]
    preset.write_text("\n".join(lines))
    result = call(talk(folder), "--preset", preset, "--model", small_model, "--out", folder / "out")
    assert result.exit_code == 0, result.output
    for text in ("model FLOPs", "val, after", "test, after", "x inference"):
        assert text in result.stdout
    return folder / "out"


def test_both_arms_learn_from_equal_rollouts(finished: Path) -> None:
    """Else what is called a comparison at one budget is none."""
    es, grpo = json.loads((finished / "comparison.json").read_text())["arms"]
    assert (es["name"], grpo["name"]) == ("ES", "GRPO")
    assert es["rollouts"] == grpo["rollouts"] == 12
    assert es["replies"] == grpo["replies"] == 24
    assert es["before"] == grpo["before"]
    logs = {name: read_events(finished / name) for name in ("es", "grpo")}
    assert logs["es"][0]["base_checksum"] == logs["grpo"][0]["base_checksum"]
    assert len({logs["es"][0]["base_checksum"], es["weights"], grpo["weights"]}) == 3


def test_flops_are_counted_by_the_papers_formula(finished: Path) -> None:
    """Else the column that the comparison is read by is wrong."""
    es, grpo = json.loads((finished / "comparison.json").read_text())["arms"]
    parameters = json.loads((finished / "grpo" / "summary.json").read_text())["parameters"]
    assert es["flops"] == 2 * parameters * es["tokens"]
    assert grpo["flops"] == 8 * parameters * grpo["tokens"]


def test_gradients_need_more_memory_than_directions(finished: Path) -> None:
    """Else memory is measured across the arms, or not at all."""
    es, grpo = json.loads((finished / "comparison.json").read_text())["arms"]
    weights = 4 * json.loads((finished / "grpo" / "summary.json").read_text())["parameters"]
    assert grpo["peak_bytes"] > es["peak_bytes"] + 2 * weights


def test_a_finished_comparison_is_read_in_every_form(finished: Path) -> None:
    """Else seeing the table again costs both arms anew."""
    before = {path: path.stat().st_mtime_ns for path in finished.glob("*/events.jsonl")}
    table, markdown, lines, data = (
        call("--resume", finished, "-f", form).stdout for form in ("table", "md", "csv", "json")
    )
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert "wall seconds" in table
    assert "| rollouts | 12 | 12 |" in markdown
    assert [row["rollouts"] for row in csv.DictReader(io.StringIO(lines))] == ["12", "12"]
    assert json.loads(data) == json.loads((finished / "comparison.json").read_text())


def test_arms_of_other_budgets_or_settings_are_not_put_side_by_side(finished: Path, tmp_path: Path) -> None:
    """Else a comparison can be made to say anything."""
    changed = tmp_path / "changed"
    shutil.copytree(finished, changed, ignore=shutil.ignore_patterns("model"))
    log = changed / "grpo" / EVENTS
    log.write_text(log.read_text().replace('"ledger": {"episodes": 12', '"ledger": {"episodes": 13'))
    with pytest.raises(UserError, match="spent different budgets: 12 and 13 rollouts"):
        compared(changed, force=False)
    assert compared(changed, force=True).unequal
    log.write_text(log.read_text().replace('"temperature": 1.0', '"temperature": 0.5', 1))
    with pytest.raises(UserError, match="do not belong together: their config differs"):
        compared(changed, force=True)
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(UserError, match=r"grpo is not finished. Go on with: eoh-esopt compare-training --resume"):
        compared(changed, force=True)
