"""Mathematical tasks from end to end: a real model, a real shell in the sandbox, the real scorer, a real training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from training_cases import episodes_of

from train_adapters.listener import TrainListener
from train_adapters.presets import TrainPreset, config_of
from train_adapters.run import start
from train_adapters.trajectories import read_trajectories

pytestmark = pytest.mark.model

LINE = 'Action: {{"name": "bash", "command": "echo {0}"}} \\boxed{{{0}}}'
SETTINGS = {
    "scope": "norms",
    "generations": 1,
    "directions": 2,
    "batch": 3,
    "seed": 5,
    "evaluate_every": 0,
    "final_repeats": 1,
    "temperature": 0.2,
    "top_p": 1.0,
    "top_k": 40,
    "presence_penalty": 0.0,
    "trajectories": True,
}
"""The model is small: it is asked to repeat a line, which is cold enough to come out, and short."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of tasks that say what to write."""
    folder = tmp_path / "data"
    folder.mkdir()
    asked = ((f"Repeat this line:\n{LINE.format(number)}", number) for number in (12, 7, 345))
    rows = ({"id": str(number), "source": "tests", "question": text, "answer": str(number)} for text, number in asked)
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_real_model_runs_real_commands_and_is_judged(data: Path, small_model: Path, tmp_path: Path) -> None:
    """Else all parts work and the whole does not: the model never sees what its command has put out."""
    of_adapter = {"data": str(data), "val_share": 0, "turns": 2, "new_tokens": 48, "context_tokens": 2048}
    config = config_of("math", [TrainPreset({**SETTINGS, "model": str(small_model)}, of_adapter)])
    folder = tmp_path / "run"
    start(config, folder, listener=TrainListener(), notify=lambda text: None)
    episodes = episodes_of(folder, "train/0")
    assert len(episodes) == 6
    assert all(episode.ending.counts for episode in episodes), episodes
    kept = [one.trajectory for one in read_trajectories(folder)]
    told = {(one.task, turn.text) for one in kept for step in one.steps for turn in step.shown}
    assert any(text.startswith(f"Observation from bash:\n{task}") for task, text in told), told
    judged = [episode for episode in episodes if episode.why != "no command was run"]
    assert judged
    assert all(episode.reward == float(" is not " not in episode.why) for episode in judged)
