"""The loop from the first prompt to the score, with a tool that answers by a script and with a real one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tool_cases import sandbox

from eoh_esopt.engine.timings import Timekeeper, Timings
from eoh_esopt.models.protocol import Reply, Request, Turn
from eoh_esopt.testing.scripted_model import ScriptedModel
from operators.errors import UserError
from train_adapters.adapter import AgentTask, Ending, Episode
from train_adapters.config import TrainConfig
from train_adapters.listener import TrainListener
from train_adapters.pace import FREE
from train_adapters.react import Brief, ReactAdapter, ReactLimits, ReactParts, Transcript, system_text
from train_adapters.react.rules import STOP
from train_adapters.rollout import Job, Table, play
from train_adapters.run import start
from train_adapters.skills.inject import with_skill
from train_adapters.tasks import prepared
from train_adapters.tools import Mount, ToolEnd, ToolResult

PAGE = Path(__file__).parents[2] / "docs" / "react.md"
TASK = AgentTask("sum", "train", {"question": "6 * 7?", "answer": "42"})
LOOK = 'Action: {"name": "bash", "command": "look"}'


@dataclass
class FakeTool:
    """A sandbox and its only tool: shows the same text for every command."""

    text: str = "42"
    commands: list[str] = field(default_factory=list)
    closed: int = 0
    notes: tuple[str, ...] = ()

    def open(self, mounts: Sequence[Mount] = ()) -> FakeTool:
        return self

    async def run(self, command: str) -> ToolResult:
        self.commands.append(command)
        return ToolResult(self.text, ToolEnd.EXITED, 0)

    async def close(self) -> None:
        self.closed += 1


class Plays:
    """One episode of the loop.

    Attributes:
        episode: what came of it.
        scored: the transcripts that were scored.
        model: with its requests.
    """

    def __init__(self, replies: Sequence[str | Reply], tool: Any = None, skill: str = "", **limits: int) -> None:
        self.scored: list[Transcript] = []
        self.tool = FakeTool() if tool is None else tool
        self.model = _Says(replies)
        parts = ReactParts("sums", {"train": [TASK]}, _brief, self._score, self.tool, ReactLimits(**limits))
        adapter = with_skill(ReactAdapter(parts), skill)
        table = Table(adapter, self.model, 1, Timekeeper(self.model, None, Timings()))
        self.episode: Episode = play(table, [Job(TASK, 0, None)], "train/0")[0]

    async def _score(self, task: AgentTask, transcript: Transcript) -> float:
        self.scored.append(transcript)
        return float(transcript.answer == task.payload["answer"])

    @property
    def heard(self) -> str:
        """The last user turn that the model was shown."""
        return self.model.requests[-1].prompt[-1].text


class _Says(ScriptedModel):
    """Gives the replies in their order; a token a word."""

    def __init__(self, replies: Sequence[str | Reply]) -> None:
        super().__init__()
        self._replies = list(replies)

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        self.requests += requests
        [request] = requests
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        read = sum(len(turn.text.split()) for turn in request.prompt)
        return [Reply(reply, read, len(reply.split()), False) if isinstance(reply, str) else reply]


def _brief(task: AgentTask) -> Brief:
    return Brief(system_text("You calculate."), task.payload["question"])


def test_an_episode_from_its_question_to_its_reward() -> None:
    """Else the loop does not do what it is for."""
    plays = Plays([LOOK, "Final answer: 42"])
    assert (plays.episode.ending, plays.episode.reward, plays.episode.reason) == (Ending.SCORED, 1.0, "")
    assert (plays.episode.turns, plays.episode.unparsed) == (2, 0)
    assert plays.tool.commands == ["look"]
    assert plays.tool.closed == 1
    system, *turns = plays.model.requests[-1].prompt
    assert system.role == "system"
    assert 'Action: {"name": "bash", "command":' in system.text
    assert turns == [
        Turn("user", "6 * 7?"),
        Turn("assistant", LOOK),
        Turn("user", "Observation from bash:\n42"),
    ]
    assert plays.model.requests[-1].stop == STOP == ("Observation:", "Observation from")
    [transcript] = plays.scored
    assert (transcript.answer, transcript.tool_calls, transcript.ending.value) == ("42", 1, "answered")
    assert transcript.last_reply == "Final answer: 42"
    assert transcript.turns == (system, *turns, Turn("assistant", "Final answer: 42"))


@pytest.mark.parametrize(
    ("reply", "hears", "unparsed"),
    [
        ("Final answer: 42", "You have not run a command yet", 0),
        ("I think.", "neither an action nor a final answer", 1),
        ("", "neither an action nor a final answer", 1),
        ('Action: {"name": "search", "command": "x"}', "There is no tool 'search'", 0),
        ('Action: {"name": "bash"}', "has no command", 0),
    ],
)
def test_a_broken_rule_is_told_and_costs_a_turn(reply: str, hears: str, unparsed: int) -> None:
    """Else the agent is not told what it did wrong, or may try without end, or answers without its tool."""
    plays = Plays([reply, LOOK, "Final answer: 42"])
    told = plays.model.requests[1].prompt
    assert told[-2] == Turn("assistant", reply)
    assert told[-1].role == "user"
    assert hears in told[-1].text
    assert (plays.episode.reward, plays.episode.turns, plays.episode.unparsed) == (1.0, 3, unparsed)
    assert plays.tool.commands == ["look"]


def test_reasoning_is_not_repeated_to_the_model() -> None:
    """Else each turn's reasoning fills the context of all later ones."""
    plays = Plays([f"<think>\n{LOOK.replace('look', 'no')}\n</think>\n\n{LOOK}", "so</think>Final answer: 42"])
    assert plays.tool.commands == ["look"]
    assert Turn("assistant", LOOK) in plays.model.requests[-1].prompt
    assert plays.scored[0].last_reply == "Final answer: 42"


