"""Settings of a training, its presets, and what a resume refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from training_cases import CountAdapter, settings, tasks_of, train

from eoh_esopt.engine.config import read_config
from eoh_esopt.engine.events import CONFIG, EVENTS, read_events
from eoh_esopt.engine.run import check_settings
from eoh_esopt.models.chat import ChatSettings
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.adapter import AgentTask
from train_adapters.config import TrainConfig
from train_adapters.listener import TrainListener
from train_adapters.presets import TrainPreset, config_of, load_preset, preset_names
from train_adapters.registry import make_adapter
from train_adapters.run import resume
from train_adapters.tasks import check_batch, check_tasks, digests, prepared

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "generations": ({"generations": 0}, "generations must be at least 1"),
    "batch": ({"batch": 0}, "batch must be at least 1"),
    "quorum": ({"quorum": 0.0}, r"quorum must lie in \(0, 1\], not 0"),
    "direction quorum": ({"direction_quorum": 1.5}, r"direction_quorum must lie in \(0, 1\]"),
    "quorum of no number": ({"quorum": float("nan")}, "quorum must lie in"),
    "one direction": ({"directions": 1}, "at least 2 directions"),
    "odd pairs": ({"directions": 3, "antithetic": True}, "give an even --directions"),
    "sigma": ({"sigma": -1.0}, "sigma must be a finite number"),
    "alpha": ({"alpha": float("inf")}, "alpha must be a finite number"),
    "scope": ({"scope": "heads"}, "Unknown scope 'heads'"),
    "schedule": ({"sigma_schedule": "stairs"}, "Unknown sigma_schedule 'stairs'"),
    "endpoint": ({"backend": "openai"}, "openai cannot be trained.*use --backend transformers, vllm or served"),
    "evaluate every": ({"evaluate_every": -1}, "evaluate_every must be at least 0"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any], message: str) -> None:
    """Else a training ends hours later in an error, or in nothing."""
    with pytest.raises(UserError, match=message):
        TrainConfig("sudoku", "m", **changes)


def test_defaults_are_the_published_ones() -> None:
    """Else a user who gives no setting repeats another experiment."""
    config = TrainConfig("sudoku", "m").resolved()
    assert (config.directions, config.generations, config.batch, config.samples) == (32, 100, 32, 1)
    assert (config.sigma, config.sigma_final, config.alpha) == (1e-3, 2.5e-4, 5e-4)
    assert config.sampling == replace(Sampling(0.7, 0.8, 20), presence_penalty=1.5)
    assert not config.thinking


def test_the_floor_of_sigma_is_never_zero_by_default() -> None:
    """Else training takes over the search's default, which falls to 0."""
    assert TrainConfig("a", "m", sigma=2e-3).resolved().sigma_final == 5e-4
    norms = TrainConfig("a", "m", scope="norms").resolved()
    assert (norms.sigma, norms.sigma_final, norms.alpha) == (0.06, 0.02, 0.03)
    assert TrainConfig("a", "m", sigma_final=0.0).resolved().sigma_final == 0.0, "unless it is asked for"


def test_settings_survive_their_file(tmp_path: Path) -> None:
    """Else a training cannot be resumed."""
    config = TrainConfig("a", "m", adapter_settings={"masks": 5}).resolved().for_replies_of(64)
    (tmp_path / CONFIG).write_text(config.to_json())
    assert read_config(tmp_path / CONFIG, TrainConfig) == config
    assert config.sampling.max_new_tokens == 64


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_used(name: str) -> None:
    """Else a shipped preset ends in an error."""
    layers = [load_preset("sudoku-15"), load_preset(name)]
    assert load_preset(name).about
    assert config_of("sudoku", layers).resolved().model == load_preset(name).settings.get("model", "Qwen3.5-4B")


def test_presets_say_what_was_published() -> None:
    """Else results are compared with those of other settings."""
    assert set(preset_names()) >= {
        *(f"sudoku-{masks}" for masks in (5, 10, 15)),
        *(f"vanilla-{directions}" for directions in (8, 16, 32)),
        "constant-sigma",
        "sigma-to-zero",
    }
    for masks in (5, 10, 15):
        config = config_of("sudoku", [load_preset(f"sudoku-{masks}")])
        assert config.adapter_settings == {"masks": masks}
        assert (config.directions, config.generations, config.batch) == (32, 100, 32)
        assert (config.sigma, config.sigma_final, config.alpha) == (1e-3, 2.5e-4, 5e-4)
        assert load_preset(f"sudoku-{masks}").settings["presence_penalty"] == 1.5
    vanilla = config_of("sudoku", [load_preset("sudoku-15"), load_preset("vanilla-8")])
    assert (vanilla.directions, vanilla.sigma, vanilla.sigma_schedule) == (8, 5e-4, "constant")
    zero = config_of("sudoku", [load_preset("sudoku-15"), load_preset("sigma-to-zero")])
    assert zero.resolved().sigma_final == 0.0


