"""Tasks of WebArena that change a made-up GitLab, which is put back by real requests and commands between episodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from made_up_site import NEVER, Answer, Asked, Site, site
from web_cases import resetting_lite

from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.protocol import Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from train_adapters.adapter import AgentTask, Ending, Episode
from train_adapters.rollout import Job, Table, play
from train_adapters.webarena.adapter import WebAdapter


@dataclass
class MadeUpGitlab:
    """A project that can be starred, and put back.

    Attributes:
        stars: of the project.
        broken: what a reset is answered with instead of being done; None where it is done.
        seen: stars that were shown on first pages.
    """

    stars: int = 0
    broken: Answer | None = None

    def __call__(self, asked: Asked) -> Answer:
        if asked.path == "/reset":
            if self.broken is not None:
                return self.broken
            self.stars = 0
        elif asked.method == "POST":
            self.stars += 1
            return Answer(location="/")
        return Answer(
            f"<title>{self.stars} stars</title><form method='post' action='/star'><button>Star</button></form>"
        )


def stars_once(request: Request, number: int) -> str:
    """A click on the button, then the end."""
    text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1].text
    button = re.search(r"\[(\w+)\] button 'Star'", text)
    return "exit(done)" if "Actions so far" in text or button is None else f'do(action="Click", element="{button[1]}")'


def played(web: WebAdapter, count: int) -> tuple[list[Episode], list[str]]:
    """Episodes of one task that changes the site, and what their agents were shown at first."""
    shown: list[str] = []

    def looks(request: Request, number: int) -> str:
        text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1].text
        if "Actions so far" not in text:
            shown.extend(re.findall(r"\d+ stars", text)[:1])
        return stars_once(request, number)

    model = ScriptedModel(looks)
    table = Table(web, model, 1, Timekeeper(model, None, Timings()))
    return [play(table, [Job(task_of(web), 0, None)], f"train/{number}")[0] for number in range(count)], shown


def task_of(web: WebAdapter) -> AgentTask:
    """A task of GitLab alone whose solution changes it; begun, and solved, at the made-up site's only page."""
    found = next(task for task in web.tasks("train") if task.payload["mutates"] and task.payload["sites"] == ["gitlab"])
    there = {"eval_types": ["url_match"], "reference_url": "__GITLAB__"}
    return replace(found, payload=dict(found.payload) | {"start_url": "__GITLAB__", "eval": there})


def adapter(folder: Path, running: Site, how: Sequence[str]) -> WebAdapter:
    """WebArena on the made-up GitLab, with a way to put it back."""
    made = resetting_lite(folder, ("[[sets]]", f'gitlab = "{running.url}"', *how), navigation_seconds=20)
    made._settings = replace(made._settings, retries=0, pause=0.01)
    return made


@pytest.mark.parametrize("way", ["request", "command"])
def test_every_episode_finds_the_site_as_it_was(tmp_path: Path, way: str) -> None:
    """A task that is solved already, or spoilt, by the episode before gives rewards that say nothing of the agent."""
    gitlab = MadeUpGitlab()
    with site(gitlab) as running:
        url = f"{running.url}/reset"
        program = f"import urllib.request as r; r.urlopen(r.Request({url!r}, method='POST'))"
        how = {"request": f'reset_urls = ["{url}"]', "command": f'reset_command = ["python3", "-c", "{program}"]'}
        web = adapter(tmp_path, running, [how[way]])
        episodes, shown = played(web, 2)
        web.close()
    assert [one.ending for one in episodes] == [Ending.SCORED] * 2
    assert shown == ["0 stars"] * 2
    posted = [path for path in running.paths("POST") if path in ("/reset", "/star")]
    assert posted == ["/reset", "/star"] * 2


def test_a_reset_that_fails_is_no_zero_and_is_done_again(tmp_path: Path) -> None:
    """An episode on a site that nothing has put back must not be played; once the reset works, all goes on."""
    gitlab = MadeUpGitlab()
    with site(gitlab) as running:
        web = adapter(tmp_path, running, [f'reset_urls = ["{running.url}/reset"]', "reset_seconds = 2"])
        first, _ = played(web, 1)
        texts = []
        for gitlab.broken in (Answer(status=500), Answer(after=NEVER)):
            (failed,), shown = played(web, 1)
            assert (failed.ending, failed.reward, failed.turns, shown) == (Ending.INFRA_FAILED, None, 0, [])
            texts.append(failed.reason)
            web._fleet.breaker.worked(["gitlab"])  # two episodes with two tries each would open its circuit
        gitlab.broken, before = None, gitlab.stars
        (last,), shown = played(web, 1)
        web.close()
    assert first[0].ending is last.ending is Ending.SCORED
    assert (before, shown) == (1, ["0 stars"]), "the set stayed marked as changed"
    assert texts[0].startswith("reset_failed: the sites were not put back: POST http://127.0.0.1")
    assert "500" in texts[0]
    assert "no answer within 2 s" in texts[1]


def test_a_reset_that_is_refused_is_told(tmp_path: Path) -> None:
    """Whoever forgot to start the reset server has to read so, rather than look at zeros."""
    with site(MadeUpGitlab()) as running:
        web = adapter(tmp_path, running, ['reset_urls = ["http://127.0.0.1:9/init"]'])
        (failed,), _ = played(web, 1)
        web.close()
    assert (failed.ending, failed.reward) == (Ending.INFRA_FAILED, None)
    assert failed.reason.startswith("reset_failed: the sites were not put back: POST http://127.0.0.1:9/init")
    assert not running.asked
