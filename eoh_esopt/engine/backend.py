"""The model of a run, by the backend that its settings name."""

from __future__ import annotations

from collections.abc import Callable

from eoh_esopt.engine.config import RunConfig
from eoh_esopt.models.fetch import resolve
from eoh_esopt.models.progress import console_progress
from eoh_esopt.models.protocol import LanguageModel
from eoh_esopt.models.scopes import get_scope


def load_model(config: RunConfig, notify: Callable[[str], None]) -> LanguageModel:
    """Load or reach the model. Backends are imported only when they are asked for.

    Raises:
        UserError: the model cannot be loaded or reached, or the backend's packages are not installed.
    """
    return _LOADERS[config.backend](config, notify)


def _transformers(config: RunConfig, notify: Callable[[str], None]) -> LanguageModel:
    from eoh_esopt.models.transformers_model import TransformersModel

    with console_progress() as progress:
        folder = resolve(config.model, progress=progress)
    notify(f"Loading {folder.name}")
    return TransformersModel(
        folder,
        scope=get_scope(config.scope),
        sampling=config.sampling,
        restore=config.restore,
        dtype=config.dtype,
        max_batch=config.max_batch,
    )


_LOADERS = {"transformers": _transformers}
