"""Skills that evolve with the weights: arms at equal rollouts, checks, rollbacks, and what a stop costs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from skill_cases import asks_for, co_evolving, scripted, shows_skill
from training_cases import CountAdapter, OneDirection, canonical, drawn, of_kind, train, truncate_log

from eoh_esopt.engine.events import EVENTS, HISTORY, read_events
from eoh_esopt.models.endpoint import PartialReplies
from eoh_esopt.models.protocol import Reply, Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.config import TrainConfig
from train_adapters.listener import TrainListener
from train_adapters.skills.plan import ARMS, planned
from train_adapters.skills.verdict import Verdict
from train_adapters.skills.versions import FOLDER

NAMES = ("weights_after", "ledger", "evaluations", "skill")


def evolve(folder: Path, config: TrainConfig | None = None, model: ScriptedModel | None = None) -> dict[str, Any]:
    return train(folder, co_evolving() if config is None else config, model or OneDirection(scripted()))


def worse_with_skill(request: Request, number: int) -> str:
    return "9" if shows_skill(request) else drawn(request, number)


def versions(folder: Path) -> list[dict[str, Any]]:
    return list(json.loads((folder / FOLDER / "manifest.json").read_text())["versions"])


def files(folder: Path) -> Mapping[str, bytes]:
    """The files of the skills and the trajectories."""
    found = (path for part in (FOLDER, "trajectories") for path in (folder / part).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_a_revision_is_shown_from_then_on(tmp_path: Path) -> None:
    """Else a skill is written and checked, and nobody reads it."""
    model = OneDirection(scripted())
    summary = evolve(tmp_path / "run", model=model)
    [first, second] = of_kind(tmp_path / "run", "skill_verdict")
    assert first["accepted"]
    played = [request for request in model.requests if request.direction is not None]
    shown = [shows_skill(request) for request in played]
    assert not shown[0]
    assert shown[-1]
    assert shown == sorted(shown), "from the revision on, and not before"
    assert summary["skill"]["file"] == f"{FOLDER}/skill_00{2 if second['accepted'] else 1}.md"
    assert "## Lessons\n\n- " in (tmp_path / "run" / summary["skill"]["file"]).read_text()


def test_a_revision_that_lowers_the_reward_is_taken_back(tmp_path: Path) -> None:
    """Else one bad revision spoils the rest of a training."""
    model = OneDirection(scripted(play=worse_with_skill))
    summary = evolve(tmp_path / "run", model=model)
    verdicts = of_kind(tmp_path / "run", "skill_verdict")
    assert [one["accepted"] for one in verdicts] == [False, False]
    assert all(one["high"] is None or one["high"] < 0 for one in verdicts)
    assert summary["skill"] is None
    assert not any(shows_skill(request) for request in model.requests if request.direction is not None)
    assert [one["state"] for one in versions(tmp_path / "run")] == ["begun", "rolled_back", "rolled_back"]
    assert [one["parent"] for one in versions(tmp_path / "run")] == [None, "skill_000.md", "skill_000.md"]


@pytest.mark.parametrize("arm", ARMS)
def test_arms_have_equal_rollouts(tmp_path: Path, arm: str) -> None:
    """Else an arm wins by what it was given, and not by what it does with it."""
    config = co_evolving(co_evolve=arm, generations=6)
    model = OneDirection(scripted())
    ledger = evolve(tmp_path / "run", config, model)["ledger"]
    assert ledger["episodes"] + ledger["skill_episodes"] <= 6 * 4 * 2 * 2
    assert ledger["episodes"] + ledger["skill_episodes"] > 5 * 4 * 2 * 2, "what is left is less than a generation"
    assert (ledger["skill_episodes"] > 0) == (ledger["skill_calls"] > 0) == (arm != "weights")
    assert (ledger["updates"] > 0) == (arm != "skill")
    assert bool(model.updates) == (arm != "skill")
    shown = [shows_skill(request) for request in model.requests if request.direction is not None]
    assert any(shown) == (arm == "alternating"), "sequential: the weights learn without a skill"


def test_no_two_episodes_of_the_skill_alone_are_the_same(tmp_path: Path) -> None:
    """Else the arm that leaves the weights alone plays the same episode once for every direction."""
    model = OneDirection(scripted())
    evolve(tmp_path / "run", co_evolving(co_evolve="skill"), model)
    [first, *_] = of_kind(tmp_path / "run", "episodes")[1:]
    assert first["directions"] == []
    pairs = [(one["task"], one["sample"]) for one in first["episodes"]]
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("every", [1, 3])
def test_the_plan_keeps_to_its_budget(every: int) -> None:
    """Else checks of revisions come on top of what the other arm may spend."""
    for generations in range(1, 40):
        plan = planned("alternating", generations, 16, every, 8)
        assert plan.generations * 16 + len(plan.windows) * 8 <= generations * 16
        more = plan.generations + 1
        assert more * 16 + more // every * 8 > generations * 16, "and not below it by a generation"
        due = [window for at in range(plan.generations) for window in plan.revised_after(at)]
        assert due == plan.windows


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "alternating": ({}, scripted()),
    "taken back": ({}, scripted(play=worse_with_skill)),
    "skill": ({"co_evolve": "skill"}, scripted()),
    "sequential": ({"co_evolve": "sequential"}, scripted()),
}


@pytest.mark.parametrize(("changes", "write"), CASES.values(), ids=CASES)
def test_stopping_after_any_event_changes_nothing(tmp_path: Path, changes: dict[str, Any], write: Any) -> None:
    """Else a killed training ends in other weights or another skill than one that nobody killed."""
    config = co_evolving(generations=3, samples=1, final_repeats=1, evaluate_every=0, **changes)
    whole = evolve(tmp_path / "whole", config, OneDirection(write))
    events = read_events(tmp_path / "whole")
    for lines in range(len(events) + 1):
        folder = tmp_path / f"after-{lines}"
        truncate_log(tmp_path / "whole", folder, lines, torn=lines % 2 == 0)
        for part in (FOLDER, "trajectories"):  # more than a killed training has, and all that it may have
            shutil.copytree(tmp_path / "whole" / part, folder / part)
        resumed = evolve(folder, config, OneDirection(write))
        for name in NAMES:
            assert resumed[name] == whole[name], f"stopped after event {lines}"
        assert (folder / HISTORY).read_text() == (tmp_path / "whole" / HISTORY).read_text()
        assert files(folder) == files(tmp_path / "whole")
        log = [event for event in read_events(folder) if event["event"] != "resume"]
        assert canonical(log)[: len(events)] == canonical(events)


def test_what_the_log_holds_is_not_asked_again(tmp_path: Path) -> None:
    """Else resuming asks an endpoint, whose answers differ, for a revision that others rest on."""
    evolve(tmp_path / "run")
    lines = [event["event"] for event in read_events(tmp_path / "run")]
    stopped = tmp_path / "stopped"
    truncate_log(tmp_path / "run", stopped, lines.index("skill_verdict") + 1)
    for part in (FOLDER, "trajectories"):
        shutil.copytree(tmp_path / "run" / part, stopped / part)
    model = OneDirection(scripted())
    evolve(stopped, model=model)
    asked = [event for event in of_kind(stopped, "skill_proposal") if event["revision"] == 1]
    assert len(asked) == 1
    lessons = [request for request in model.requests if asks_for(request) == "lessons"]
    [second] = [event for event in of_kind(stopped, "skill_proposal") if event["revision"] == 2]
    assert len(lessons) == second["read"], "those of the second revision"


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_version_that_is_not_as_it_was_is_refused(tmp_path: Path, damage: str) -> None:
    """Else a training goes on with another skill than the one that its episodes were played with."""
    evolve(tmp_path / "run")
    path = tmp_path / "run" / FOLDER / "skill_001.md"
    count = len(read_events(tmp_path / "run"))
    whole = (tmp_path / "run" / EVENTS).read_text().splitlines(keepends=True)
    (tmp_path / "run" / EVENTS).write_text("".join(whole[: count - 1]))
    path.unlink() if damage == "missing" else path.write_text("# Mine\n")
    with pytest.raises(UserError, match=r"skill_001\.md.*Bring"):
        evolve(tmp_path / "run")


def test_trajectories_that_are_missing_are_named(tmp_path: Path) -> None:
    """Else a revision is made from half of what was played, without a word."""
    evolve(tmp_path / "whole")
    lines = [event["event"] for event in read_events(tmp_path / "whole")]
    truncate_log(tmp_path / "whole", tmp_path / "run", lines.index("skill_proposal"))
    with pytest.raises(UserError, match="trajectories of generation 1 are missing"):
        evolve(tmp_path / "run")


class Unreachable(OneDirection):
    """An endpoint that answers nothing."""

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        raise PartialReplies("the endpoint does not answer", {})


def with_writer(folder: Path, writer: ScriptedModel, listener: TrainListener | None = None) -> dict[str, Any]:
    from training_cases import tasks_of

    from train_adapters.run import work

    adapter = CountAdapter()
    folder.mkdir(exist_ok=True)
    heard = TrainListener() if listener is None else listener
    model = OneDirection(drawn)
    return work(co_evolving(), folder, model, adapter, tasks_of(adapter), heard, lambda text: None, writer)


def test_an_endpoint_that_is_gone_costs_revisions_and_nothing_else(tmp_path: Path) -> None:
    """Else the skill's language model stops the training, moves its weights, or fails without a word."""
    said: list[Mapping[str, Any]] = []

    class Heard(TrainListener):
        def on_skill(self, proposal: Mapping[str, Any], verdict: Verdict | None) -> None:
            assert verdict is None
            said.append(proposal)

    summary = with_writer(tmp_path / "run", Unreachable(drawn), Heard())
    plain = train(tmp_path / "plain", co_evolving(generations=4, co_evolve="weights"), OneDirection(drawn))
    assert summary["weights_after"] == plain["weights_after"], "as if nobody had asked for a skill"
    assert [one["outcome"] for one in said] == ["failed", "failed"]
    assert all(failure["kind"] == "unreachable" for one in said for failure in one["failures"])
    assert summary["ledger"]["skill_failures"] > 0
    assert summary["ledger"]["skill_episodes"] == 0


