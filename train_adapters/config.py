"""The settings of a training: one frozen record, checked as a whole before anything is loaded or written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from eoh_esopt.engine.config import ENDPOINTS, RunConfig
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.scopes import get_scope
from operators.errors import UserError

PUBLISHED = Sampling(temperature=0.7, top_p=0.8, top_k=20)
"""How the published Sudoku runs drew tokens, but for their presence penalty, which is not drawn with here."""

_FLOOR = 0.25
"""The last sigma as a share of the first, where neither the user nor the scope gives one above 0."""


@dataclass(frozen=True)
class TrainConfig:
    """What a training is to do. The defaults are the published settings of its Sudoku runs.

    What it shares with a search means the same here, see `eoh_esopt.engine.config.RunConfig`.

    Attributes:
        adapter: name of a shipped adapter, or the path of the file that defines one.
        model: name or folder of the model.
        adapter_settings: what the adapter is made with.
        generations: updates, the skipped ones among them.
        directions: of one update.
        batch: tasks that every direction plays in a generation, each direction the same ones.
        samples: episodes of each of them under each direction.
        sigma: size of the perturbations at first; None for the scope's default.
        sigma_final: at last; None for the scope's, or a quarter of the first where the scope's is 0.
        sigma_schedule: cosine, linear or constant.
        alpha: learning rate; None for the scope's default.
        seed: of all random streams.
        sampling: how tokens are drawn; its limit of tokens is the adapter's, see `for_replies_of`.
        over_tasks: whether rewards are z-scores within each task, see `operators.shaping.over_tasks`.
        quorum: share of a direction's episodes that must count, else the direction does not.
        direction_quorum: share of the directions that must count, else there is no update.
        evaluate_every: generations between two evaluations on the validation split; 0 for none but the first and last.
        evaluation_repeats: episodes of each task in an evaluation during the training.
        final_repeats: the same for the last one on the validation split and the one on the test split.
    """

    adapter: str
    model: str
    adapter_settings: Mapping[str, Any] = field(default_factory=dict)
    generations: int = 100
    directions: int = 32
    batch: int = 32
    samples: int = 1
    sigma: float | None = None
    sigma_final: float | None = None
    sigma_schedule: str = "cosine"
    alpha: float | None = None
    seed: int = 20260701
    sampling: Sampling = PUBLISHED
    shaping: str = "z-score"
    over_tasks: bool = False
    antithetic: bool = False
    momentum: float = 0.0
    quorum: float = 0.5
    direction_quorum: float = 0.5
    evaluate_every: int = 10
    evaluation_repeats: int = 1
    final_repeats: int = 3
    scope: str = "full"
    noise: str = "full"
    rank: int | None = None
    restore: str = "exact"
    dtype: str = "auto"
    max_batch: int = 64
    backend: str = "transformers"
    tensor_parallel: int = 1
    servers: str | None = None
    request_timeout: float = 120.0

    def __post_init__(self) -> None:
        for name in ("generations", "batch", "samples", "evaluation_repeats", "final_repeats"):
            _at_least(name, getattr(self, name), 1)
        _at_least("evaluate_every", self.evaluate_every, 0)
        for name in ("quorum", "direction_quorum"):
            share = getattr(self, name)
            if not (math.isfinite(share) and 0 < share <= 1):
                raise UserError(f"{name} must lie in (0, 1], not {share}.")
        if self.backend in ENDPOINTS:
            raise UserError(
                f"Models behind --backend {self.backend} cannot be trained: their weights are not here. "
                "To train, use --backend transformers, vllm or served."
            )
        _ = self.as_run  # the rest is checked there

    @property
    def episodes(self) -> int:
        """Episodes of one direction in one generation."""
        return self.batch * self.samples

    @property
    def as_run(self) -> RunConfig:
        """The settings that loading and testing a model needs, and its checks of all that is shared."""
        shared = {one.name for one in fields(RunConfig)} & {one.name for one in fields(self)}
        return RunConfig(
            problem=self.adapter,
            method="esopt-sample",
            budget=self.directions * self.episodes * self.generations,
            samples_per_direction=self.episodes,
            **{name: getattr(self, name) for name in shared},
        )

    def resolved(self) -> TrainConfig:
        """The same settings with the scope's defaults filled in."""
        scope = get_scope(self.scope, self.as_run.lowrank)
        sigma = scope.sigma[0] if self.sigma is None else self.sigma
        floor = self.sigma_final
        if floor is None:
            floor = _FLOOR * sigma if self.sigma is not None or scope.sigma[1] == 0 else scope.sigma[1]
        return replace(
            self,
            rank=self.as_run.lowrank,
            sigma=sigma,
            sigma_final=floor,
            alpha=scope.alpha if self.alpha is None else self.alpha,
        )

    def for_replies_of(self, new_tokens: int) -> TrainConfig:
        """The same settings with replies as long as the adapter lets them be."""
        return replace(self, sampling=replace(self.sampling, max_new_tokens=new_tokens))

    def to_json(self) -> str:
        """The settings as the run's folder keeps them."""
        return json.dumps(asdict(self), indent=1) + "\n"


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise UserError(f"{name} must be at least {least}, not {value}.")
