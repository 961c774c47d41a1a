"""Document questions from end to end: real pages, real text recognition in the sandbox, an agent by script."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import docvqa_agent
import pytest

from eoh_esopt.engine.events import read_events
from eoh_esopt.models.protocol import Request, Sampling, Turn
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.adapter import AgentTask, success_threshold, why
from train_adapters.agent_evaluation import played
from train_adapters.config import TrainConfig
from train_adapters.docvqa import make_adapter
from train_adapters.docvqa.adapter import PAGE, prediction
from train_adapters.docvqa.documents import KINDS
from train_adapters.docvqa.generator import Recipe, page_file
from train_adapters.listener import TrainListener
from train_adapters.presets import config_of, load_preset
from train_adapters.react import ReactAdapter, ReactEnding, Transcript
from train_adapters.run import work
from train_adapters.tasks import prepared
from train_adapters.tools import Mount, make_sandbox

SAMPLE = [Recipe(20260627, "val", number, kind) for number, kind in enumerate(KINDS)]


def read_page(adapter: ReactAdapter, command: str) -> str:
    """What a command shows in the sandbox of an episode of the first training task."""
    task = adapter.tasks("train")[0]

    async def call() -> str:
        box = adapter._parts.sandbox.open(adapter._parts.brief(task).mounts)
        try:
            return (await box.run(command)).text
        finally:
            await box.close()

    return asyncio.run(call())


def transcript(answer: str | None, last_reply: str = "") -> Transcript:
    return Transcript((), ReactEnding.ANSWERED, 1, answer, last_reply)


def test_a_perfect_agent_scores_everything_by_real_recognition() -> None:
    """Else the tasks cannot be solved, and a model is blamed for what no model could do."""
    adapter = make_adapter(train=5, val=0, test=0)
    found = played(ScriptedModel(docvqa_agent.perfect), adapter, adapter.tasks("train"), "train", 1, seed=1)
    assert found.rewards == {task.id: 1.0 for task in adapter.tasks("train")}
    assert {task.id.partition("-")[0] for task in adapter.tasks("train")} == set(KINDS)
    assert found.horizon == 2


def test_every_question_of_a_document_is_answered_from_its_text() -> None:
    """Else some kind of question has a wrong answer on file."""
    sandbox = make_sandbox()

    async def text(recipe: Recipe) -> str:
        box = sandbox.open((Mount(page_file(recipe), PAGE),))
        try:
            return (await box.run(docvqa_agent.COMMAND)).text
        finally:
            await box.close()

    async def texts() -> list[str]:
        return await asyncio.gather(*map(text, SAMPLE))

    for recipe, page in zip(SAMPLE, asyncio.run(texts()), strict=True):
        for question in recipe.document().questions:
            assert docvqa_agent.answer(question.text, page) in question.answers, (recipe, page)


def test_the_page_cannot_be_changed_and_the_answers_not_be_read(tmp_path: Path) -> None:
    """Else an agent learns to look up or to forge what it should read."""
    (tmp_path / "page.png").write_bytes(Recipe(1, "train", 0, "form").page())
    row = {"id": "q", "question": "Who?", "answers": ["Zacharias"], "image": "page.png"}
    (tmp_path / "train.jsonl").write_text(json.dumps(row) + "\n")
    adapter = make_adapter(data=str(tmp_path))
    assert "Registration Form" in read_page(adapter, f"tesseract {PAGE} stdout")
    shown = read_page(
        adapter, f"echo spoilt > {PAGE}; rm -f {PAGE}; cat {tmp_path}/train.jsonl; ls {tmp_path}; ls {PAGE}"
    )
    assert "Zacharias" not in shown
    assert "Read-only file system" in shown
    assert f"ls: cannot access '{tmp_path}'" in shown
    assert shown.startswith(f"{PAGE}\n")  # it is still there
    generator = "python3 -c 'import train_adapters.docvqa.documents as d; print(d.KINDS)'"
    assert "function" not in read_page(adapter, generator)


def test_the_page_can_be_cropped_with_pil() -> None:
    """Else what the prompt promises is not there."""
    adapter = make_adapter(kinds="form", train=1, val=0, test=0)
    command = f"python3 -c \"from PIL import Image; Image.open('{PAGE}').resize((500, 300)).save('small.png')\" && ls"
    assert "small.png" in read_page(adapter, command)


def test_the_model_sees_the_question_and_never_the_answer() -> None:
    """Else the task is to copy."""
    adapter = make_adapter(kinds="letter", train=1, val=0, test=0)
    [task] = adapter.tasks("train")
    turns = adapter.environment(task).observe()
    assert [turn.role for turn in turns] == ["system", "user"]
    assert task.payload["question"] in turns[1].text
    assert PAGE in turns[0].text
    told = " ".join(turn.text for turn in turns)
    assert not any(answer in told for answer in task.payload["answers"])


@pytest.mark.parametrize(
    ("answer", "reply", "last_line", "expected"),
    [
        ("Anna Adams", "", False, 1.0),
        (None, "It says\nAnna Adams\n\n", False, 0.0),
        (None, "It says\nAnna Adams\n\n", True, 1.0),
        ("Boris", "Anna Adams", True, 0.0),
        (None, "", True, 0.0),
    ],
)
def test_the_last_line_counts_only_where_that_is_wished(
    answer: str | None, reply: str, last_line: bool, expected: float
) -> None:
    """Else an agent that never answers is paid for what it happened to say last."""
    adapter = make_adapter(train=1, val=0, test=0, last_line=last_line)
    task = AgentTask("q", "train", {"answers": ["Anna Adams"]})
    reward = asyncio.run(adapter._parts.score(task, transcript(answer, reply)))
    assert reward == expected
    assert why(reward).startswith("right: 'Anna Adams'") == (expected == 1.0)
    assert prediction(transcript(answer, reply), last_line=False) == (answer or "")


def test_a_success_is_a_similarity_above_one_half() -> None:
    """Else the accuracy of Pass@k counts exact answers alone."""
    assert success_threshold(make_adapter(train=1, val=0, test=0)) == 0.5


def test_an_answer_without_reading_is_worth_nothing() -> None:
    """Else guessing is learnt, which needs no page."""
    adapter = make_adapter(kinds="form", train=1, val=0, test=0, turns=2)
    model = ScriptedModel(lambda request, number: f"Final answer: {adapter.tasks('train')[0].payload['answers'][0]}")
    assert played(model, adapter, adapter.tasks("train"), "train", 1, seed=1).mean == 0.0


def test_what_an_agent_says_wrong_gets_part_of_the_reward() -> None:
    """Else the reward has two values, and a small model has nothing to learn from."""
    adapter = make_adapter(kinds="form", train=1, val=0, test=0)
    [task] = adapter.tasks("train")
    right = task.payload["answers"][0]

    def nearly(request: Request, number: int) -> str:
        last = request.prompt[-1]
        assert isinstance(last, Turn)
        if last.text.startswith("Observation"):
            return f"Final answer: {right}x"
        return 'Action: {"name": "bash", "command": "ls"}'

    mean = played(ScriptedModel(nearly), adapter, adapter.tasks("train"), "train", 1, seed=1).mean
    assert mean is not None
    assert 0.5 < mean < 1.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kinds": "forms"}, "kinds has 'forms'"),
        ({"kinds": []}, "kinds is empty"),
        ({"train": -1}, "train must be a whole number"),
        ({"seed": "x"}, "seed must be a whole number"),
        ({"turns": 0}, "turns must be at least 1"),
        ({"total_tokens": 5}, "total_tokens must be at least"),
        ({"data": "nowhere"}, "There is no nowhere"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    """Else a mistake shows hours later, or never."""
    with pytest.raises(UserError, match=message):
        make_adapter(**settings)


def test_a_machine_without_recognition_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every episode is worth nothing, and the model is blamed for it."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="apt install tesseract-ocr"):
        make_adapter(train=1, val=0, test=0)


def test_the_trainer_finds_the_adapter_by_its_name() -> None:
    """Else `eoh-esopt train docvqa` does not exist."""
    adapter, tasks = prepared("docvqa", {"kinds": "form,table", "train": 3, "val": 1, "test": 2})
    assert adapter.name == "docvqa"
    assert {split: len(found) for split, found in tasks.items()} == {"train": 3, "val": 1, "test": 2}
    assert [task.payload["recipe"]["kind"] for task in tasks["train"]] == ["form", "table", "form"]


def test_the_preset_is_the_published_run() -> None:
    """Else a user repeats another experiment than the paper's."""
    config = config_of("docvqa", [load_preset("docvqa")])
    assert (config.generations, config.directions, config.batch, config.samples) == (40, 16, 16, 1)
    assert (config.sigma, config.sigma_final, config.alpha, config.seed) == (1e-3, 5e-4, 5e-4, 20260627)
    assert config.sampling == Sampling(1.0, 1.0, 40, presence_penalty=2.0)
    for name in ("docvqa", "docvqa-small"):
        _, tasks = prepared("docvqa", load_preset(name).adapter)
        assert load_preset(name).settings["batch"] <= len(tasks["train"])
    published = make_adapter(**load_preset("docvqa").adapter)
    [limits] = {published.limits(task) for task in published.tasks("train")}
    assert (limits.turns, limits.new_tokens) == (50, 512)
    assert len(published.tasks("train")) == 50
    assert len(published.tasks("test")) == 100


def test_a_training_learns_from_what_was_read(tmp_path: Path) -> None:
    """Else the trainer makes no update although some directions read the page and others do not."""

    def some_read(request: Request, number: int) -> str:
        reads = request.direction is not None and request.direction.seed % 2
        return docvqa_agent.perfect(request, number) if reads else "I cannot see it."

    adapter = make_adapter(kinds="form", train=2, val=0, test=0, turns=2)
    tasks = {"train": adapter.tasks("train"), "val": (), "test": ()}
    config = TrainConfig("docvqa", "scripted", generations=1, directions=4, batch=2, seed=1).resolved()
    summary = work(config, tmp_path, ScriptedModel(some_read), adapter, tasks, TrainListener(), lambda text: None)
    [generation] = [event for event in read_events(tmp_path) if event["event"] == "generation"]
    assert 0 < generation["reward"] < 1
    assert summary["ledger"]["updates"] == 1