def test_invented_observations_are_dropped() -> None:
    """Else the agent believes what it made up about the tool's output."""
    plays = Plays([f"{LOOK}\nObservation from bash:\n17\nFinal answer: 17", "Final answer: 42"])
    assert plays.model.requests[-1].prompt[-2:] == (Turn("assistant", LOOK), Turn("user", "Observation from bash:\n42"))


def test_a_scorer_sees_an_answer_that_is_wrong() -> None:
    """Else every answer is worth the same."""
    assert Plays([LOOK, "Final answer: 43"]).episode.reward == 0.0


@pytest.mark.parametrize(
    ("replies", "limits", "reason", "scored"),
    [
        ([LOOK], {"turns": 3}, "turns spent: 3", True),
        ([LOOK], {"context_tokens": 160, "new_tokens": 30}, "context full", False),
        ([LOOK], {"total_tokens": 30, "new_tokens": 10}, "tokens spent", True),
        ([LOOK, Reply("", 500, 0, truncated=True)], {}, "context full", False),
        (["no"], {"turns": 3}, "turns spent: 3", False),
    ],
)
def test_every_ending_has_a_name(replies: list[str | Reply], limits: dict[str, int], reason: str, scored: bool) -> None:
    """Else nobody can tell why episodes fail, or one that overflowed its context is scored by chance."""
    plays = Plays(replies, **limits)
    assert plays.episode.ending is Ending.AGENT_FAILED
    assert plays.episode.reason.startswith(reason)
    assert plays.episode.reward == 0.0
    assert [one.ending.value for one in plays.scored] == [reason.partition(":")[0]] * scored


def test_the_reserved_reply_always_fits() -> None:
    """Else the model is asked for a reply that it has no room for."""
    context, reserved = 300, 40
    plays = Plays([LOOK], FakeTool("word " * 20), context_tokens=context, new_tokens=reserved)
    read = [sum(len(turn.text.split()) for turn in request.prompt) for request in plays.model.requests]
    assert len(read) > 2
    assert all(tokens + reserved <= context * 1.1 for tokens in read), "but for what is estimated of one observation"
    assert plays.episode.reason.startswith("context full")


def test_no_command_is_worth_nothing() -> None:
    """Else an agent that guesses, and never works, is paid for luck."""
    plays = Plays(["Final answer: 42"], turns=2)
    assert (plays.episode.reward, plays.episode.why) == (0.0, "no command was run")
    assert not plays.scored


