"""The settings of a training: one frozen record, checked as a whole before anything is loaded or written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from eoh_esopt.engine.config import ENDPOINTS, RunConfig
from eoh_esopt.models.chat import ChatSettings
from eoh_esopt.models.endpoint import normalise_url
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.scopes import get_scope
from operators.errors import UserError
from train_adapters.pace import ROUNDS, check_pace
from train_adapters.skills.plan import ARMS, Plan, planned

PUBLISHED = Sampling(temperature=0.7, top_p=0.8, top_k=20, presence_penalty=1.5)
"""How the published Sudoku runs drew tokens."""

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
        thinking: whether a model that can think does so before it answers.
        pace: when the model answers which episodes, one of `train_adapters.pace.PACES`.
        over_tasks: whether rewards are z-scores within each task, see `operators.shaping.over_tasks`.
        quorum: share of a direction's episodes that must count, else the direction does not.
        direction_quorum: share of the directions that must count, else there is no update.
        evaluate_every: generations between two evaluations on the validation split; 0 for none but the first and last.
        evaluation_repeats: episodes of each task in an evaluation during the training.
        final_repeats: the same for the last one on the validation split and the one on the test split.
        trajectories: whether what is said in the episodes is kept; it always is where a skill is learnt from it.
        co_evolve: what is renewed, one of `train_adapters.skills.plan.ARMS`.
        skill: file of the skill that the training begins with; None for none.
        skill_sha256: hash of its text.
        skill_every: generations behind one revision of the skill.
        skill_check: episodes of each task in the check of a revision, with it and without it each.
        skill_lessons: most trajectories that a revision is learnt from.
        skill_lines: most lines of the skill.
        skill_tokens: most tokens of a reply of the model that revises the skill.
        skill_model: its name at the endpoint; None for the model in training.
        skill_base_url: address of the endpoint; None for the model in training.
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
    thinking: bool = False
    pace: str = ROUNDS
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
    trajectories: bool = False
    co_evolve: str = "weights"
    skill: str | None = None
    skill_sha256: str | None = None
    skill_every: int = 5
    skill_check: int = 4
    skill_lessons: int = 16
    skill_lines: int = 80
    skill_tokens: int = 512
    skill_model: str | None = None
    skill_base_url: str | None = None

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
        check_pace(self.pace)
        self._check_skill()
        _ = self.as_run  # the rest is checked there

    def _check_skill(self) -> None:
        for name in ("skill_every", "skill_check", "skill_lessons", "skill_lines", "skill_tokens"):
            _at_least(name, getattr(self, name), 1)
        if self.co_evolve not in ARMS:
            raise UserError(f"Unknown co_evolve {self.co_evolve!r}. Choose one of: {', '.join(ARMS)}.")
        if (self.skill_model is None) != (self.skill_base_url is None):
            raise UserError(
                "--skill-model and --skill-base-url belong together: an endpoint and its model. Leave both out to have "
                "the model in training revise the skill."
            )
        if self.skill_base_url is not None:
            normalise_url(self.skill_base_url, "--skill-base-url")
        if self.revises and not self.plan.windows:
            raise UserError(
                f"--co-evolve {self.co_evolve} comes to no revision of the skill: {self.generations} generations are "
                f"worth {self.plan.generations} beside its checks, and a revision is due every {self.skill_every}. "
                "Raise --generations, or lower --skill-every or --skill-check."
            )

    @property
    def revises(self) -> bool:
        """Whether the skill is revised."""
        return self.co_evolve != "weights"

    @property
    def keeps(self) -> bool:
        """Whether trajectories are kept."""
        return self.trajectories or self.revises

    @property
    def plan(self) -> Plan:
        """How many generations there are, and when the skill is revised."""
        check = 2 * self.batch * self.skill_check
        return planned(self.co_evolve, self.generations, self.directions * self.episodes, self.skill_every, check)

    @property
    def episodes(self) -> int:
        """Episodes of one direction in one generation."""
        return self.batch * self.samples

    @property
    def as_run(self) -> RunConfig:
        """The settings that loading and testing a model needs, and its checks of all that is shared."""
        shared = {one.name for one in fields(RunConfig)} & {one.name for one in fields(self)}
        shared.remove("co_evolve")  # of a search's insights
        return RunConfig(
            problem=self.adapter,
            method="esopt-sample",
            budget=self.directions * self.episodes * self.generations,
            samples_per_direction=self.episodes,
            **{name: getattr(self, name) for name in shared},
        )

    @property
    def chat(self) -> ChatSettings:
        """How conversations are held."""
        return ChatSettings(thinking=self.thinking)

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
