"""WebArena's tasks on a made-up GitLab: the published split, the network trace, and webarena-verified on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_site import Answer, Asked, site
from web_agents import play_all
from web_cases import task_of

from operators.errors import UserError
from train_adapters.adapter import AgentTask
from train_adapters.webarena.adapter import WebAdapter, make_adapter

_TODOS = 44
"""WebArena's id of "Open my todos page"."""


def page(asked: Asked) -> Answer:
    """With two links."""
    return Answer(f"<title>{asked.path}</title><a href='/dashboard/todos'>To-dos</a> <a href='/other'>Other</a>")


@pytest.fixture(scope="module")
def gitlab() -> Iterator[str]:
    with site(page) as running:
        yield running.url


def sites_file(folder: Path, text: str) -> str:
    (folder / "sites.toml").write_text(text)
    return str(folder / "sites.toml")


_EVERY = "\n".join(
    [
        "[[sets]]",
        *(f'{site} = "http://127.0.0.1:1"' for site in ("shopping", "shopping_admin", "reddit", "gitlab", "map")),
    ]
)


def test_the_published_split_is_rebuilt(tmp_path: Path) -> None:
    """Figures can only be compared with the published ones on the same tasks in the same order."""
    every = _EVERY + '\nwikipedia = "http://127.0.0.1:1"\nhomepage = "http://127.0.0.1:1"\n'
    adapter = make_adapter("webarena-lite", sites=sites_file(tmp_path, every), mutating="last", browsers=1)
    counts = {split: len(adapter.tasks(split)) for split in ("train", "val", "test")}
    assert counts == {"train": 582, "val": 65, "test": 165}
    tested = {task.payload["webarena_id"] for task in adapter.tasks("test")}
    assert not tested & {task.payload["webarena_id"] for split in ("train", "val") for task in adapter.tasks(split)}
    changing = [task.payload["mutates"] for task in adapter.tasks("train")]
    assert changing == sorted(changing)
    assert any("nothing puts the sites back" in note for note in adapter.notes)
    adapter.close()


def test_tasks_that_change_a_site_need_a_way_back(tmp_path: Path) -> None:
    """Without one, what a direction is worth would depend on which other one had played before it."""
    adapter = make_adapter("webarena-lite", sites=sites_file(tmp_path, _EVERY), browsers=1)
    assert not any(task.payload["mutates"] for split in ("train", "val", "test") for task in adapter.tasks(split))
    assert len(adapter.notes) == 2
    adapter.close()
    with pytest.raises(UserError, match="a set of sites for each of the 2 browsers"):
        make_adapter("webarena-lite", sites=sites_file(tmp_path, _EVERY), mutating="reset", browsers=2)
    with pytest.raises(UserError, match="needs --sites"):
        make_adapter("webarena-lite")


def test_the_trace_is_judged(tmp_path: Path, gitlab: str) -> None:
    """The agent that goes to the page scores 1; one that only says so, or stays away, scores 0."""
    adapter = make_adapter(
        "webarena-lite", sites=sites_file(tmp_path, f'[[sets]]\ngitlab = "{gitlab}"\n'), view="axtree"
    )
    task = task_of(adapter, _TODOS)
    names = ("goes", "says so", "goes elsewhere", "says nothing")
    right, says, elsewhere, nothing = (replace(task, id=name) for name in names)
    exit_ = ("exit", "", "")
    scores = play_all(
        adapter,
        [
            (right, [("Click", "To-dos", ""), exit_]),
            (says, [exit_]),
            (elsewhere, [("Click", "Other", ""), exit_]),
            (nothing, [("Click", "To-dos", "")]),
        ],
    )
    adapter.close()
    assert scores == {"goes": 1.0, "says so": 0.0, "goes elsewhere": 0.0, "says nothing": 0.0}
    assert isinstance(task, AgentTask)
    assert isinstance(adapter, WebAdapter)
