"""One short probe of a real model through the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from eoh_esopt.cli.main import main

pytestmark = pytest.mark.model


def test_a_real_model_is_measured_once_and_read_again(
    small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the probe works with scripted models only, or writes everything anew for another question."""
    out = tmp_path / "probe.json"
    options = ["--scope", "norms", "--max-new-tokens", "32", "--sigmas", "0.05", "--pairs", "2", "--probe-samples", "1"]
    command = ["eoh-esopt", "probe", "tsp_construct", "--model", str(small_model), *options, "--workers", "2"]

    def call(budget: int) -> tuple[dict[str, object], str]:
        planned = ["--budget", str(budget), "--directions", "4", "--out", str(out), "-f", "json"]
        monkeypatch.setattr(sys, "argv", [*command, *planned])
        with pytest.raises(SystemExit) as ended:
            main()
        answer, news = capsys.readouterr()
        assert not ended.value.code
        return json.loads(answer), news

    first, news = call(60)
    assert "Loading" in news
    kept = out.read_text()
    cells = json.loads(kept)["cells"]
    assert [(one["operator"], one["sigma"]) for one in cells] == [("m1", 0.0), ("m2", 0.0), ("m1", 0.05), ("m2", 0.05)]
    again, silence = call(600)
    assert silence == ""
    assert out.read_text() == kept
    assert again["levels"] == first["levels"]
    assert again["as_planned"] != first["as_planned"]
