"""`eoh-esopt skill`: distil a skill from a training's trajectories, outside of the training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from operators.errors import UserError

if TYPE_CHECKING:
    from eoh_esopt.models.protocol import LanguageModel
    from train_adapters.config import TrainConfig
    from train_adapters.skills.distil import Revision


@click.group()
def skill() -> None:
    """Skills: short texts of lessons, learnt from trajectories, that an agent's prompts show.

    \b
    Examples:
      eoh-esopt skill distil runs/sudoku -o skills/sudoku
      eoh-esopt train sudoku --skill skills/sudoku/skill_001.md --model Qwen3.5-4B --out runs/with-skill
    """


@skill.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="New folder for the skill.")
@click.option("--model", help="What reads and writes: a model of ours, or of the endpoint.  [default: the run's]")
@click.option("--base-url", help="Address of an OpenAI-compatible endpoint.  [default: the model runs here]")
@click.option("--skill", "start", type=click.Path(path_type=Path), help="Skill to start from.  [default: none]")
@click.option("--generations", help="Those to learn from, such as 5 or 3-8, from 1.  [default: all]")
@click.option("--lessons", type=int, default=16, show_default=True, help="Most trajectories to learn from.")
@click.option("--lines", type=int, default=80, show_default=True, help="Most lines of the skill.")
@click.option("--success", type=float, default=1.0, show_default=True, help="Least reward of a success.")
@click.option("--tokens", type=int, default=512, show_default=True, help="Most tokens of a reply.")
@click.option("--seed", type=int, default=20260701, show_default=True, help="Seed of the replies.")
def distil(
    run: Path,
    out: Path,
    model: str | None,
    base_url: str | None,
    start: Path | None,
    generations: str | None,
    lessons: int,
    lines: int,
    success: float,
    tokens: int,
    seed: int,
) -> None:
    """Learn a skill from the trajectories of the training in RUN.

    Exit code 0 when there is a new version, 1 when there is none.

    \b
    Examples:
      eoh-esopt skill distil runs/sudoku -o skills/sudoku
      eoh-esopt skill distil runs/math --model gpt-5.4-nano --base-url api.openai.com -o skills/math
      eoh-esopt skill distil runs/math --generations 3-8 --skill skills/math/skill_001.md -o skills/more
    """
    from contextlib import closing

    from eoh_esopt.engine.config import read_config
    from eoh_esopt.engine.events import CONFIG
    from train_adapters.config import TrainConfig
    from train_adapters.skills.distil import Outcome, Recipe, distil
    from train_adapters.skills.selection import rule_of
    from train_adapters.skills.versions import read_skill
    from train_adapters.skills.writer import Writer
    from train_adapters.trajectories import read_trajectories

    for name, value in {"--lessons": lessons, "--lines": lines, "--tokens": tokens}.items():
        if value < 1:
            raise UserError(f"{name} must be at least 1, not {value}.")
    if out.exists():
        raise UserError(f"{out} is there already. Choose another folder by -o.")
    config = read_config(run / CONFIG, TrainConfig)
    text = "" if start is None else read_skill(start)
    kept = read_trajectories(run, parse_generations(generations))
    recipe = Recipe(rule_of(config.adapter, success), lessons, lines)
    with closing(_model(config, model, base_url, tokens)) as writes:
        revision = distil(kept, text, Writer(writes, seed, "distil", tokens), recipe, out)
    _write(out, text, revision)
    click.echo(_told(revision))
    if revision.outcome is not Outcome.PROPOSED:
        raise SystemExit(1)
    click.echo(f"Skill: {out / 'skill_001.md'}")


def parse_generations(text: str | None) -> list[int] | None:
    """Generations from 0, from the words of --generations, which count from 1; None for all.

    Raises:
        UserError: it is neither a number nor a range.
    """
    if text is None:
        return None
    first, _, last = text.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal() and 1 <= int(first) <= int(last or first)):
        raise UserError(f"--generations takes a number or a range from 1 on, such as 5 or 3-8, not {text!r}.")
    return list(range(int(first) - 1, int(last or first)))


def _model(config: TrainConfig, name: str | None, base_url: str | None, tokens: int) -> LanguageModel:
    """What reads and writes: an endpoint's model, or one of ours on the weights it was published with."""
    from dataclasses import replace

    from eoh_esopt.engine.backend import load_model
    from train_adapters.skills.begin import DRAWN, endpoint

    def notify(line: str) -> None:
        click.echo(line, err=True)

    if base_url is not None:
        if name is None:
            raise UserError("--base-url needs the name of a model there, by --model.")
        return endpoint(name, base_url, tokens, notify)
    sampling = replace(DRAWN, max_new_tokens=tokens)
    return load_model(replace(config.as_run, model=name or config.model, sampling=sampling), notify)


def _write(out: Path, start: str, revision: Revision) -> None:
    """The versions, and the manifest that says which came from which."""
    from train_adapters.skills.distil import Outcome
    from train_adapters.skills.versions import Skill, Version, keep, write_manifest

    begun, new = Skill(0, start), Skill(1, revision.text)
    versions = [Version(begun.file, begun.sha256, None, None, "begun")]
    keep(out, begun)
    if revision.outcome is Outcome.PROPOSED:
        keep(out, new)
        versions.append(Version(new.file, new.sha256, begun.file, None, "proposed"))
    write_manifest(out, versions)


def _told(revision: Revision) -> str:
    """What came of it, in lines."""
    parts: list[Any] = [
        f"{revision.read} trajectories read, {revision.lessons} lessons, {revision.made} edits made, "
        f"{revision.dropped} dropped; {revision.cost.calls} replies, {revision.cost.new_tokens:,} tokens written",
        *(f"No answer ({one.kind.value}) to {one.what}: {one.text}" for one in revision.failures),
    ]
    if revision.reason:
        parts.append(f"No new version: {revision.outcome.value}: {revision.reason}")
    return "\n".join(parts)