def test_a_failed_revision_is_tried_again_where_nothing_rests_on_it(tmp_path: Path) -> None:
    """Else a training that was stopped to mend the endpoint goes on without the revision all the same."""
    with_writer(tmp_path / "whole", Unreachable(drawn))
    lines = [event["event"] for event in read_events(tmp_path / "whole")]
    truncate_log(tmp_path / "whole", tmp_path / "run", lines.index("skill_proposal") + 1)
    shutil.copytree(tmp_path / "whole" / "trajectories", tmp_path / "run" / "trajectories")
    with_writer(tmp_path / "run", OneDirection(scripted()))
    assert [one["outcome"] for one in of_kind(tmp_path / "run", "skill_proposal")[:2]] == ["failed", "proposed"]


def test_a_log_with_another_verdict_is_refused(tmp_path: Path) -> None:
    """Else a damaged log decides which skill the weights are trained with."""
    evolve(tmp_path / "run")
    text = (tmp_path / "run" / EVENTS).read_text()
    (tmp_path / "run" / EVENTS).write_text(
        text.replace('"revision": 1, "accepted": true', '"revision": 1, "accepted": false')
    )
    with pytest.raises(UserError, match="verdict on revision 1"):
        evolve(tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"co_evolve": "both"}, "Unknown co_evolve 'both'"),
        ({"skill_model": "gpt"}, "--skill-model and --skill-base-url belong together"),
        ({"skill_every": 0}, "skill_every must be at least 1"),
        ({"skill_every": 9}, "comes to no revision"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(changes: dict[str, Any], message: str) -> None:
    """Else a training ends hours later in an error, or without the revision it was started for."""
    with pytest.raises(UserError, match=message):
        co_evolving(**changes)
