"""Document questions as the trainer sees them: pages that are drawn or read from a folder, the tool, and the score."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from operators.errors import UserError
from train_adapters.adapter import SPLITS, AgentTask, Judged
from train_adapters.docvqa.anls import SUCCESS, similarity
from train_adapters.docvqa.documents import KINDS
from train_adapters.docvqa.generator import VERSION, Recipe, page_file
from train_adapters.docvqa.parquet import as_rows
from train_adapters.docvqa.rows import DocvqaRow, check_apart, read_split
from train_adapters.react import Brief, ReactAdapter, ReactLimits, ReactParts, Transcript, system_text
from train_adapters.tools import Mount, make_sandbox

PAGE = "document.png"
"""Name of the page in the tool's working folder."""

SYSTEM = system_text(
    "You answer questions about a scanned document.",
    files=(
        f"The document is the picture {PAGE} in the current folder. You cannot see it: read it with commands, so:\n"
        f'Action: {{"name": "bash", "command": "tesseract {PAGE} stdout"}}\n'
        "Add --psm 6 for tables and columns. Python with PIL can crop and enlarge the picture."
    ),
    notes="Answer with words or numbers exactly as they stand in the document, as short as possible, with no sentence.",
)
_PUBLISHED_SEED = 20260627
_SHOWN = 100
_FEWEST_TURNS = 2  # a command has to be run before the answer


def make_adapter(
    data: str | None = None,
    kinds: str | Iterable[str] = "all",
    train: int = 50,
    val: int = 16,
    test: int = 100,
    seed: int = _PUBLISHED_SEED,
    last_line: bool = False,
    turns: int = 50,
    new_tokens: int = 512,
    total_tokens: int = 32_768,
    context_tokens: int = 131_072,
    unsafe_tools: bool = False,
) -> ReactAdapter:
    """The adapter from its settings.

    Args:
        data: folder with the questions and pages to read, see `train_adapters.docvqa.rows` and `parquet`; None to draw
            them.
        kinds: of the documents that are drawn, in turn: `form`, `receipt`, `invoice`, `letter`, `table`, or `all`.
        train: questions to learn from, each about a page of its own where they are drawn.
        val: to evaluate on during the training.
        test: to evaluate on at the end.
        seed: of what is drawn.
        last_line: whether the last line of the last reply is taken for the answer where there is no final answer.
        turns: most replies of an episode.
        new_tokens: most tokens of a reply.
        total_tokens: most tokens written and observed in an episode.
        context_tokens: most tokens of a prompt and its reply.
        unsafe_tools: whether commands run without a sandbox.

    Raises:
        UserError: a setting is out of range, the files cannot be used, or Tesseract or the sandbox is missing.
    """
    if shutil.which("tesseract") is None:
        raise UserError("There is no tesseract, and without it no page can be read. Run: apt install tesseract-ocr")
    counts = {"train": train, "val": val, "test": test}
    for name, value in counts.items():
        if type(value) is not int or value < 0:
            raise UserError(f"{name} must be a whole number of at least 0, not {value!r}.")
    if type(seed) is not int:
        raise UserError(f"seed must be a whole number, not {seed!r}.")
    folder = None if data is None else as_rows(Path(data))
    tasks = _drawn(_known(kinds), counts, seed) if folder is None else _read(folder, counts)
    return ReactAdapter(
        ReactParts(
            name="docvqa",
            tasks=tasks,
            brief=partial(_brief, folder=folder or Path()),
            score=partial(_score, last_line=last_line),
            sandbox=make_sandbox(unsafe=unsafe_tools, hidden=[Path(data), folder] if data and folder else []),
            limits=ReactLimits(turns, new_tokens, context_tokens, total_tokens),
            success=SUCCESS,
        )
    )


def prediction(transcript: Transcript, *, last_line: bool) -> str:
    """What an episode answers: its final answer, or, where that is wished, else the last line that was written."""
    if transcript.answer is not None:
        return transcript.answer
    lines = [line.strip() for line in transcript.last_reply.splitlines() if line.strip()]
    return lines[-1] if last_line and lines else ""


async def _score(task: AgentTask, transcript: Transcript, *, last_line: bool) -> Judged:
    predicted = prediction(transcript, last_line=last_line)
    if not predicted:
        return Judged(0.0, "no answer")
    reward = similarity(predicted, task.payload["answers"])
    return Judged(reward, f"{'right' if reward > SUCCESS else 'wrong'}: {predicted[:_SHOWN]!r}")


def _brief(task: AgentTask, *, folder: Path) -> Brief:
    payload = task.payload
    page = page_file(Recipe(**payload["recipe"])) if "recipe" in payload else folder / payload["image"]
    user = f"Question about {PAGE}: {payload['question']}\n\nRun a command that reads the page before you answer."
    return Brief(SYSTEM, user, (Mount(page, PAGE),))


def _known(kinds: str | Iterable[str]) -> tuple[str, ...]:
    wanted = tuple(kinds.replace(" ", "").split(",")) if isinstance(kinds, str) else tuple(kinds)
    if wanted == ("all",):
        return tuple(KINDS)
    for kind in wanted:
        if kind not in KINDS:
            raise UserError(f"kinds has {kind!r}, and there are {', '.join(KINDS)}. Choose among them.")
    if not wanted:
        raise UserError(f"kinds is empty. Choose among {', '.join(KINDS)}.")
    return wanted


def _drawn(kinds: Sequence[str], counts: Mapping[str, int], seed: int) -> dict[str, list[AgentTask]]:
    """One question about each document. A page is drawn when it is first played."""
    return {
        split: [
            _drawn_task(Recipe(seed, split, number, kind)) for number, kind in enumerate(islice(cycle(kinds), count))
        ]
        for split, count in counts.items()
    }


def _drawn_task(recipe: Recipe) -> AgentTask:
    question = recipe.question()
    fields = {"seed": recipe.seed, "split": recipe.split, "number": recipe.number, "kind": recipe.kind}
    payload = {"question": question.text, "answers": list(question.answers), "recipe": fields, "drawn": VERSION}
    return AgentTask(recipe.name, recipe.split, payload, _FEWEST_TURNS)


def _read(folder: Path, counts: Mapping[str, int]) -> dict[str, list[AgentTask]]:
    rows = {split: read_split(folder, split, counts[split]) for split in SPLITS}
    check_apart(rows)
    return {split: [_read_task(split, row) for row in found] for split, found in rows.items()}


def _read_task(split: str, row: DocvqaRow) -> AgentTask:
    payload = {
        "question": row.question,
        "answers": list(row.answers),
        "image": row.image,
        "sha256": row.sha256,
        "doc_id": row.doc_id,
    }
    return AgentTask(row.id, split, payload, _FEWEST_TURNS)
