"""The tasks of the local sites: their form, their splits, and that they are solved by solving them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from web_client import FIELDS, WebClient
from web_oracles import ANTI_ORACLES, ORACLES, Step, Steps

from train_adapters.webarena.sites import SiteSet
from train_adapters.webarena.sites.checks import Outcome, included, normalised, score
from train_adapters.webarena.sites.tasks import TEMPLATES, site_tasks

TASKS = site_tasks()
NAMES = [task["name"] for task in TASKS]
BY_NAME = dict(zip(NAMES, TASKS, strict=True))


@pytest.fixture(scope="module")
def sites() -> Iterator[SiteSet]:
    with SiteSet.start() as running:
        yield running


def play(sites: SiteSet, task: dict[str, Any], steps: Steps) -> tuple[float, WebClient]:
    """Reset, follow a script, and score what is left."""
    sites.reset()
    client = WebClient(sites.storage_state(task["sites"]))
    client.open(sites.fill(task["start_url"]))
    for step in steps:
        client.do(step)
    return score(task, Outcome(client.answer, client.url, sites.page, sites.state()), sites.urls), client


def shown(text: str, client: WebClient) -> bool:
    """Whether people who see the page can read the text there, or in a field."""
    fields = (one.value for one in client.page.walk() if one.name in FIELDS)
    return included(text, client.page.text) or normalised(text) in map(normalised, fields)


@pytest.mark.parametrize("name", NAMES)
def test_oracle_earns_everything(sites: SiteSet, name: str) -> None:
    """A task that its solution does not solve, or whose answer no page shows, would punish agents for being right."""
    task, pristine = BY_NAME[name], sites.state()["digest"]
    earned, client = play(sites, task, ORACLES[name])
    assert earned == 1.0
    assert len(ORACLES[name]) == task["minimum_actions"]
    assert (sites.state()["changes"] != []) == task["mutates"]
    if "string_match" in task["eval"]["eval_types"]:
        assert client.answer is not None
        assert all(shown(one, client) for one in client.answer.replace(" and ", ", ").split(", "))
    sites.reset()
    assert sites.state()["digest"] == pristine


@pytest.mark.parametrize("name", NAMES)
def test_anti_oracle_earns_nothing(sites: SiteSet, name: str) -> None:
    """A task that a plausible mistake solves would teach the mistake."""
    assert play(sites, BY_NAME[name], ANTI_ORACLES[name])[0] == 0.0
    sites.reset()
    assert sites.state()["changes"] == []


@pytest.mark.parametrize("name", NAMES)
def test_doing_nothing_earns_nothing(sites: SiteSet, name: str) -> None:
    """A task that is solved at its start would reward whatever an agent does."""
    task = BY_NAME[name]
    _, client = play(sites, task, ())
    for message in (None, "", "done", "I do not know"):
        outcome = Outcome(message, client.url, sites.page, {"digest": "", "changes": []})
        assert score(task, outcome, sites.urls) == 0.0


@pytest.mark.parametrize("name", [task["name"] for task in TASKS if "state_match" in task["eval"]["eval_types"]])
def test_harm_on_the_way_earns_nothing(sites: SiteSet, name: str) -> None:
    """An agent that solves its task and changes something else besides would be told that this is fine."""
    task = BY_NAME[name]
    sites.reset()
    storage = sites.storage_state()
    harm = WebClient(storage)
    harm.open(f"{sites.urls['__FORUM__']}/settings")
    client = WebClient(storage)
    client.open(sites.fill(task["start_url"]))
    for step in ORACLES[name]:
        client.do(step)
    harm.do(Step("Type", "Biography", "changed by the way"))
    harm.do(Step("Click", "Save Settings"))
    assert score(task, Outcome(client.answer, client.url, sites.page, sites.state()), sites.urls) == 0.0


def test_splits_are_disjoint_by_template() -> None:
    """Tasks of one sentence in two splits would make the test measure what was learnt by heart."""
    for attribute in ("intent_template", "intent_template_id"):
        seen: dict[Any, set[str]] = {}
        for task in TASKS:
            seen.setdefault(task[attribute], set()).add(task["split"])
        assert len(seen) == len(TEMPLATES)
        assert all(len(splits) == 1 for splits in seen.values())
    sizes = {split: len(site_tasks(split)) for split in ("train", "val", "test")}
    assert sizes == {"train": 66, "val": 17, "test": 35}


def test_form_is_that_of_webarena() -> None:
    """Tools for WebArena's configuration would stumble over a key that is missing or of another type."""
    types = {"sites": list, "task_id": int, "require_login": bool, "storage_state": str, "start_url": str}
    types |= {"intent_template": str, "instantiation_dict": dict, "intent": str, "require_reset": bool, "eval": dict}
    for task in TASKS:
        assert all(isinstance(task[name], kind) for name, kind in types.items())
        assert {"eval_types", "reference_answers", "reference_url", "program_html"} <= task["eval"].keys()
        assert "{" not in task["intent"]
        assert task["require_reset"] == task["mutates"]
    assert len({task["task_id"] for task in TASKS}) == len({task["intent"] for task in TASKS}) == len(TASKS)


def test_every_difficulty_is_there_to_learn_from() -> None:
    """A training split without short tasks gives a small model no reward to begin with."""
    train = [task["difficulty"] for task in site_tasks("train")]
    assert train.count("easy") >= 20
    assert {"easy", "medium", "hard"} == set(train)


def test_answers_are_not_in_the_intent() -> None:
    """A model that repeats its task must not be paid for it."""
    for task in TASKS:
        if wanted := task["eval"]["reference_answers"]:
            texts = wanted.get("must_include") or wanted["exact_match"].split(" |OR| ")
            assert not any(normalised(one) == normalised(task["intent"]) for one in texts)
            assert not all(included(one, task["intent"]) for one in texts)
