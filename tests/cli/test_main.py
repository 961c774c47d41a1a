"""The command line as a whole: help, versions, exit codes, and what an interrupt says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from eoh_esopt.models.catalogue import CATALOGUE
from eoh_esopt.models.fetch import ModelInfo
from operators.errors import UserError

Call = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("command", [[], ["run"], ["replay"], ["doctor"], ["model"], ["model", "get"]], ids=" ".join)
def test_help_shows_examples(call: Call, command: list[str]) -> None:
    """Else the user has to guess how the arguments go together."""
    code, out, err = call(*command, "--help")
    assert (code, err) == (0, "")
    examples = out.partition("Example")[2].splitlines()
    assert examples[1].strip().startswith("eoh-esopt " + " ".join(command))


def test_the_version_is_the_packages(call: Call) -> None:
    """Else a bug report names the wrong release."""
    code, out, _ = call("--version")
    assert code == 0
    assert version("eoh-esopt") in out


def test_without_a_command_the_help_is_shown(call: Call) -> None:
    """Else a first try ends in an error that does not say what there is."""
    code, out, err = call()
    assert code in (0, 2), "click 8.1 and later ones differ"
    assert "Commands:" in out + err


def test_failed_checks_end_in_exit_code_1(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else a script that guards a run with `model info --verify` or `doctor` goes on regardless."""
    damaged = ModelInfo(CATALOGUE[0], tmp_path, "converted", None, None, ("config.json is missing",))
    monkeypatch.setattr(sys.modules["eoh_esopt.cli.model"], "info", lambda *_, **__: damaged)
    assert call("model", "info", "any")[0] == 1
    doctor = sys.modules["eoh_esopt.cli.doctor"]
    monkeypatch.setattr(doctor, "_findings", lambda: [doctor.Finding("sandbox", False, "[/no] sandbox")])
    code, out, _ = call("doctor")
    assert code == 1
    assert "[/no] sandbox" in out


def test_the_doctor_finds_this_machine_fit(call: Call) -> None:
    """Else the first command of the manual fails on a machine that can run a search."""
    code, out, err = call("doctor")
    assert (code, err) == (0, "")
    for what in ("python and packages", "processor", "memory", "noise", "sandbox", "models in the cache"):
        assert what in out


def test_the_doctor_reports_a_sandbox_that_does_not_start(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the one command that is to explain what is wrong ends without its report."""

    def broken(*_: object, **__: object) -> None:
        raise UserError("The sandbox does not start: no memory.")

    monkeypatch.setattr("eoh_esopt.sandbox.evaluator.Evaluator", broken)
    code, out, _ = call("doctor")
    assert code == 1
    assert "does not start" in out
    assert "noise" in out


def test_an_interrupt_says_how_to_go_on(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else the user does not learn that nothing is lost, and a script takes an interrupted run for a finished one."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("eoh_esopt.engine.run.resume", interrupted)
    code, _, err = call("run", "--resume", tmp_path)
    assert code == 130
    assert "--resume" in err
    assert "Traceback" not in err


def test_a_real_interrupt_ends_in_exit_code_130(tmp_path: Path) -> None:
    """Else Ctrl-C ends in a traceback of whatever was being done."""
    program = (
        "import signal, sys, time, types\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell begin with it ignored\n"
        "def wait(*_, **__):\n    print('begun', flush=True)\n    time.sleep(60)\n"
        "sys.modules['eoh_esopt.engine.run'] = types.SimpleNamespace(resume=wait)\n"
        "from eoh_esopt.cli.main import main; main()"
    )
    begin = [sys.executable, "-c", program, "run", "--resume", str(tmp_path)]
    with subprocess.Popen(begin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert said.strip().splitlines()[-1].endswith("go on with --resume.")
    assert "Traceback" not in said