def test_what_is_given_goes_over_presets() -> None:
    """Else an option on the command line is ignored without a word."""
    given = TrainPreset({"directions": 4, "temperature": 1.0, "presence_penalty": 0.0, "thinking": True}, {"masks": 7})
    config = config_of("sudoku", [load_preset("sudoku-15"), given])
    assert (config.directions, config.adapter_settings["masks"], config.sampling.temperature) == (4, 7, 1.0)
    assert (config.sampling.top_k, config.sampling.presence_penalty) == (20, 0.0)
    assert config.thinking
    assert config.chat == ChatSettings(thinking=True)


def test_a_preset_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    """Else a typing error leaves a setting at its default."""
    (tmp_path / "mine.toml").write_text("direction = 4\n")
    with pytest.raises(UserError, match=r"mine\.toml: unknown key 'direction'. Did you mean 'directions'\?"):
        load_preset(str(tmp_path / "mine.toml"))


def test_a_model_must_be_named() -> None:
    """Else the error comes from a file that is called None."""
    with pytest.raises(UserError, match="No model is named"):
        config_of("sudoku", [load_preset("constant-sigma")])


def test_unknown_adapters_and_settings_are_refused(tmp_path: Path) -> None:
    """Else a typing error in --masks trains on another task."""
    with pytest.raises(UserError, match=r"Unknown adapter 'sudok'. Did you mean 'sudoku'\?"):
        make_adapter("sudok", {})
    with pytest.raises(UserError, match=r"There is no adapter at .*none\.py"):
        make_adapter(str(tmp_path / "none.py"), {})
    (tmp_path / "mine.py").write_text("def make_adapter(highest=9):\n    return None\n")
    with pytest.raises(UserError, match=r"no setting 'hihgest'. Did you mean 'highest'\?"):
        make_adapter(str(tmp_path / "mine.py"), {"hihgest": 3})
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(UserError, match="defines no function make_adapter"):
        make_adapter(str(tmp_path / "empty.py"), {})
    (tmp_path / "broken.py").write_text("import nowhere_to_be_found\n")
    with pytest.raises(UserError, match=r"broken\.py cannot be imported: ModuleNotFoundError"):
        make_adapter(str(tmp_path / "broken.py"), {})


def adapter_file(folder: Path, body: str) -> str:
    file = folder / "mine.py"
    file.write_text(
        "from training_cases import CountAdapter\nfrom train_adapters.adapter import AgentTask, Limits\n"
        f"class Mine(CountAdapter):\n    {body}\n\ndef make_adapter():\n    return Mine()\n"
    )
    return str(file)


def test_tasks_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    """Else the rewards of two tasks are taken for one another's."""
    name = adapter_file(tmp_path, "def tasks(self, split): return [AgentTask('a', split), AgentTask('a', split)]")
    with pytest.raises(UserError, match="two tasks 'a' in its split train"):
        prepared(name, {})


def test_tasks_without_turns_are_refused(tmp_path: Path) -> None:
    """Else every episode ends before it begins."""
    name = adapter_file(tmp_path, "def limits(self, task): return Limits(0, 8)")
    with pytest.raises(UserError, match="no turn or no token"):
        prepared(name, {})


def test_payloads_that_are_no_json_are_refused(tmp_path: Path) -> None:
    """Else the data cannot be told from other data, which is seen only when a training is resumed."""
    name = adapter_file(tmp_path, "def tasks(self, split): return [AgentTask('a', split, {'x': {1, 2}})]")
    with pytest.raises(UserError, match=r"task 'a'.*JSON"):
        prepared(name, {})


