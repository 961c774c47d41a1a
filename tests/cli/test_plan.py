"""`eoh-esopt plan`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eoh_esopt.planning import here

Call = Callable[..., tuple[int, str, str]]
LLAMA = ("plan", "--model", "meta-llama/Llama-3.1-8B-Instruct")


def test_help_shows_examples(call: Call) -> None:
    """Else the user has to guess how the arguments go together."""
    code, out, _ = call("plan", "--help")
    assert code == 0
    assert "eoh-esopt plan --model meta-llama/Llama-3.1-8B-Instruct --gpu H100" in out


def test_a_plan_says_what_to_take_and_why(call: Call) -> None:
    """Else the user is left with a table of bytes."""
    code, out, err = call(*LLAMA, "--gpu", "H100", "--budget", "1000", "--workers", "8")
    assert (code, err) == (0, "")
    for word in ("8.03e9 weights", "residual", "subtract", "one update", "m2", "whole run"):
        assert word in out
    assert "Take --backend vllm --restore exact: " in out
    assert "waits for reading the weights" in out
    assert "By data sheets, not measured. Assumed: prompts of 350 tokens, replies of 250" in out


def test_where_there_is_no_room_the_exit_code_says_so(call: Call) -> None:
    """Else a script rents a card that the run does not fit on."""
    code, out, _ = call("plan", "--model", "Llama-3.1-70B-Instruct", "--gpu", "H100")
    assert code == 1
    assert "There is no room" in out
    assert "With 8 such cards: --backend vllm --restore exact --tensor-parallel 8" in out


def test_a_card_too_small_for_masters_gets_the_exact_mode_that_needs_none(call: Call) -> None:
    """Else the user of a 24 GB card is told that an 8B model cannot learn there."""
    code, out, _ = call(*LLAMA, "--gpu", "rtx4090")
    assert code == 0
    assert "Take --backend transformers --restore host" in out
    assert "With 4 such cards: --backend vllm" in out


def test_several_cards_are_compared(call: Call) -> None:
    """Else choosing a card takes as many commands as there are cards."""
    code, out, _ = call(*LLAMA, "--gpu", "A100-80", "--gpu", "H200", "--gpu", "3090", "--count", "2")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert [line[:2] for line in lines if "x" in line] or "2 x 1" in out
    assert all(name in out for name in ("A100-80", "H200", "RTX 3090"))


def test_the_file_holds_the_figures(call: Call, tmp_path: Path) -> None:
    """Else programs have to read tables made for people."""
    file = tmp_path / "plan.json"
    code, _, _ = call(*LLAMA, "--gpu", "H100", "--restore", "exact", "--json", file)
    assert code == 0
    report = json.loads(file.read_text())
    [plan] = report["plans"]
    best = plan["ways"][plan["best"]]
    assert (best["backend"], best["restore"], best["replicas"]) == ("vllm", "exact", 1)
    assert best["memory"]["weights"] == 2 * 8_030_261_248
    assert set(best["batches"]) == {"i1", "e1", "e2", "m1", "m2"}
    assert best["total"]["write"] > best["total"]["perturb"] > 0
    assert report["workload"]["config"]["budget"] == 1000


WRONG = {
    "GPU": (("--gpu", "GTX"), "Unknown GPU 'GTX'"),
    "model": (("--gpu", "H100", "--model", "me/mine"), "Give the folder of a downloaded copy, or --parameters"),
    "count": (("--gpu", "H100", "--count", "0"), "count must be at least 1, not 0"),
    "count here": (("--gpu", "cpu", "--count", "2"), "--count is for GPUs of the table"),
    "method": (("--gpu", "H100", "--method", "magic"), "Unknown method 'magic'"),
    "budget": (("--gpu", "H100", "--budget", "3"), "budget of 3"),
    "restore": (("--gpu", "H100", "--restore", "magic"), "Unknown restore mode 'magic'"),
    "residual": (("--gpu", "H100", "--restore", "residual", "--dtype", "float32"), "for bfloat16 weights"),
    "dtype": (("--gpu", "H100", "--dtype", "int8"), "Unknown dtype 'int8'"),
    "scope": (("--gpu", "H100", "--scope", "some"), "Unknown scope 'some'"),
    "tokens": (("--gpu", "H100", "--tokens", "0"), "tokens must be"),
    "prompt": (("--gpu", "H100", "--prompt-tokens", "-1"), "prompt-tokens must be"),
    "evaluation": (("--gpu", "H100", "--evaluation", "nan"), "evaluation must be"),
    "workers": (("--gpu", "H100", "--workers", "0"), "workers must be"),
    "nothing": ((), "gpu"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_named_with_its_remedy(call: Call, name: str) -> None:
    """Else the user sees a traceback, or a plan of something else."""
    arguments, message = WRONG[name]
    code, out, err = call(*LLAMA, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_this_machine_is_timed(call: Call, small_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the plan for the machine at hand breaks off."""
    monkeypatch.setattr(here, "_BEYOND_CACHES", 1e6)
    short = ("--population", "2", "--directions", "2", "--budget", "8", "--prompt-tokens", "8", "--tokens", "4")
    code, out, err = call("plan", "--model", small_model, "--gpu", "cpu", "--max-new-tokens", "8", *short)
    assert code == 0
    assert "Timing a few layers of SmolLM2-135M-Instruct" in err
    assert "on this machine, " in out
    assert "Timed on this machine." in out
    assert "residual" in out
    assert "host " not in out.partition("batch")[0].partition("whole run")[2], (
        "one memory, so it would be `exact` again"
    )
