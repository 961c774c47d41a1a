"""What BrowserGym takes for tasks: a page to begin at. Like `worker.py`, in the browsers' environment."""

from __future__ import annotations

from typing import Any

import page_visits  # type: ignore[import-not-found]


class Page:
    """BrowserGym's task, where somebody else judges."""

    def __init__(self, seed: int, url: str, navigation_ms: float) -> None:
        self.viewport = {"width": 1280, "height": 720}
        self.slow_mo = self.timeout = self.locale = self.timezone_id = None
        self.seed, self.url, self.navigation_ms = seed, url, navigation_ms

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        page_visits.goto(page, self.url, self.navigation_ms)
        return "", {}

    def validate(self, page: Any, messages: Any) -> tuple[float, bool, str, dict[str, Any]]:
        return 0.0, False, "", {}

    def teardown(self) -> None:
        """Nothing was set up."""


class Miniwob(Page):
    """A page of MiniWoB++, which draws its task, shows it, and judges by itself."""

    def __init__(self, seed: int, url: str, navigation_ms: float) -> None:
        super().__init__(seed, url, navigation_ms)
        self.viewport = {"width": 332, "height": 214}

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        super().setup(page)
        page.evaluate(
            """seed => {
                core.EPISODE_MAX_TIME = 1e9;
                Math.seedrandom(seed);
                core.startEpisodeReal();
                document.getElementById("reward-display")?.remove();
            }""",
            str(self.seed),
        )
        said = page.evaluate("(() => { const said = core.getUtterance(); return said.utterance ?? said; })()")
        return str(said), {}

    def validate(self, page: Any, messages: Any) -> tuple[float, bool, str, dict[str, Any]]:
        done = bool(page.evaluate("WOB_DONE_GLOBAL"))
        return (max(0.0, float(page.evaluate("WOB_RAW_REWARD_GLOBAL"))) if done else 0.0), done, "", {}
