"""Trajectories: what was said in the episodes of a training, kept beside its log when that is asked for.

Each wave of episodes is a file of its own, written whole before the log holds the wave: a training that is killed in
between plays the wave again and writes the same file again. Evaluations are not kept: nothing may be learnt from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import write_atomically
from eoh_esopt.models.protocol import Prompt, Turn
from operators.errors import UserError
from operators.records import Direction
from train_adapters.adapter import Ending, Episode

FOLDER = "trajectories"


@dataclass(frozen=True)
class Step:
    """One turn of an episode.

    Attributes:
        shown: what the model was shown that it had not seen in the turn before: the observation, or the whole prompt
            where that is written anew every turn.
        reply: what it answered.
    """

    shown: tuple[Turn, ...]
    reply: str


@dataclass(frozen=True)
class Trajectory:
    """What was said in one episode, and what became of it.

    Attributes:
        generation: of the training.
        candidate: running number of the direction within the generation.
        direction: the perturbation it was played under; None for the current weights.
        task: id of the task.
        sample: running number of the episode among those of the task under its direction.
        ending: how it ended.
        reward: what it was worth; None unless the ending counts.
        reason: one line for people; empty for a scored episode.
        steps: its turns.
    """

    generation: int
    candidate: int
    direction: Direction | None
    task: str
    sample: int
    ending: Ending
    reward: float | None
    reason: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Kept:
    """A trajectory and the place it was read from.

    Attributes:
        trajectory: the trajectory.
        file: relative to the training's folder.
        line: running number in the file, from 1.
    """

    trajectory: Trajectory
    file: str
    line: int


def news(prompt: Prompt, before: Prompt | None, reply: str) -> tuple[Turn, ...]:
    """What a prompt shows that neither the prompt before it nor the reply to that held.

    A text, which is written anew every turn, is new as a whole.
    """
    if isinstance(prompt, str):
        return (Turn("user", prompt),)
    seen = () if before is None or isinstance(before, str) else (*before, Turn("assistant", reply))
    if prompt[: len(seen)] == seen:
        return prompt[len(seen) :]
    pairs = zip(prompt, seen, strict=False)
    same = next((at for at, (one, old) in enumerate(pairs) if one != old), min(len(prompt), len(seen)))
    return prompt[same:]  # such as a reply that the environment has shortened


def wave_file(generation: int, wave: int) -> str:
    """Where the trajectories of a wave lie, relative to the training's folder."""
    return f"{FOLDER}/generation-{generation:04d}/wave-{wave:04d}.jsonl"


def write_wave(folder: Path, generation: int, wave: int, trajectories: Iterable[Trajectory]) -> None:
    """Write the trajectories of a wave, whole or not at all.

    Raises:
        UserError: the file cannot be written.
    """
    path = folder / wave_file(generation, wave)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make {path.parent}: {error.strerror}. Make room or choose another folder.") from error
    lines = (json.dumps(_fields(one), ensure_ascii=True) + "\n" for one in trajectories)
    write_atomically(path, "".join(lines))


def read_trajectories(folder: Path, generations: Sequence[int] | None = None) -> list[Kept]:
    """The trajectories that a training has kept, in the order of generations, waves and lines.

    Args:
        folder: of the training.
        generations: those to read; None for all there are.

    Raises:
        UserError: there are none of a generation that is asked for, or a file is damaged.
    """
    if generations is None:
        found = sorted((folder / FOLDER).glob("generation-*/wave-*.jsonl"))
    else:
        found = [path for one in generations for path in _files(folder, one)]
    if not found:
        raise UserError(
            f"{folder} holds no trajectories. Train with --trajectories, or with --co-evolve, to have them kept."
        )
    return [kept for path in found for kept in _read(folder, path)]


def trajectory(
    episode: Episode, steps: Sequence[Step], generation: int, candidate: int, direction: Direction | None
) -> Trajectory:
    """The trajectory of an episode, played under a direction in a generation."""
    return Trajectory(
        generation=generation,
        candidate=candidate,
        direction=direction,
        task=episode.task,
        sample=episode.sample,
        ending=episode.ending,
        reward=episode.reward,
        reason=episode.reason,
        steps=tuple(steps),
    )


def _files(folder: Path, generation: int) -> list[Path]:
    place = folder / wave_file(generation, 0)
    found = sorted(place.parent.glob("wave-*.jsonl"))
    if not found:
        raise UserError(
            f"The trajectories of generation {generation + 1} are missing at {place.parent}. Bring them back."
        )
    return found


def _fields(one: Trajectory) -> dict[str, Any]:
    direction = None if one.direction is None else [one.direction.seed, one.direction.sigma]
    return {**asdict(one), "ending": one.ending.value, "direction": direction}


def _read(folder: Path, path: Path) -> Iterable[Kept]:
    file = path.relative_to(folder).as_posix()
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield Kept(_trajectory(json.loads(line)), file, number)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: {error!r}. Restore it from a copy.") from error


def _trajectory(fields: dict[str, Any]) -> Trajectory:
    direction = fields["direction"]
    steps = (Step(tuple(Turn(**turn) for turn in one["shown"]), one["reply"]) for one in fields["steps"])
    made = Trajectory(**{**fields, "ending": Ending(fields["ending"]), "steps": tuple(steps)})
    return replace(made, direction=None if direction is None else Direction(direction[0], direction[1]))
