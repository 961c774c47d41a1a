"""Replay: the weights of a run from its base model and its history alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eoh_esopt.engine.history import History
from eoh_esopt.models.endpoint import ENDPOINT
from eoh_esopt.models.fetch import resolve
from eoh_esopt.models.progress import console_progress
from eoh_esopt.models.protocol import LanguageModel, Sampling
from eoh_esopt.models.scopes import get_scope
from eoh_esopt.models.transformers_model import TransformersModel
from eoh_esopt.models.weights import drifts
from operators.errors import UserError
from operators.records import Update


@dataclass(frozen=True)
class Adapted:
    """A model at the end of a history.

    Attributes:
        model: with the adapted weights.
        checksum: sha256 of its true weights.
        verdict: one line on whether that is what the run ended with.
    """

    model: TransformersModel
    checksum: str
    verdict: str


def replay_history(
    history: History,
    name: str,
    progress: Callable[[Iterable[Update]], Iterable[Update]],
) -> Adapted:
    """Load the base model and apply every update.

    Args:
        history: what to replay.
        name: the base model, as `resolve` takes it.
        progress: wraps the updates, to show a bar.

    Raises:
        UserError: the base model is not the one of the history, or the result is not what the run ended with; or the
            run was made with an endpoint.
    """
    if history.base_checksum.startswith(ENDPOINT):
        raise UserError(
            f"The run was made with {history.model} at an endpoint: its weights are not here and did not move, so "
            "there is nothing to replay. Its results stand in the run's folder."
        )
    with console_progress() as bar:
        folder = resolve(name, progress=bar)
    model = TransformersModel(
        folder,
        scope=get_scope(history.scope, history.rank),
        sampling=Sampling(max_new_tokens=1),
        restore=history.restore,
        dtype=history.dtype,
    )
    checksum, verdict = replay_on(model, history, name, progress)
    return Adapted(model, checksum, verdict)


def replay_on(
    model: LanguageModel, history: History, name: str, progress: Callable[[Iterable[Update]], Iterable[Update]]
) -> tuple[str, str]:
    """Apply every update to a model that is loaded already.

    Args:
        model: with the weights that the history begins with.
        history: what to replay.
        name: what the user calls the model.
        progress: wraps the updates, to show a bar.

    Returns:
        The checksum afterwards, and one line on whether that is what the run ended with.

    Raises:
        UserError: the model is not the one of the history, or the result is not what the run ended with.
    """
    base = model.checksum()
    if base != history.base_checksum:
        raise UserError(
            f"The history begins with weights {history.base_checksum[:12]}, but {name} has {base[:12]}. "
            "Give the model it began with by --model."
        )
    for update in progress(history.updates):
        model.apply(update)
    checksum = model.checksum()
    if history.final_checksum is None:
        return checksum, "The run is not finished: these are its weights so far."
    if checksum != history.final_checksum and not drifts(history.restore):
        raise UserError(
            f"Replay gave weights {checksum[:12]}, and the run ended with {history.final_checksum[:12]}: "
            "the history or the model is damaged. Restore the run's folder from a copy."
        )
    same = checksum == history.final_checksum
    return checksum, "The weights equal the run's." if same else _drifted(history)


def _drifted(history: History) -> str:
    return f"The run ended with {history.final_checksum}: restore mode 'subtract' drifts, so a replay only comes close."
