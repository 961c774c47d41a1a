"""Who says what an episode of WebArena was worth.

`verified` is `webarena-verified`, which is deterministic: it compares the agent's answer and the network trace with
what they should be. `benchmark` is the benchmark's own kind of check: answers and pages are compared, and where an
answer may be worded freely a language model says whether it is right. What cannot be judged is an error, never a 0.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from train_adapters.adapter import AgentTask
from train_adapters.webarena.browser.client import Browser
from train_adapters.webarena.browser.line_process import LineProcess
from train_adapters.webarena.site_sets import SiteSet
from train_adapters.webarena.sites.checks import Outcome, score
from train_adapters.webarena.stages import Ended

_SCORER = Path(__file__).with_name("verified_worker.py")
_SECONDS = 120.0


class JudgeFailed(Exception):
    """The judge's fault: the episode is left out of the rewards.

    Args:
        text: for people.
    """

    kind = "judge"


class Judge(Protocol):
    """Says what an episode was worth; its methods block."""

    @property
    def reads_verified(self) -> bool:
        """Whether tasks are to be worded as `webarena-verified` words them."""
        ...

    @property
    def advice(self) -> str:
        """What the agent is told about answers; may be empty."""
        ...

    def traces(self, number: int) -> Path | None:
        """File for the network traces of the browser of that number; None where they are not needed."""
        ...

    def score(self, task: AgentTask, ended: Ended, browser: Browser, sites: SiteSet, trace: Path | None) -> float:
        """Between 0 and 1.

        Raises:
            JudgeFailed: it cannot be told.
            InfraFailed: the browser or the sites fail.
        """
        ...


STATUSES = ("ACTION_NOT_ALLOWED_ERROR", "PERMISSION_DENIED_ERROR", "NOT_FOUND_ERROR", "DATA_VALIDATION_ERROR")


class VerifiedJudge:
    """`webarena-verified`.

    Args:
        python: of the environment that it is installed in.
        kinds: by WebArena's id, whether a task is to retrieve, to mutate or to navigate.
    """

    reads_verified = True
    advice = (
        "End with exit(message=...). If the task asks for data, the message is a JSON list of them in the form the "
        f"task asks for; else it is empty. If the task cannot be done, the message is one of {', '.join(STATUSES)}."
    )

    def __init__(self, python: Path, kinds: Mapping[int, str]) -> None:
        self._process = LineProcess(python, _SCORER)
        self._alone = threading.Lock()  # the browsers' threads share the process
        self._kinds = kinds
        self._folder = tempfile.TemporaryDirectory(prefix="eoh-esopt-traces-")

    def traces(self, number: int) -> Path | None:
        return Path(self._folder.name) / f"browser-{number}.har"

    def score(self, task: AgentTask, ended: Ended, browser: Browser, sites: SiteSet, trace: Path | None) -> float:
        browser.call("finish")  # writes the trace
        number = task.payload["webarena_id"]
        response = verified_response(ended.answer, self._kinds[number])
        arguments = {"task": number, "response": response, "trace": str(trace), "urls": dict(sites.urls)}
        with self._alone:
            if self._process.pid is None:
                self._process.start()
            found = self._process.call("score", _SECONDS, arguments)
        if found["status"] not in ("success", "failure", "partial_match"):
            raise JudgeFailed(f"webarena-verified: {found['problem'] or found['status']}")
        return float(found["score"])


def verified_response(answer: str | None, kind: str) -> dict[str, Any]:
    """The agent's answer as `webarena-verified` wants it.

    The kind of the task is filled in, because the agent's actions have no word for it; it says nothing of the solution.

    Args:
        answer: message of `exit`; None where the agent did not end the episode.
        kind: retrieve, mutate or navigate.
    """
    status, data = "SUCCESS", None
    if answer is None:
        status = "UNKNOWN_ERROR"
    elif answer.strip().strip('"') in STATUSES:
        status = answer.strip().strip('"')
    elif kind == "retrieve":
        data = _listed(answer)
    return {"task_type": kind.upper(), "status": status, "retrieved_data": data}


def _listed(answer: str) -> list[Any]:
    try:
        found = json.loads(answer)
    except ValueError:
        found = answer.strip()
    return found if isinstance(found, list) else [found]


class BenchmarkJudge:
    """The benchmark's checks, with a language model for answers that may be worded freely.

    Args:
        model: name of the model.
        base_url: address of an endpoint with OpenAI's protocol; None for OpenAI's own.
        tries: requests before it is given up.
        seconds: limit of each.
    """

    reads_verified = False
    advice = 'If the task cannot be done, end with exit(message="N/A").'

    def __init__(self, model: str, base_url: str | None, tries: int = 4, seconds: float = 60.0) -> None:
        self._model, self._base_url = model, base_url
        self._tries, self._seconds = tries, seconds

    def traces(self, number: int) -> Path | None:
        return None

    def score(self, task: AgentTask, ended: Ended, browser: Browser, sites: SiteSet, trace: Path | None) -> float:
        def fetch(url: str) -> str:
            found = browser.call("read", url=url, expression="document.documentElement.outerHTML")
            return str(found["value"])

        checked, references = without_fuzzy(task.payload)
        if checked["eval"]["eval_types"]:
            urls = {f"__{site.upper()}__": url.rstrip("/") for site, url in sites.urls.items()}
            if not score(checked, Outcome(ended.answer, ended.url, fetch, {}), urls):
                return 0.0
        return float(all(self._is_right(task, ended.answer, reference) for reference in references))

    def _is_right(self, task: AgentTask, answer: str | None, reference: str) -> bool:
        if not answer:
            return False
        if answer.strip().lower() == reference.strip().lower():
            return True
        note = task.payload["eval"].get("string_note") or ""
        return self._asked(task.payload["intent"], f"{reference} ({note})" if note else reference, answer)

    def _asked(self, question: str, reference: str, answer: str) -> bool:
        import openai

        client = openai.OpenAI(
            base_url=self._base_url,
            api_key=os.environ.get("OPENAI_API_KEY", "none"),
            max_retries=self._tries - 1,
            timeout=self._seconds,
        )
        text = _QUESTION.format(question=question, reference=reference, answer=answer)
        try:
            reply = client.chat.completions.create(
                model=self._model, temperature=0, messages=[{"role": "user", "content": text}]
            )
            said = (reply.choices[0].message.content or "").strip().lower() if reply.choices else ""
        except openai.OpenAIError as error:
            raise JudgeFailed(f"{type(error).__name__}: {error}") from error
        if said.startswith("yes") or said.startswith("no"):
            return said.startswith("yes")
        raise JudgeFailed(f"the judge said neither yes nor no: {said[:80]!r}")


_QUESTION = """A web agent was asked: {question}
The right answer is: {reference}
The agent answered: {answer}

Does the agent's answer say the same as the right one? Other words, units or more detail do not matter; a missing or a wrong part does. Answer with one word, yes or no."""  # noqa: E501


def without_fuzzy(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A configuration without the answers that may be worded freely, and those answers."""
    references = dict(config["eval"].get("reference_answers") or {})
    fuzzy = references.pop("fuzzy_match", [])
    kinds = [kind for kind in config["eval"]["eval_types"] if kind != "string_match" or references]
    checked = dict(config) | {"eval": dict(config["eval"]) | {"eval_types": kinds, "reference_answers": references}}
    return checked, [fuzzy] if isinstance(fuzzy, str) else list(fuzzy)