def test_the_models_prompt_holds_the_skill_at_the_end_of_the_system_turn() -> None:
    """Else a skill is learnt and never told."""
    plays = Plays([LOOK, "Final answer: 42"], skill="- Check the sum twice.")
    for request in plays.model.requests:
        assert request.prompt[0].role == "system"
        assert request.prompt[0].text.endswith("- Check the sum twice.")
        assert all("twice" not in turn.text for turn in request.prompt[1:])


@pytest.mark.parametrize("limits", [{"turns": 0}, {"new_tokens": 0}, {"context_tokens": 10}, {"total_tokens": 10}])
def test_limits_that_no_reply_fits_in_are_refused(limits: dict[str, int]) -> None:
    """Else every episode ends before it began, and the agent is punished for it."""
    with pytest.raises(UserError, match=next(iter(limits))):
        ReactLimits(**limits)


def test_whoever_forgets_to_tell_the_reply_is_told() -> None:
    """Else another driver of the loop plays conversations in which the model said nothing."""

    async def forgets() -> None:
        parts = ReactParts("sums", {}, _brief, None, FakeTool())  # type: ignore[arg-type]
        await ReactAdapter(parts).environment(TASK).step(None)

    with pytest.raises(RuntimeError, match="hear before step"):
        asyncio.run(forgets())


@pytest.mark.parametrize("pace", ["rounds", FREE])
def test_episodes_with_real_tools_side_by_side(pace: str) -> None:
    """Else the loop and the sandbox do not fit together, or episodes see one another's files."""
    tools = sandbox()
    tasks = [AgentTask(str(number), "train", {"question": f"{number} * 7?"}) for number in range(4)]

    def write(request: Request, number: int) -> str:
        asked, said = request.prompt[1].text, [turn.text for turn in request.prompt[2:]]
        factor = asked.split()[0]
        steps = [
            f'Action: {{"name": "bash", "command": "ls; echo $(({factor} * 7)) > result"}}',
            "Action: {'name': 'bash', 'command': 'cat result'}",
            f"Final answer: {said[-1].split()[-1] if said else ''}",
        ]
        return steps[len(said) // 2]

    async def score(task: AgentTask, transcript: Transcript) -> float:
        assert "result" not in transcript.turns[3].text, "the folder is empty at first"
        return float(transcript.answer == str(int(task.id) * 7))

    model = ScriptedModel(write)
    adapter = ReactAdapter(ReactParts("sums", {"train": tasks}, _brief, score, tools))
    table = Table(adapter, model, 1, Timekeeper(model, None, Timings()), pace=pace)
    episodes = play(table, [Job(task, 0, None) for task in tasks], "train/0")
    assert [(one.ending, one.reward, one.turns) for one in episodes] == [(Ending.SCORED, 1.0, 3)] * 4


@pytest.fixture
def page_adapter(tmp_path: Path) -> str:
    """The adapter of docs/react.md, as a user saves it."""
    section = PAGE.read_text().partition("## Write one of your own")[2]
    program = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    path = tmp_path / "sums.py"
    path.write_text(program)
    return str(path)


def test_the_adapter_of_the_page_plays(page_adapter: str) -> None:
    """Else whoever follows the page has an adapter that does not work."""
    sandbox()
    adapter, by_split = prepared(page_adapter, {"turns": 3})
    model = _Says(['Action: {"name": "bash", "command": "echo $((3 * 7))"}', r"Final answer: \boxed{21}"])
    table = Table(adapter, model, 1, Timekeeper(model, None, Timings()))
    [episode] = play(table, [Job(by_split["train"][3], 0, None)], "train/0")
    assert (episode.ending, episode.reward) == (Ending.SCORED, 1.0)


@pytest.mark.parametrize("unsafe", [True, False])
def test_unsafe_tools_are_announced_before_anything_runs(page_adapter: str, tmp_path: Path, unsafe: bool) -> None:
    """Else a user who copied a command does not know what runs on that user's machine."""
    if not unsafe:
        sandbox()
    said: list[str] = []
    config = TrainConfig(page_adapter, "none", {"unsafe_tools": unsafe}, batch=33)
    with pytest.raises(UserError, match="33"):
        start(config, tmp_path / "run", listener=TrainListener(), notify=said.append)
    assert [line.startswith("UNSAFE TOOLS") for line in said] == [True] * unsafe
    assert config.adapter_settings["unsafe_tools"] is unsafe, "which the log's first event holds"