def test_rows_that_break_the_schema_are_the_adapters_to_name(tmp_path: Path) -> None:
    """Else its message with the line number does not reach the user."""
    name = adapter_file(
        tmp_path,
        "def tasks(self, split): raise self.error\n    from operators.errors import UserError\n"
        "    error = UserError('rows.jsonl, line 3: no puzzle.')",
    )
    with pytest.raises(UserError, match=r"rows\.jsonl, line 3"):
        prepared(name, {})


def test_a_batch_of_more_than_all_tasks_is_refused() -> None:
    """Else a task comes twice in a batch, with the same seeds."""
    adapter = CountAdapter()
    with pytest.raises(UserError, match="A batch of 6 is more than the 5 training tasks of count"):
        check_batch(6, adapter, tasks_of(adapter))
    check_batch(5, adapter, tasks_of(adapter))


def test_other_data_are_refused_by_the_splits_name(tmp_path: Path) -> None:
    """Else a training goes on with other tasks, and its curve is of neither data set."""
    train(tmp_path / "run")
    events = read_events(tmp_path / "run")
    check_tasks(events, tasks_of(CountAdapter()), tmp_path)
    others = tasks_of(CountAdapter({"train": 5, "val": 3, "test": 2}))
    with pytest.raises(UserError, match=r"dataset has changed.*split val had 2 tasks.*has 3 tasks"):
        check_tasks(events, others, tmp_path)
    changed = {**tasks_of(CountAdapter()), "test": [AgentTask("test-0", "test", {"target": 4})] * 2}
    with pytest.raises(UserError, match="split test"):
        check_tasks(events, changed, tmp_path)


def test_the_hash_of_data_does_not_depend_on_the_order_of_keys() -> None:
    """Else the same data are refused after a reading in another order."""
    one = {"train": [AgentTask("a", "train", {"x": 1, "y": 2})]}
    other = {"train": [AgentTask("a", "train", {"y": 2, "x": 1})]}
    assert digests(one) == digests(other)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", 2), ("directions", 6), ("alpha", 0.1), ("sigma", 0.5), ("batch", 3), ("model", "other")],
)
def test_settings_changed_in_the_folder_are_refused_by_name(tmp_path: Path, name: str, value: object) -> None:
    """Else a training goes on as another one, and its log and its history belong to neither."""
    folder = tmp_path / "run"
    train(folder)
    config = {**json.loads(settings().to_json()), name: value}
    (folder / CONFIG).write_text(json.dumps(config))
    with pytest.raises(UserError, match=rf"config\.json has {name} {value!r}, but the run began with"):
        resume(folder, listener=TrainListener(), notify=lambda text: None)


def test_another_model_is_refused(tmp_path: Path) -> None:
    """Else the history's updates are applied to weights they were not made for."""

    class Other(ScriptedModel):
        def checksum(self) -> str:
            return "1" * 64

    train(tmp_path / "run")
    with pytest.raises(UserError, match=r"began with weights .*Bring back the model"):
        train(tmp_path / "run", model=Other())


def test_a_search_is_not_resumed_as_a_training(tmp_path: Path) -> None:
    """Else the error is about a setting that no search has."""
    (tmp_path / "events.jsonl").write_text('{"event": "start", "config": {"problem": "tsp_construct"}}\n')
    with pytest.raises(UserError, match="holds a search, not a training"):
        resume(tmp_path, listener=TrainListener(), notify=lambda text: None)


def test_a_training_of_an_earlier_release_goes_on_without_a_penalty(tmp_path: Path) -> None:
    """Else it cannot be resumed, or its second half draws otherwise than its first."""
    folder = tmp_path / "run"
    config = settings(sampling=Sampling(0.7, 0.8, 20))
    train(folder, config)
    (folder / CONFIG).write_text(_without_new_settings(config.to_json()))
    lines = (folder / EVENTS).read_text().splitlines(keepends=True)
    (folder / EVENTS).write_text("".join([_without_new_settings(lines[0]) + "\n", *lines[1:-1]]))
    read = read_config(folder / CONFIG, TrainConfig)
    assert read == config
    check_settings(read_events(folder), read, folder)
    with pytest.raises(UserError, match="has sampling"):
        check_settings(
            read_events(folder), replace(read, sampling=Sampling(0.7, 0.8, 20, presence_penalty=1.5)), folder
        )


def _without_new_settings(text: str) -> str:
    """JSON as it was before there were penalties and thinking."""
    fields = json.loads(text)
    config = fields.get("config", fields)
    del config["sampling"]["presence_penalty"], config["thinking"]
    return json.dumps(fields)
