"""Where web tasks come from: the published split, files with sites, what changes a site, and the judges."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.errors import UserError
from train_adapters.adapter import AgentTask
from train_adapters.presets import config_of, load_preset
from train_adapters.webarena.accounts import Account
from train_adapters.webarena.failures import InfraFailed, JudgeFailed
from train_adapters.webarena.judges import BenchmarkJudge, says_yes, verified_response
from train_adapters.webarena.lite import LiteStage, lite_task, mutates
from train_adapters.webarena.logins import Logins
from train_adapters.webarena.miniwob import MiniwobSource
from train_adapters.webarena.site_sets import SiteSet, read_site_sets
from train_adapters.webarena.splits import digest_of, mixed, published_splits
from train_adapters.webarena.stages import Ended

NO_BROWSER: Any = None
SITES = st.sampled_from((("shop",), ("forum",), ("shop", "forum"), ("forum", "shop")))


@given(st.lists(SITES, max_size=60), st.integers(0, 2**32))
def test_the_order_mixes_the_sites(sites: list[tuple[str, ...]], seed: int) -> None:
    """A batch of eight tasks of one site would teach that site alone; no task may be lost or doubled on the way."""
    ordered = mixed([{"task_id": place, "sites": list(one)} for place, one in enumerate(sites)], seed)
    assert sorted(one["task_id"] for one in ordered) == list(range(len(sites)))
    kinds = len(set(sites))
    first = [tuple(one["sites"]) for one in ordered[:kinds]]
    assert len(set(first)) == kinds


def test_other_configurations_are_refused() -> None:
    """A split of other tasks could hold tasks of the test set, and no figure could be compared."""
    every = [{"task_id": one, "sites": ["shop"]} for one in range(10)]
    with pytest.raises(UserError, match="train split"):
        published_splits(every, [{"task_id": 0, "old_task_id": 3, "sites": ["shop"]}])


def test_the_digest_is_that_of_compact_json() -> None:
    """The published hashes are of that form; another one would never match."""
    assert digest_of([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"


def written(folder: Path, text: str) -> Path:
    path = folder / "sites.toml"
    path.write_text(text)
    return path


def test_a_file_of_sites_is_read(tmp_path: Path) -> None:
    """It is how the official images are pointed at."""
    (tmp_path / "auth").mkdir()
    for site in ("shopping", "gitlab"):
        state = {"cookies": [{"name": site}], "origins": []}
        (tmp_path / "auth" / f"{site}_state.json").write_text(json.dumps(state))
    (found,) = read_site_sets(
        written(
            tmp_path,
            'login = "auth"\n[[sets]]\nshopping = "http://a:7770/"\nmap = "http://a:3000"\nreset_command = ["true"]\n',
        )
    )
    assert found.fill("__SHOPPING__/x __MAP__") == "http://a:7770/x http://a:3000"
    assert found.can_reset
    state = Logins(found).state(["shopping", "map", "gitlab"], NO_BROWSER)
    assert state is not None
    assert [one["name"] for one in state["cookies"]] == ["shopping", "gitlab"]
    found.reset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have"),
        ('[[sets]]\nshoping = "x"', "Did you mean 'shopping'"),
        ("[[sets]]\nreset_seconds = 1", "names no site"),
        ('[[sets]]\nmap = "x"\nreset_urls = "http://x"', "list of texts"),
        ('[[sets]]\nmap = "web1:3000"', "'web1:3000' does not begin with http"),
        ('[[sets]]\nmap = "http://x"\nreset_urls = ["web1:7771/init"]', "'web1:7771/init' does not begin with http"),
        ('[[sets]]\nmap = "http://x"\nreset_seconds = "long"', "reset_seconds must be a number above 0"),
        ('login = "nowhere"\n[[sets]]\nmap = "x"', "no folder"),
        ('accounts = "publishd"\n[[sets]]\nmap = "x"', 'accounts must be "published" or a table'),
        ('[accounts]\nshoping = ["a", "b"]\n[[sets]]\nmap = "x"', "Did you mean 'shopping'"),
        ('[accounts]\nshopping = ["a"]\n[[sets]]\nmap = "x"', "the account of shopping must be"),
    ],
)
def test_a_bad_file_of_sites_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """A typing error must not become hours of episodes on sites that are not there."""
    with pytest.raises(UserError, match=message):
        read_site_sets(written(tmp_path, text))


def test_accounts_are_those_of_the_images_or_others(tmp_path: Path) -> None:
    """With the published ones nobody has to make login states; passwords must not be told in messages and reports."""
    (found,) = read_site_sets(written(tmp_path, 'accounts = "published"\n[[sets]]\nshopping = "http://a"\n'))
    assert set(found.accounts) == {"shopping", "shopping_admin", "reddit", "gitlab"}
    assert "Password.123" not in repr(found)
    (found,) = read_site_sets(written(tmp_path, '[[sets]]\nreddit = "http://a"\n[accounts]\nreddit = ["ann", "pw"]\n'))
    assert found.accounts == {"reddit": Account("ann", "pw")}


class LoginBrowser:
    """Logs in, and counts."""

    def __init__(self) -> None:
        self.known: list[Any] = []

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        assert command == "login"
        if arguments["password"] == "wrong":
            raise InfraFailed("login_failed", f"logging in to {arguments['site']} as {arguments['user']}: no")
        self.known.append(arguments["storage_state"])
        return {"storage_state": {"cookies": [{"name": f"session-{len(self.known)}"}], "origins": []}}


def test_a_session_is_kept_until_the_sites_are_put_back(tmp_path: Path) -> None:
    """Filling in the form each time takes seconds; a session that the site has forgotten shows nobody's pages."""
    sites = SiteSet({"gitlab": "http://a", "map": "http://b"}, accounts={"gitlab": Account("ann", "pw")})
    browser, logins = LoginBrowser(), Logins(sites)
    any_browser: Any = browser
    for _ in range(2):
        assert logins.state(["gitlab", "map"], any_browser)
    logins.forget()
    assert logins.state(["gitlab"], any_browser) == {"cookies": [{"name": "session-3"}], "origins": []}
    first = {"cookies": [{"name": "session-1"}], "origins": []}
    assert browser.known == [None, first, None]
    refused = Logins(SiteSet({"gitlab": "http://a"}, accounts={"gitlab": Account("ann", "wrong")}))
    with pytest.raises(InfraFailed, match="gitlab as ann") as failure:
        refused.state(["gitlab"], any_browser)
    assert failure.value.of_the_site


