"""WebArena's own checks on made-up pages in real Chromium, and every check of its configurations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up_site import Answer, Asked, Site, site
from web_agents import play_all
from web_cases import resetting_lite, task_of

from train_adapters.webarena.benchmark_checks import BenchmarkChecks
from train_adapters.webarena.benchmark_programs import read_call
from train_adapters.webarena.browser.client import Browser, BrowserOptions
from train_adapters.webarena.failures import JudgeFailed
from train_adapters.webarena.installed import BROWSERS, chromium, data_of, python_of
from train_adapters.webarena.lite import read_configs
from train_adapters.webarena.site_sets import SITES, SiteSet
from train_adapters.webarena.stages import Ended

_MEMBERS = """<table></table><script>
const member = (name, role) => `<tr><td data-label="Account"><span class="gl-avatar-labeled-label">${name}</span>
  <span class="gl-avatar-labeled-sublabel">@${name}</span></td><td class="col-max-role"><span>${role}</span></td></tr>`;
setTimeout(() => document.querySelector("table").innerHTML = member("ann", "Owner") + member("vinta", "Guest"), 200);
</script>"""
_FORM = """<title>Form</title><form><label>Price <input name="product[price]"></label></form>
<button onclick="document.querySelector('.more').innerHTML = '<select name=action><option>by_percent</select>'">More
</button><p class=more></p>"""


def pages(asked: Asked) -> Answer:
    return Answer(
        {"/members": _MEMBERS, "/form": _FORM, "/f/books/5/": "<b class=post>A car is needed</b>"}[asked.path]
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    made = Browser(python_of(BROWSERS), BrowserOptions(chromium(), "axtree"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    with site(pages) as found:
        yield found


def checks(browser: Browser, running: Site, url: str) -> BenchmarkChecks:
    sites = SiteSet({"gitlab": running.url, "reddit": running.url})

    def nobody(reference: str, text: str) -> bool:
        raise AssertionError("nobody was to be asked")

    return BenchmarkChecks(Ended("", url, 0.0), sites, browser, nobody)


def held(found: BenchmarkChecks, url: str, locator: str, wanted: str, *before: str) -> bool:
    target: dict[str, Any] = {"url": url, "locator": locator, "required_contents": {"exact_match": wanted}}
    if before:
        target["prep_actions"] = list(before)
    return found.hold({"eval_types": ["program_html"], "program_html": [target]})


def test_a_members_role_is_read_from_a_table_that_a_script_fills(browser: Browser, running: Site) -> None:
    """GitLab draws its members with scripts: whoever reads too early finds nobody, and the agent would get a 0."""
    browser.call("open", url=f"{running.url}/form")
    found = checks(browser, running, f"{running.url}/form")
    for name, role in (("vinta", "Guest"), ("ann", "Owner"), ("nobody", "")):
        assert held(found, "__GITLAB__/members", f"func:gitlab_get_project_memeber_role(__page__, '{name}')", role)


def test_what_was_typed_is_read_from_the_page_as_it_was_left(browser: Browser, running: Site) -> None:
    """Forms that are to be filled in but not sent are looked at where they are; a new page of theirs is empty."""
    seen = browser.call("open", url=f"{running.url}/form")
    field = next(line for line in seen["lines"] if "textbox" in line).strip().partition("]")[0].removeprefix("[")
    browser.call("act", name="Type", element=field, argument="12.50")
    found = checks(browser, running, f"{running.url}/form")
    price = "document.querySelector('[name=\"product[price]\"').value"  # written so in the configurations
    assert held(found, "__GITLAB__/form", price, "")
    assert held(found, "last", price, "12.50")
    action = "document.querySelector('[name=\"action\"').value"
    assert held(found, "last", action, "")
    assert held(found, "last", action, "by_percent", "document.querySelector('.no-such')", "nonsense(") is False
    assert held(found, "last", action, "by_percent", "nonsense()", "document.querySelector('button').click()")
    assert browser.call("act", name="Wait")["title"] == "Form", "the episode's page is still the one that is played on"


def test_the_post_of_a_comment_is_read(browser: Browser, running: Site) -> None:
    """A third of the forum's tasks are judged so."""
    url = f"{running.url}/f/books/5/a-title/-/comment/7"
    browser.call("open", url=f"{running.url}/form")
    found = checks(browser, running, url)
    locator = "document.querySelector('.post').outerText"
    assert held(found, "func:reddit_get_post_url('__last_url__')", locator, "A car is needed")


