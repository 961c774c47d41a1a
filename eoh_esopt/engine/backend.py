"""The model of a run, by the backend that its settings name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eoh_esopt.engine.config import ENDPOINTS, RunConfig
from eoh_esopt.models.cassette import Cassette, CassetteModel
from eoh_esopt.models.chat import PLAIN, ChatSettings
from eoh_esopt.models.fetch import resolve
from eoh_esopt.models.progress import console_progress
from eoh_esopt.models.protocol import LanguageModel
from eoh_esopt.models.scopes import get_scope


def load_model(config: RunConfig, notify: Callable[[str], None], settings: ChatSettings = PLAIN) -> LanguageModel:
    """Load or reach the model. Backends are imported only when they are asked for.

    Args:
        config: of the run.
        notify: takes lines for people.
        settings: how conversations are held.

    Raises:
        UserError: the model cannot be loaded or reached, the backend's packages are not installed, or the cassette
            cannot be used.
    """
    if config.cassette is None:
        return _LOADERS[config.backend](config, notify, settings)
    replay_only = config.backend in ENDPOINTS and config.base_url is None
    cassette = Cassette(Path(config.cassette), recording=not replay_only)
    return CassetteModel(_LOADERS[config.backend](config, notify, settings), cassette, _deciding(config, settings))


def _deciding(config: RunConfig, settings: ChatSettings) -> dict[str, Any]:
    """What decides replies beside the requests; what old cassettes do not know stands in it only where it matters."""
    found: dict[str, Any] = {name: getattr(config, name) for name in ("scope", "restore", "dtype")}
    found["sampling"] = asdict(config.sampling)
    if not config.sampling.presence_penalty:
        del found["sampling"]["presence_penalty"]
    if config.lowrank is not None:
        found["lowrank"] = config.lowrank
    if settings != PLAIN:
        found["chat"] = asdict(settings)
    return found


def _transformers(config: RunConfig, notify: Callable[[str], None], settings: ChatSettings) -> LanguageModel:
    from eoh_esopt.models.transformers_model import TransformersModel

    with console_progress() as progress:
        folder = resolve(config.model, progress=progress)
    notify(f"Loading {folder.name}")
    return TransformersModel(
        folder,
        scope=get_scope(config.scope, config.lowrank),
        sampling=config.sampling,
        restore=config.restore,
        dtype=config.dtype,
        max_batch=config.max_batch,
        settings=settings,
    )


def _vllm(config: RunConfig, notify: Callable[[str], None], settings: ChatSettings) -> LanguageModel:
    from eoh_esopt.models.vllm.model import VllmModel

    with console_progress() as progress:
        folder = resolve(config.model, progress=progress)
    notify(f"Starting vLLM with {folder.name}")
    return VllmModel(
        folder,
        scope=config.scope,
        sampling=config.sampling,
        dtype=config.dtype,
        max_batch=config.max_batch,
        tensor_parallel=config.tensor_parallel,
        rank=config.lowrank,
        settings=settings,
    )


def _served(config: RunConfig, notify: Callable[[str], None], settings: ChatSettings) -> LanguageModel:
    from eoh_esopt.models.served_model import ServedModel

    assert config.servers is not None
    notify(f"Reaching {config.servers}")
    return ServedModel(
        config.servers,
        model=config.model,
        scope=config.scope,
        sampling=config.sampling,
        restore=config.restore,
        dtype=config.dtype,
        max_batch=config.max_batch,
        settings=settings,
        timeout_s=max(_LEAST_S, config.request_timeout),
        notify=notify,
    )


_LEAST_S = 600.0
"""Replies of one server are written side by side, so each takes longer than alone."""


def _openai(config: RunConfig, notify: Callable[[str], None], settings: ChatSettings) -> LanguageModel:
    from eoh_esopt.models.openai_model import OpenAIModel

    model = OpenAIModel(
        config.model,
        config.base_url,
        sampling=config.sampling,
        timeout_s=config.request_timeout,
        max_batch=config.max_batch,
        settings=settings,
    )
    if config.cassette is None or not Path(config.cassette).exists():  # recorded replies need no server
        notify(f"Asking {config.model} for a word")
        model.check()
        if model.refused:
            notify(f"The endpoint does not take {', '.join(model.refused)}: its own settings hold there")
    return model


_LOADERS = {"transformers": _transformers, "vllm": _vllm, "served": _served, "openai": _openai}