def test_a_reset_that_fails_is_a_failure_of_the_site() -> None:
    """An episode on sites that were not put back would be scored on what another one did."""
    for sites, text in (
        (SiteSet({"map": "x"}, reset_command=("false",)), "false ended with 1"),
        (SiteSet({"map": "x"}, reset_command=("./no-such-program",)), "no-such-program"),
        (
            SiteSet({"map": "x"}, reset_urls=("http://127.0.0.1:9/init",), reset_seconds=2),
            "POST http://127.0.0.1:9/init",
        ),
    ):
        with pytest.raises(InfraFailed, match=text) as failure:
            sites.reset()
        assert failure.value.kind == "reset_failed"


def test_a_reset_command_that_hangs_is_ended_with_all_it_has_started(tmp_path: Path) -> None:
    """A script that waits for another program would hold the browser for as long as that one runs."""
    script = f"sleep 600 & echo $! > {tmp_path / 'pid'}; wait"
    with pytest.raises(InfraFailed, match="sh had not ended after 2 s"):
        SiteSet({"map": "x"}, reset_command=("sh", "-c", script), reset_seconds=2).reset()
    pid = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 30
    while runs(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not runs(pid)


def runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


CONFIG = {
    "task_id": 7,
    "sites": ["shopping"],
    "start_url": "__SHOPPING__",
    "intent": "original",
    "eval": {
        "eval_types": ["string_match"],
        "reference_answers": {"must_include": ["Acadia"], "fuzzy_match": ["1h 23min"]},
    },
}
VERIFIED = {
    "intent": "verified",
    "start_urls": ["__SHOPPING__/a"],
    "eval": [{"expected": {"task_type": "mutate"}}, {"expected": {"url": "x"}}],
}


class Counting:
    """A judge that gives 1, and a count of resets."""

    reads_verified = True
    advice = ""

    def traces(self, number: int) -> Path | None:
        return None

    def score(self, *parts: Any) -> float:
        return 1.0


def test_sites_are_put_back_only_where_something_changed(tmp_path: Path) -> None:
    """Putting the official images back takes minutes: it is done after episodes that wrote, and not otherwise."""
    log = tmp_path / "resets"
    sites = SiteSet({"shopping": "http://a"}, reset_command=("sh", "-c", f"echo reset >> {log}"))
    task = lite_task("train", CONFIG, {}, False)
    stage = LiteStage(sites, Counting(), 0, resets=True)
    for changed in (False, True, False):
        assert stage.prepare(task, NO_BROWSER).url == "http://a"
        if changed:
            stage.note_changes()
    assert log.read_text().count("reset") == 2  # at the very beginning, and after the change


def test_shared_sites_are_never_put_back() -> None:
    """It would pull them away from under the other browsers' episodes."""
    sites = SiteSet({"shopping": "http://a"}, reset_command=("false",))
    stage = LiteStage(sites, Counting(), 0, resets=False)
    stage.note_changes()
    stage.prepare(lite_task("train", CONFIG, {}, False), NO_BROWSER)
    assert not stage.untouched


def test_what_changes_a_site_is_known() -> None:
    """Such tasks must not be played on sites that nothing puts back."""
    assert mutates(CONFIG, VERIFIED)
    assert not mutates(CONFIG, None)
    assert mutates({"eval": {"eval_types": ["url_match", "program_html"]}}, None)


def test_a_task_is_worded_as_its_judge_reads_it() -> None:
    """webarena-verified wants answers in a form that only its own wording states."""
    told = lite_task("test", {**CONFIG, "old_task_id": 3}, {3: VERIFIED}, True)
    assert (told.id, told.payload["intent"], told.payload["start_url"]) == ("lite-7", "verified", "__SHOPPING__/a")
    assert told.group == "shopping"
    told = lite_task("train", {**CONFIG, "task_id": 3}, {3: VERIFIED}, False)
    assert (told.id, told.payload["intent"]) == ("webarena-3", "original")


@pytest.mark.parametrize(
    ("answer", "kind", "status", "data"),
    [
        (None, "retrieve", "UNKNOWN_ERROR", None),
        ("", "mutate", "SUCCESS", None),
        ("done", "navigate", "SUCCESS", None),
        ("NOT_FOUND_ERROR", "retrieve", "NOT_FOUND_ERROR", None),
        ("$5", "retrieve", "SUCCESS", ["$5"]),
        ("5", "retrieve", "SUCCESS", [5]),
        ('["a", "b"]', "retrieve", "SUCCESS", ["a", "b"]),
        ('{"mode": "walking"}', "retrieve", "SUCCESS", [{"mode": "walking"}]),
    ],
)
def test_an_answer_reaches_the_scorer(answer: str | None, kind: str, status: str, data: Any) -> None:
    """A right answer in the wrong wrapping would score 0."""
    assert verified_response(answer, kind) == {"task_type": kind.upper(), "status": status, "retrieved_data": data}


def test_a_judge_that_cannot_be_asked_is_no_zero() -> None:
    """A 0 for a dead endpoint would teach the model that its right answers are wrong."""
    judge = BenchmarkJudge("judge", "http://127.0.0.1:9/v1", tries=1, seconds=2)
    only = {**CONFIG, "eval": {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["an hour"]}}}
    task = AgentTask("t", "test", only)
    none: Any = None
    with pytest.raises(JudgeFailed):
        judge.score(task, Ended("60 minutes", "http://a", 0.0), none, SiteSet({"shopping": "http://a"}), None)
    assert judge.score(task, Ended("An hour ", "http://a", 0.0), none, SiteSet({"shopping": "http://a"}), None) == 1.0
    assert judge.score(task, Ended(None, "http://a", 0.0), none, SiteSet({"shopping": "http://a"}), None) == 0.0


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("Yes.", True),
        ("**No**, a part is missing.", False),
        ("<think>\nYes?\n</think>\n\nno", False),
        ("Not sure: it may be.", None),
        ("The correct answer is: Yes", None),
        ("<think>yes", None),
        ("", None),
    ],
)
def test_the_first_word_of_a_judge_counts(reply: str, right: bool | None) -> None:
    """A judge that does not know, or only thinks aloud, would pass for one that says no or yes."""
    if right is None:
        with pytest.raises(JudgeFailed, match="neither yes nor no"):
            says_yes(reply)
    else:
        assert says_yes(reply) is right


