"""Sites that hang, are down, answer with an error or are slow, in real Chromium: none of it is the agent's fault."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from made_up_site import NEVER, Answer, Asked, Pages, site

from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.protocol import Request
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.adapter import AgentTask, Ending, Episode
from train_adapters.rollout import Job, Table, play
from train_adapters.webarena.adapter import WebAdapter, WebSettings, make_adapter
from train_adapters.webarena.browser.client import Browser, BrowserOptions
from train_adapters.webarena.failures import Breaker, InfraFailed
from train_adapters.webarena.fleet import Fleet, Seat
from train_adapters.webarena.installed import BROWSERS, chromium, python_of
from train_adapters.webarena.stages import Ended, Opening

_LINK = re.compile(r"\[(\w+)\] link")


@dataclass
class MadeUpStage:
    """One site, whose every episode is worth 1."""

    url: str
    others: tuple[str, ...] = ()
    untouched: bool = False
    changes: int = 0

    def prepare(self, task: AgentTask, browser: Browser) -> Opening:
        names = {url: f"http://made-up-{number}" for number, url in enumerate((self.url, *self.others))}
        return Opening(f"{self.url}/first", names=names)

    def judge(self, task: AgentTask, ended: Ended, browser: Browser) -> float:
        return 1.0

    def note_changes(self) -> None:
        self.changes += 1

    def close(self) -> None:
        """It is the test's."""


@dataclass(frozen=True)
class MadeUpSource:
    tasks: Mapping[str, Sequence[AgentTask]]
    advice = ""
    notes = ()

    def stage(self, number: int) -> MadeUpStage:
        raise AssertionError


def task(name: str) -> AgentTask:
    return AgentTask(name, "train", {"intent": "Follow the link", "sites": ["made-up"]}, group="made-up")


def follows(request: Request, number: int) -> str:
    """A click on the first link, and the end where there is none or it leads nowhere."""
    text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1].text
    link = _LINK.search(text)
    return "exit(done)" if link is None or "is not to be had" in text else f'do(action="Click", element="{link[1]}")'


class Kept(Browser):
    """Used by one adapter after another."""

    def close(self) -> None:
        """The module does it."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Kept]:
    options = BrowserOptions(chromium(), "axtree", action_ms=1_000, navigation_ms=2_000)
    kept = Kept(python_of(BROWSERS), options)
    yield kept
    Browser.close(kept)


def adapter(browser: Browser, stage: MadeUpStage, breaker: Breaker, retries: int = 0) -> WebAdapter:
    """One browser on a site."""
    settings = WebSettings("axtree", turns=4, retries=retries, pause=0.01)
    return WebAdapter(MadeUpSource({}), Fleet([Seat(browser, stage)], breaker), settings)


def played(web: WebAdapter, *names: str, model: ScriptedModel | None = None) -> list[Episode]:
    """Episodes, one after another."""
    model = model or ScriptedModel(follows)
    table = Table(web, model, 1, Timekeeper(model, None, Timings()))
    return [play(table, [Job(task(name), 0, None)], "train/0")[0] for name in names]


def first_page(address: str) -> Answer:
    """With a link to there."""
    return Answer(f"<title>First</title><a href='{address}'>On</a>")


def hangs(asked: Asked) -> Answer:
    return Answer(after=NEVER)


def unavailable(asked: Asked) -> Answer:
    return Answer("<title>Sorry</title>", 503)


def refused() -> str:
    """An address that nobody listens at."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{place.getsockname()[1]}"


