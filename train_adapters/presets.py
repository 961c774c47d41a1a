"""Presets of trainings: named settings in TOML files, which can be laid over one another.

Settings have the names of the options of `eoh-esopt train`, with underscores; a table [adapter] holds the adapter's,
and [grpo] those of the other arm in `eoh-esopt compare-training`, which a training alone has no use for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import train_adapters
from eoh_esopt.experiments.presets import find_file
from eoh_esopt.experiments.settings_files import Place, checked_settings, kinds_of, read_toml
from eoh_esopt.models.protocol import Sampling
from operators.errors import UserError
from train_adapters.config import PUBLISHED, TrainConfig
from train_adapters.grpo.config import GrpoConfig

FOLDER = Path(train_adapters.__file__).parent / "presets"

_KINDS = kinds_of(TrainConfig, without=("adapter", "adapter_settings", "max_new_tokens", "skill_sha256"))
_GRPO_KINDS = kinds_of(GrpoConfig, without=[one.name for one in fields(Sampling)])
_TABLE, _GRPO_TABLE = "adapter", "grpo"
_SAMPLING = ("temperature", "top_p", "top_k", "presence_penalty")


@dataclass(frozen=True)
class TrainPreset:
    """Named settings.

    Attributes:
        settings: of the training and its sampling.
        adapter: of the adapter.
        about: what they are for, in one line.
        grpo: of the baseline in a comparison.
    """

    settings: Mapping[str, Any]
    adapter: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    grpo: Mapping[str, Any] = field(default_factory=dict)


def preset_names() -> tuple[str, ...]:
    """The presets that are shipped, in alphabetical order."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load_preset(name: str) -> TrainPreset:
    """Read a preset: a shipped one by its name, or a file by its path.

    Raises:
        UserError: there is none, or the file has a key that is not known or a value of another kind.
    """
    path = find_file(name, (FOLDER,))
    content, place = read_toml(path), Place(path)
    about, adapter, grpo = content.pop("about", ""), content.pop(_TABLE, {}), content.pop(_GRPO_TABLE, {})
    if not isinstance(about, str) or not isinstance(adapter, dict) or not isinstance(grpo, dict):
        raise UserError(f"{place}: about must be a text, and [{_TABLE}] and [{_GRPO_TABLE}] tables.")
    grpo = checked_settings(grpo, place.inside(_GRPO_TABLE), kinds=_GRPO_KINDS)
    return TrainPreset(checked_settings(content, place, kinds=_KINDS), adapter, about, grpo)


def config_of(adapter: str, layers: Sequence[TrainPreset]) -> TrainConfig:
    """The settings of a training from several layers; what a later one says goes over what an earlier one said.

    Args:
        adapter: name of the adapter, or the path of the file that defines it.
        layers: settings that none of them has get their defaults.

    Raises:
        UserError: no model is named, a value is out of its range, or two of them do not go together.
    """
    settings: dict[str, Any] = {}
    of_adapter: dict[str, Any] = {}
    for layer in layers:
        settings |= layer.settings
        of_adapter |= layer.adapter
    if "model" not in settings:
        raise UserError("No model is named: give --model, or `model` in a preset.")
    given = {name: settings.pop(name) for name in _SAMPLING if name in settings}
    return TrainConfig(adapter=adapter, adapter_settings=of_adapter, sampling=replace(PUBLISHED, **given), **settings)


def grpo_of(layers: Sequence[TrainPreset]) -> GrpoConfig:
    """The settings of the baseline from several layers, likewise.

    Raises:
        UserError: a value is out of its range.
    """
    settings: dict[str, Any] = {}
    for layer in layers:
        settings |= layer.grpo
    return GrpoConfig(**settings)