def test_seeds_of_miniwob_are_in_one_split(tmp_path: Path) -> None:
    """A page that was learnt from must not be tested on."""
    (tmp_path / "click-button.html").write_text("")
    source = MiniwobSource(tmp_path, ["click-button"], {"train": 3, "val": 2, "test": 2})
    ids = Counter(task.id for tasks in source.tasks.values() for task in tasks)
    assert len(ids) == 7
    assert set(ids.values()) == {1}
    with pytest.raises(UserError, match="no task 'click-buton'"):
        MiniwobSource(tmp_path, ["click-buton"], {"train": 1, "val": 1, "test": 1})


def test_presets_say_what_was_published() -> None:
    """Else results are compared with those of other settings."""
    config = config_of("webarena", [load_preset("webarena")]).resolved()
    assert (config.directions, config.generations, config.batch, config.samples) == (8, 70, 8, 1)
    assert (config.sigma, config.sigma_schedule, config.alpha, config.seed) == (1.5e-3, "constant", 2.5e-4, 20260605)
    assert (config.sampling.temperature, config.sampling.top_p, config.sampling.top_k) == (0.7, 0.8, 20)
    assert (config.adapter_settings["turns"], config.adapter_settings["new_tokens"]) == (30, 2048)
    floor = config_of("webarena", [load_preset("webarena"), load_preset("webarena-floor")]).resolved()
    assert (floor.sigma, floor.sigma_final, floor.sigma_schedule) == (1.5e-3, 3.75e-4, "cosine")
