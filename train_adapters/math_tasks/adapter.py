"""Mathematical tasks as the trainer sees them: rows from files or drawn, a shell in the sandbox, and the scorer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from operators.errors import UserError
from train_adapters.adapter import AgentTask, Judged
from train_adapters.math_tasks.generator import KINDS as EVERY_KIND
from train_adapters.math_tasks.generator import SEED, Recipe, generate
from train_adapters.math_tasks.notation import last_boxed
from train_adapters.math_tasks.rows import MathRow, read_folder
from train_adapters.math_tasks.scorer import Scorer, Verdict, prediction_of
from train_adapters.react import Brief, ReactAdapter, ReactLimits, ReactParts, Transcript, system_text
from train_adapters.tools import ToolLimits, make_sandbox

DRAWN = {"train": 64, "val": 16, "test": 32}
"""Rows of each split where there is no data."""

SYSTEM = system_text(
    "You solve mathematical problems, and you have a computer for it.",
    "The shell has python3, with sympy and numpy. For example:\n"
    'Action: {"name": "bash", "command": "python3 -c \'print(3**5 % 7)\'"}',
    r"Final answer: \boxed{<your answer>}",
    "Give the exact answer. If a problem asks for another form of the last line, use the form above all the same.",
)


class MathTasks:
    """What the loop asks of the tasks: how an episode begins, and what its answer is worth.

    Args:
        scorer: judges the answers.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def brief(self, task: AgentTask) -> Brief:
        return Brief(SYSTEM, f"Problem:\n{task.payload['question']}\n\nRun a command before you answer.")

    async def score(self, task: AgentTask, transcript: Transcript) -> float:
        """1 for the right answer, else 0; it says which rule decided."""
        verdict = await self.verdict(task, transcript)
        return Judged(float(verdict.correct), str(verdict))

    async def verdict(self, task: AgentTask, transcript: Transcript) -> Verdict:
        """What the scorer says of the answer of an episode."""
        return await self._scorer.verdict(answer_of(transcript), task.payload["answer"])


def answer_of(transcript: Transcript) -> str:
    """The answer of an episode: its final answer's, or else the last one boxed in its last reply; empty for none."""
    return prediction_of(transcript.answer) or last_boxed(transcript.last_reply) or ""


def make_adapter(
    data: str | None = None,
    kinds: str | Iterable[str] = "all",
    level: int | Iterable[int] = 2,
    train: int | None = None,
    val: int | None = None,
    test: int | None = None,
    val_share: float = 0.1,
    seed: int = SEED,
    turns: int = 50,
    new_tokens: int = 4096,
    context_tokens: int = 131_072,
    tool_seconds: float = 20.0,
    unsafe_tools: bool = False,
) -> ReactAdapter:
    """The adapter of mathematical tasks from its settings.

    Args:
        data: folder with train.jsonl, test.jsonl and, if there is one, val.jsonl, see `rows`; None to draw tasks.
        kinds: of drawn tasks, of `generator.KINDS`: one, several, or `all`.
        level: of drawn tasks, from 1 to 4: one, or several to mix.
        train: rows to learn from: of the data the first so many, by default all; of drawn ones 64.
        val: rows to evaluate on during the training; of drawn ones 16.
        test: rows to evaluate on at the end; of drawn ones 32.
        val_share: of the rows of train.jsonl that are held back where there is no val.jsonl.
        seed: of the drawn tasks, and of what is held back.
        turns: most replies of an episode.
        new_tokens: most tokens of a reply.
        context_tokens: most tokens of a prompt with the reply reserved for it.
        tool_seconds: most seconds of one command.
        unsafe_tools: run commands without the sandbox.

    Raises:
        UserError: a setting is out of range, the data cannot be used, math-verify is missing, or the sandbox does not
            work here.
    """
    counts = {"train": train, "val": val, "test": test}
    for name, count in counts.items():
        if count is not None and (type(count) is not int or count < 0):
            raise UserError(f"{name} must be a whole number of at least 0, not {count!r}.")
    if not 0 <= val_share < 1:
        raise UserError(f"val_share must lie in [0, 1), not {val_share!r}.")
    if data is None:
        rows = generate(Recipe(_several(kinds), _levels(level), _counts(counts), seed))
    else:
        rows = read_folder(Path(data), val_share, seed)
    mathematics = MathTasks(Scorer())
    sandbox = make_sandbox(ToolLimits(wall_s=tool_seconds), unsafe=unsafe_tools, hidden=[Path(data)] if data else [])
    return ReactAdapter(
        ReactParts(
            name="math",
            tasks={split: _tasks(split, of_split[: counts[split]]) for split, of_split in rows.items()},
            brief=mathematics.brief,
            score=mathematics.score,
            sandbox=sandbox,
            limits=ReactLimits(turns, new_tokens, context_tokens),
        )
    )


def _several(kinds: str | Iterable[str]) -> tuple[str, ...]:
    names = tuple(kinds.replace(" ", "").split(",")) if isinstance(kinds, str) else tuple(kinds)
    return tuple(EVERY_KIND) if names == ("all",) else names


def _levels(level: int | Iterable[int]) -> tuple[int, ...]:
    return (level,) if isinstance(level, int) else tuple(level)


def _counts(counts: Mapping[str, int | None]) -> tuple[tuple[str, int], ...]:
    """The order in which splits are drawn: what is learnt from first."""
    return tuple((split, DRAWN[split] if count is None else count) for split, count in counts.items())


def _tasks(split: str, rows: Sequence[MathRow]) -> list[AgentTask]:
    # Two turns are the fewest: a command has to be run before the answer.
    return [AgentTask(one.id, split, {"question": one.question, "answer": one.answer}, 2) for one in rows]
