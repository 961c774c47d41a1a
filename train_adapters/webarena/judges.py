"""Who says what an episode of WebArena was worth.

`verified` is `webarena-verified`, which is deterministic: it compares the agent's answer and the network trace with
what they should be. `benchmark` is the benchmark's own kind of check: answers and pages are compared, and where an
answer may be worded freely a language model says whether it is right. What cannot be judged is an error, never a 0.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from eoh_esopt.models.endpoint import api_key, normalise_url, without_key
from train_adapters.adapter import AgentTask
from train_adapters.webarena.benchmark_checks import BenchmarkChecks
from train_adapters.webarena.browser.client import Browser
from train_adapters.webarena.browser.line_process import LineProcess
from train_adapters.webarena.failures import JudgeFailed
from train_adapters.webarena.site_sets import SiteSet
from train_adapters.webarena.stages import Ended

_SCORER = Path(__file__).with_name("verified_worker.py")
_SECONDS = 120.0


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

    Raises:
        UserError: the address cannot be used.
    """

    reads_verified = False
    advice = 'If the task cannot be done, end with exit(message="N/A").'

    def __init__(self, model: str, base_url: str | None, tries: int = 4, seconds: float = 60.0) -> None:
        self._model = model
        self._base_url = None if base_url is None else normalise_url(base_url, "--judge-url")
        self._tries, self._seconds = tries, seconds

    def traces(self, number: int) -> Path | None:
        return None

    def score(self, task: AgentTask, ended: Ended, browser: Browser, sites: SiteSet, trace: Path | None) -> float:
        def same(reference: str, text: str) -> bool:
            return self._asked(task.payload["intent"], reference, text)

        return float(BenchmarkChecks(ended, sites, browser, same).hold(task.payload["eval"]))

    def _asked(self, question: str, reference: str, answer: str) -> bool:
        import openai

        client = openai.OpenAI(
            base_url=self._base_url,
            api_key=api_key(),
            max_retries=self._tries - 1,
            timeout=self._seconds,
        )
        text = _QUESTION.format(question=question, reference=reference, answer=answer)
        try:
            reply = client.chat.completions.create(
                model=self._model, temperature=0, messages=[{"role": "user", "content": text}]
            )
            said = (reply.choices[0].message.content or "") if reply.choices else ""
        except openai.OpenAIError as error:
            raise JudgeFailed(without_key(f"{type(error).__name__}: {error}")) from error
        return says_yes(said)


def says_yes(reply: str) -> bool:
    """What a judge's reply says: its first word, after what it thought aloud.

    Raises:
        JudgeFailed: that is neither yes nor no.
    """
    said = reply.rpartition("</think>")[2].strip()
    found = re.match(r"\W*(yes|no)\b", said, re.IGNORECASE)
    if found is None:
        raise JudgeFailed(f"the judge said neither yes nor no: {said[:80]!r}")
    return found[1].lower() == "yes"


_QUESTION = """A web agent was asked: {question}
The right answer is: {reference}
The agent answered: {answer}

Does the agent's answer say the same as the right one? Other words, units or more detail do not matter; a missing or a wrong part does. Answer with one word, yes or no."""  # noqa: E501
