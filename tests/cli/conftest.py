"""Calls the command line as its users do: arguments in; exit code and both outputs out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from eoh_esopt.cli.main import main


class Result(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Call = Callable[..., Result]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `eoh-esopt` with these arguments in this process, off line and without a terminal."""
    for name, value in (("HF_HUB_OFFLINE", "1"), ("CI", "true"), ("COLUMNS", "120")):
        monkeypatch.setenv(name, value)
    for name in ("TOKENIZERS_PARALLELISM", "HF_HUB_DISABLE_PROGRESS_BARS"):
        monkeypatch.setenv(name, "1")  # `main` sets what is not set: this way it is taken back afterwards
        monkeypatch.delenv(name)

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["eoh-esopt", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Result(int(ended.value.code or 0), out, err)

    return run
