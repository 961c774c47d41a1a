"""The mathematical adapter: episodes in the real sandbox, judged by the real scorer; a script writes the replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.protocol import Request, Turn
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.adapter import Ending, Episode
from train_adapters.math_tasks.adapter import answer_of, make_adapter
from train_adapters.presets import load_preset
from train_adapters.react import ReactAdapter, ReactEnding, Transcript
from train_adapters.registry import make_adapter as by_name
from train_adapters.rollout import Job, Table, play

QUESTION = "What is 2^10?"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one task."""
    folder = tmp_path_factory.mktemp("data")
    row = {"id": "a-1", "source": "tests", "question": QUESTION, "answer": "1024"}
    (folder / "train.jsonl").write_text(json.dumps(row) + "\n")
    return folder


@pytest.fixture(scope="module")
def adapter(data: Path) -> ReactAdapter:
    return make_adapter(str(data), val_share=0, turns=4, new_tokens=64, context_tokens=4096)


def bash(command: str) -> str:
    return "Action: " + json.dumps({"name": "bash", "command": command})


def episode(adapter: ReactAdapter, replies: Sequence[str]) -> tuple[Episode, str]:
    """The episode in which the model says these, one after the other, and what it was shown last."""

    def said(request: Request, number: int) -> str:
        assert isinstance(request.prompt, tuple)
        return replies[sum(turn.role == "assistant" for turn in request.prompt)]

    model = ScriptedModel(said)
    table = Table(adapter, model, 1, Timekeeper(model, None, Timings()))
    [found] = play(table, [Job(adapter.tasks("train")[0], 0, None)], "test")
    last = model.requests[-1].prompt[-1]
    assert isinstance(last, Turn)
    return found, last.text


def test_a_right_answer_after_a_command_is_worth_1_and_says_why(adapter: ReactAdapter) -> None:
    """Else nothing can be learnt, or nobody can see what the reward rests on."""
    found, _ = episode(adapter, [bash("python3 -c 'print(2**10)'"), r"Final answer: \boxed{1{,}024}"])
    assert (found.ending, found.reward) == (Ending.SCORED, 1.0)
    assert found.why == "math-verify: '1,024' is '1024'"
    assert found.turns == 2


def test_a_wrong_answer_is_worth_0_and_says_why(adapter: ReactAdapter) -> None:
    """Else a wrong answer cannot be told from a missing one in the log."""
    found, _ = episode(adapter, [bash("echo 1"), r"Final answer: \boxed{-1024}"])
    assert (found.ending, found.reward) == (Ending.SCORED, 0.0)
    assert found.why == "math-verify: '-1024' is not '1024'"


def test_an_answer_without_a_command_is_worth_nothing(adapter: ReactAdapter) -> None:
    """Else the agent learns to guess instead of using its tool."""
    found, _ = episode(adapter, [r"Final answer: \boxed{1024}"] * 4)
    assert (found.ending, found.reward, found.why) == (Ending.AGENT_FAILED, 0.0, "no command was run")
    assert found.reason.startswith("turns spent")


def test_the_answers_cannot_be_read(adapter: ReactAdapter, data: Path) -> None:
    """Else the agent learns where the data lie instead of mathematics."""
    assert (data / "train.jsonl").exists()
    _, shown = episode(adapter, [bash(f"cat {data}/train.jsonl; find / -name train.jsonl"), "Final answer: 0"])
    assert "No such file" in shown
    assert "1024" not in shown


def test_what_is_boxed_last_counts_where_the_turns_are_spent(adapter: ReactAdapter) -> None:
    """Else an answer in another form than asked for is lost, which the published runs counted."""
    replies = [bash("echo 1"), "Hm.", "Hm.", r"So it must be \boxed{1024}, I think"]
    found, _ = episode(adapter, replies)
    assert (found.ending, found.reward) == (Ending.AGENT_FAILED, 1.0)


@pytest.mark.parametrize(
    ("answer", "last", "expected"),
    [
        ("5", "Final answer: 5", "5"),
        (r"the sum is \boxed{7}", "", "7"),
        ("", r"\boxed{8}", "8"),
        (None, r"first \boxed{8}, then \boxed{9}", "9"),
        ("5", r"\boxed{8} Final answer: 5", "5"),
        (None, "no idea", ""),
    ],
)
def test_the_answer_is_the_final_ones_or_the_last_box(answer: str | None, last: str, expected: str) -> None:
    """Else another number than the answer is judged."""
    assert answer_of(Transcript((), ReactEnding.ANSWERED, 1, answer, last)) == expected


def test_the_model_is_told_the_problem_the_form_and_the_tool(adapter: ReactAdapter) -> None:
    """Else it cannot know what to write."""
    task = adapter.tasks("train")[0]
    system, user = adapter.prompt(task, adapter.environment(task).observe())
    assert (system.role, user.role) == ("system", "user")
    assert QUESTION in user.text
    for part in ("bash", "python3", r"Final answer: \boxed{<your answer>}"):
        assert part in system.text
    assert task.payload["answer"] not in f"{system.text}{user.text}"


def test_without_data_tasks_are_drawn() -> None:
    """Else nothing can be tried before a data set has been found."""
    adapter = by_name("math", {"train": 6, "val": 2, "test": 3, "kinds": "sum,equation", "level": [1, 2]})
    assert [len(adapter.tasks(split)) for split in ("train", "val", "test", "other")] == [6, 2, 3, 0]
    assert len({task.payload["question"] for split in ("train", "val", "test") for task in adapter.tasks(split)}) == 11
    assert all(task.minimum_horizon == 2 for task in adapter.tasks("train"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": -1}, "train must be a whole number"),
        ({"val_share": 1}, r"val_share must lie in \[0, 1\)"),
        ({"kinds": "sums"}, "kinds must be of"),
        ({"data": "/nowhere"}, "neither train.jsonl nor test.jsonl"),
        ({"turns": 0}, "turns must be at least 1"),
        ({"trian": 3}, "no setting 'trian'. Did you mean 'train'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(settings: dict[str, object], message: str) -> None:
    """Else a typing error costs a night of training on other tasks."""
    with pytest.raises(UserError, match=message):
        by_name("math", settings)


def test_the_first_rows_are_taken(tmp_path: Path) -> None:
    """Else a small try takes as long as the whole data set."""
    rows = [{"id": f"a-{i}", "source": "s", "question": f"{i}?", "answer": str(i)} for i in range(8)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    adapter = by_name("math", {"data": str(tmp_path), "train": 3, "val_share": 0})
    assert [task.id for task in adapter.tasks("train")] == ["a-0", "a-1", "a-2"]


def test_the_preset_has_the_published_settings() -> None:
    """Else what is compared with the paper is another training."""
    preset = load_preset("math")
    published = {"generations": 25, "directions": 16, "batch": 16, "sigma": 1e-3, "sigma_final": 5e-4, "alpha": 5e-4}
    published |= {"seed": 20260627, "temperature": 1.0, "top_p": 1.0, "top_k": 40, "presence_penalty": 2.0}
    assert {name: preset.settings[name] for name in published} == published
    assert preset.adapter == {"turns": 50, "new_tokens": 4096, "context_tokens": 131072}