class Listening:
    """A browser that takes down what it is to read."""

    def __init__(self) -> None:
        self.expressions: set[str] = set()

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        self.expressions |= {arguments["expression"], *arguments["before"]}
        return {"value": ""}


def test_every_check_of_the_configurations_is_understood(browser: Browser, running: Site) -> None:
    """What is not understood is left out of the rewards: with much of it, a training would learn from a part only."""
    places = ("webarena/test.raw.json", "browsergym/webarenalite/test_webarena_lite.raw.json")
    listening: Any = Listening()
    sites = SiteSet(dict.fromkeys(SITES, "http://127.0.0.1:9"))  # where no shop tells anything
    failed: list[list[str]] = []
    for place in places:
        failed.append([])
        for config in read_configs(data_of(BROWSERS, place)):
            found, part = (
                BenchmarkChecks(Ended("x", "http://a/", 0.0), sites, listening, lambda *texts: False),
                config["eval"],
            )
            try:
                found.hold(part | {"program_html": []})
                list(found._pages(part) if "program_html" in part["eval_types"] else ())
            except JudgeFailed as failure:
                failed[-1].append(str(failure))
    assert [text for texts in failed for text in texts if "the shop does not tell" not in text] == []
    assert [len(texts) for texts in failed] == [15, 3]
    browser.call("open", url=f"{running.url}/form")
    for expression in listening.expressions:
        script = "(text => { try { new Function(text); return ''; } catch (error) { return error.message; } })"
        assert browser.call("read", expression=f"{script}({json.dumps(expression)})")["value"] == "", expression


class MembersGitlab:
    """A GitLab that one account is let in to, whose project has the members that it is sent.

    Args:
        wanted: names and roles that the button invites.
    """

    def __init__(self, wanted: Mapping[str, str]) -> None:
        self.wanted, self.members = wanted, dict[str, str]()
        self.inside = False

    def __call__(self, asked: Asked) -> Answer:
        if asked.path == "/reset":
            self.members, self.inside = {}, False
        elif asked.path == "/in":
            self.inside = asked.form == {"user": "byteblaze", "password": "hello1234"}
            return Answer(location="/dashboard/todos")
        elif asked.path == "/users/sign_in" or not self.inside:
            return Answer(_SIGN_IN) if asked.path == "/users/sign_in" else Answer(location="/users/sign_in")
        elif asked.path == "/invite":
            self.members = dict(self.wanted)
            return Answer(location="/")
        elif asked.path.endswith("/-/project_members"):
            rows = "".join(_ROW.format(name=name, role=role) for name, role in self.members.items())
            return Answer(f"<table>{rows}</table>")
        return Answer("<form method=post action=/invite><button>Invite</button></form>")


_SIGN_IN = """<form method=post action=/in><label for=u>Username or email</label><input id=u name=user>
<label for=p>Password</label><input id=p name=password type=password><button>Sign in</button></form>"""
_ROW = """<tr><td data-label="Account"><span class="gl-avatar-labeled-sublabel">@{name}</span></td>
<td class="col-max-role"><span>{role}</span></td></tr>"""


def test_a_task_with_login_reset_and_program_is_played_and_judged(tmp_path: Path) -> None:
    """The way from the file of sites to a reward, as with the official images: logged in, put back, and looked at."""
    config = next(
        one
        for one in read_configs(data_of(BROWSERS, "webarena/test.raw.json"))
        if "func:gitlab" in json.dumps(one["eval"]) and "url_match" not in one["eval"]["eval_types"]
    )
    wanted = {
        read_call(target["locator"]).arguments[1]: target["required_contents"]["must_include"][0]
        for target in config["eval"]["program_html"]
    }
    with site(MembersGitlab(wanted)) as running:
        there = (f'gitlab = "{running.url}"', f'reset_urls = ["{running.url}/reset"]')
        adapter = resetting_lite(tmp_path, ('accounts = "published"', "[[sets]]", *there))
        task = task_of(adapter, config["task_id"])
        invites, looks, late = (replace(task, id=name) for name in ("invites", "looks", "late"))
        exit_ = ("exit", "", "")
        click = ("Click", "Invite", "")
        scores = play_all(adapter, [(invites, [click, exit_]), (looks, [exit_]), (late, [click, exit_])])
        adapter.close()
    assert scores == {"invites": 1.0, "looks": 0.0, "late": 1.0}
    assert [path for path in running.paths("POST") if path != "/in"] == ["/reset", "/invite", "/reset", "/invite"]