def test_a_first_page_that_never_comes_is_tried_thrice_and_then_left_alone(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that hangs must cost neither a 0 nor, for each episode, the time that a page may take."""
    pauses: list[float] = []
    monkeypatch.setattr("train_adapters.webarena.environment.time.sleep", pauses.append)
    with site(hangs) as running:
        web = adapter(browser, MadeUpStage(running.url), Breaker(limit=3, seconds=600), retries=2)
        first, second = played(web, "first", "second")
        tries = running.paths()
    assert (first.ending, first.reward) == (Ending.INFRA_FAILED, None)
    assert pauses[:2] == [0.01, 0.02]
    assert tries == ["/first"] * 3, "three tries open the circuit, and neither episode waits again"
    assert second.ending is Ending.INFRA_FAILED
    assert "circuit_open" in second.reason


@pytest.mark.parametrize(("pages", "kind"), [(hangs, "navigation_timeout"), (unavailable, "site_down")])
def test_what_is_wrong_with_the_first_page_is_told(browser: Browser, pages: Pages, kind: str) -> None:
    """The table of failures is read by whoever has to mend the site."""
    with site(pages) as running:
        (episode,) = played(adapter(browser, MadeUpStage(running.url), Breaker(limit=99)), "first")
        assert (episode.ending, episode.reward) == (Ending.INFRA_FAILED, None)
        assert episode.reason.startswith(kind)
        assert "/first" in episode.reason


def test_a_site_that_refuses_connections_is_down(browser: Browser) -> None:
    """It is what a container that has been stopped looks like."""
    (episode,) = played(adapter(browser, MadeUpStage(refused()), Breaker(limit=99)), "first")
    assert (episode.ending, episode.reward) == (Ending.INFRA_FAILED, None)
    assert episode.reason.startswith("site_down")


@pytest.mark.parametrize(
    ("second", "kind"),
    [
        (Answer(after=NEVER), "navigation_timeout"),
        (Answer("<title>Sorry</title>", 503), "site_down"),
        (Answer("<title>Second</title><script src='/script'></script>"), "navigation_timeout"),
    ],
    ids=["never comes", "unavailable", "hangs half way"],
)
def test_a_page_that_fails_in_the_middle_of_an_episode_is_no_zero(browser: Browser, second: Answer, kind: str) -> None:
    """The agent has clicked rightly; a 0 would teach it not to. The click may have sent something: no second try."""

    def pages(asked: Asked) -> Answer:
        answers = {"/first": first_page("/second"), "/second": second}
        return answers.get(asked.path, Answer(after=NEVER))

    breaker = Breaker(limit=1, seconds=600)
    with site(pages) as running:
        stage = MadeUpStage(running.url)
        (episode,) = played(adapter(browser, stage, breaker), "first")
        assert running.paths()[:2] == ["/first", "/second"]
        assert running.paths().count("/first") == 1
    assert stage.changes == 1
    assert (episode.ending, episode.reward, episode.turns) == (Ending.INFRA_FAILED, None, 1)
    assert episode.reason.startswith(kind)
    with pytest.raises(InfraFailed, match="made-up failed 1 times"):
        breaker.check(["made-up"])


def test_a_site_that_is_gone_after_a_click_is_down(browser: Browser) -> None:
    """A task may lead from one site to another, and that one may have been stopped."""
    gone = refused()
    with site(lambda asked: first_page(f"{gone}/x")) as running:
        (episode,) = played(adapter(browser, MadeUpStage(running.url, (gone,)), Breaker(limit=99)), "first")
    assert (episode.ending, episode.reward) == (Ending.INFRA_FAILED, None)
    assert episode.reason.startswith("site_down")
    assert "CONNECTION_REFUSED" in episode.reason


def test_a_page_from_elsewhere_that_does_not_come_is_the_agents_affair(browser: Browser) -> None:
    """Forums link to all the web, which sites in containers cannot reach: the site must not be blamed for it."""
    outside, breaker = refused(), Breaker(limit=1, seconds=600)
    with site(lambda asked: first_page(f"{outside}/x")) as running:
        (episode,) = played(adapter(browser, MadeUpStage(running.url), breaker), "first")
    breaker.check(["made-up"])
    assert (episode.ending, episode.reward, episode.turns) == (Ending.SCORED, 1.0, 2)


def test_a_page_from_elsewhere_that_hangs_is_left(browser: Browser) -> None:
    """The agent is told, and goes on with the page that it was on."""
    with site(hangs) as outside, site(lambda asked: first_page(f"{outside.url}/x")) as running:
        heard: list[str] = []

        def listens(request: Request, number: int) -> str:
            heard.append(str(request.prompt))
            return "exit(done)" if "has not come in time" in heard[-1] else follows(request, number)

        web = adapter(browser, MadeUpStage(running.url), Breaker())
        (episode,) = played(web, "first", model=ScriptedModel(listens))
    assert (episode.ending, episode.reward, episode.turns) == (Ending.SCORED, 1.0, 2)
    assert "http://made-up-0/first" in heard[-1]


@pytest.mark.parametrize(
    ("link", "second"),
    [
        ("<a href='/second'>On</a>", Answer("text", attached=True)),
        ("<a href='/second'>On</a>", Answer(status=204)),
        ("<a href='/second' target=_blank>On</a>", Answer("<title>Second</title>")),
        ("<iframe src='/hangs'></iframe><a href='/second'>On</a>", Answer("<title>Second</title>")),
        ("<iframe src='/down'></iframe><a href='/second'>On</a>", Answer("<title>Second</title>")),
    ],
    ids=["download", "no content", "new tab", "frame that hangs", "frame that is down"],
)
def test_what_looks_like_a_page_that_fails_is_none(browser: Browser, link: str, second: Answer) -> None:
    """A download is never shown, and a frame of an advertisement may be dead for ever: episodes go on."""
    pages = {
        "/first": Answer(f"<title>First</title>{link}"),
        "/second": second,
        "/hangs": Answer(after=NEVER),
        "/down": Answer(status=503),
    }
    model = ScriptedModel(
        lambda request, number: "exit(done)" if "so far" in str(request) else follows(request, number)
    )
    with site(lambda asked: pages.get(asked.path, Answer(status=404))) as running:
        (episode,) = played(adapter(browser, MadeUpStage(running.url), Breaker()), "first", model=model)
    assert (episode.ending, episode.reward, episode.turns) == (Ending.SCORED, 1.0, 2), episode.reason
    assert "/second" in running.paths()


def test_going_back_to_what_answered_a_form_is_the_agents_affair(browser: Browser) -> None:
    """Sites forbid to keep such pages, and the browser does not send the form again by itself: the site is well."""
    pages = {
        "/first": Answer("<title>First</title><form method=post action=/sent><button>Send</button></form>"),
        "/sent": Answer(first_page("/third").body, kept=False),
        "/third": Answer("<title>Third</title>"),
    }
    with site(lambda asked: pages.get(asked.path, Answer(status=404))) as running:
        seen = browser.call("open", url=f"{running.url}/first", sites=[running.url])
        for role in ("button", "link"):
            element = next(line for line in seen["lines"] if role in line).strip().partition("]")[0].removeprefix("[")
            seen = browser.call("act", name="Click", element=element)
        assert seen["title"] == "Third"
        assert "which is not sent again" in browser.call("act", name="go_backward")["problem"]
        assert browser.call("act", name="go_forward")["title"] == "Third"


def test_slow_pages_within_the_limit_go_through() -> None:
    """Official images take seconds for a page, longer than a click may: the agent must not be told that it failed."""
    heard: list[str] = []

    def listens(request: Request, number: int) -> str:
        heard.append(str(request.prompt))
        return follows(request, number)

    def pages(asked: Asked) -> Answer:
        return first_page("/second") if asked.path == "/first" else Answer("<title>Second</title>", after=2.0)

    with site(pages) as running:
        patient = Browser(python_of(BROWSERS), BrowserOptions(chromium(), "axtree", action_ms=1_000))
        web = adapter(patient, MadeUpStage(running.url), Breaker())
        (episode,) = played(web, "slow", model=ScriptedModel(listens))
        web.close()
        assert running.paths() == ["/first", "/second"]
    assert (episode.ending, episode.reward, episode.turns) == (Ending.SCORED, 1.0, 2)
    assert "Timeout" not in heard[-1]


def test_the_limit_of_a_page_can_be_set() -> None:
    """Sites on a slow machine would fail with the usual one."""
    made = make_adapter("local", navigation_seconds=90)
    assert made._fleet.seats[0].browser._options.navigation_ms == 90_000
    made.close()
    for value in (0, -1, "soon", True):
        with pytest.raises(UserError, match="navigation_seconds must be a number above 0"):
            make_adapter("local", navigation_seconds=value)  # type: ignore[arg-type]
