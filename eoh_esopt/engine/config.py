"""The settings of a run: one frozen record, checked as a whole before anything is loaded or written."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from eoh_esopt.models.endpoint import FROZEN, normalise_url
from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.scopes import NOISES, get_scope
from eoh_esopt.models.vllm.wire import server_urls
from eoh_esopt.models.weights import check_restore
from operators.errors import UserError
from operators.lowrank import DEFAULT_RANK
from operators.momentum import momentum
from operators.schedules import SCHEDULES
from operators.search import PREFILLS
from operators.shaping import SHAPINGS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

BACKENDS = ("transformers", "vllm", "served", "openai")
ENDPOINTS = ("openai",)
"""Backends that somebody else serves: their weights stay as they are, and replies cannot be begun for them."""

LOWRANK_BACKENDS = ("transformers", "vllm")
"""Backends that write every reply of a batch under its own low-rank direction."""

MOVABLE = frozenset({"base_url", "request_timeout", "servers"})
"""Settings that may change when a run is resumed: where a server is and how long it may take."""

METHODS = ("eoh", "esopt-eoh", "sample", "esopt-sample")
REWARDS = ("graded", "paper", "ordered")
ABLATIONS = ("none", "noise-only", "no-perturbation")
SMALL_MODEL = 1_000_000_000
"""Models with fewer parameters get the graded reward and begun replies unless the user says otherwise."""
TINY_MODEL = 300_000_000
"""Models with fewer parameters do not follow suggestions; their replies are begun up to the signature only."""

LONGEST_TIMEOUT = 86_400

_Config = TypeVar("_Config", bound="DataclassInstance")


@dataclass(frozen=True)
class RunConfig:
    """What a run is to do. Sizes of batches are in candidates.

    Attributes:
        problem: name of the problem, or the path of the file that defines it.
        model: name or folder of the model.
        method: one of `METHODS`.
        budget: candidates of the search, the start population not counted.
        seed: of all random streams.
        population: heuristics kept, and candidates of e1 and of e2 in a generation.
        directions: directions of one update; m1 and m2 write directions * samples_per_direction candidates each.
        samples_per_direction: candidates written under each direction.
        sigma: size of the perturbations at first; None for the scope's default.
        sigma_final: at last; None for the scope's default.
        alpha: learning rate; None for the scope's default.
        reward: one of `REWARDS`; None for graded below a billion parameters, else the paper's.
        scope: which weights the directions move.
        noise: kind of noise: full (the paper's) or lowrank.
        rank: of low-rank noise; None for its default, and for full noise.
        restore: how a direction is taken back, see `eoh_esopt.models.weights`.
        dtype: of the live weights.
        prefill: how far replies are begun, see `operators.search.PREFILLS`; None for what suits the model's size.
        sampling: how tokens are drawn.
        shuffle_rewards: the control: rewards dealt out to the directions at random.
        sigma_schedule: how sigma goes from its first to its last value, see `operators.schedules.SCHEDULES`; constant
            keeps the first.
        ablation: what is taken away from learning, one of `ABLATIONS`, see `operators.ablations`.
        co_evolve: whether the model also renews the insights that its prompts show, see `operators.context`.
        shaping: how rewards become weights, see `operators.shaping.SHAPINGS`.
        antithetic: whether directions come in pairs of opposite sign; their number must be even then.
        momentum: share of the last step that the next one keeps, in [0, 1); 0 for none.
        adaptive_sigma: whether sigma moves off its schedule by the share of signal in the rewards.
        timeout: wall-clock limit of one evaluation, in seconds.
        isolation: best, required or none.
        max_batch: most rows generated at once.
        backend: what runs the model, one of `BACKENDS`.
        data: folder of published files to take the instances from; None to draw them from their seeds.
        tensor_parallel: over how many devices each layer is split, for backend vllm.
        servers: addresses of our own servers, separated by commas, for backend served.
        base_url: address of the endpoint, for the backends that have one.
        cassette: file that replies are recorded to and played back from; None for none.
        request_timeout: limit of one request to an endpoint, in seconds.
        init_from: file or folder whose programs took the place of the i1 batch; None where that was written.
    """

    problem: str
    model: str
    method: str = "esopt-eoh"
    budget: int = 1000
    seed: int = 2024
    population: int = 10
    directions: int = 10
    samples_per_direction: int = 1
    sigma: float | None = None
    sigma_final: float | None = None
    alpha: float | None = None
    reward: str | None = None
    scope: str = "full"
    restore: str = "exact"
    dtype: str = "auto"
    prefill: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    shuffle_rewards: bool = False
    timeout: float = 20.0
    isolation: str = "best"
    max_batch: int = 64
    backend: str = "transformers"
    data: str | None = None
    tensor_parallel: int = 1
    servers: str | None = None
    base_url: str | None = None
    cassette: str | None = None
    request_timeout: float = 120.0
    shaping: str = "z-score"
    antithetic: bool = False
    momentum: float = 0.0
    adaptive_sigma: bool = False
    noise: str = "full"
    rank: int | None = None
    init_from: str | None = None
    sigma_schedule: str = "cosine"
    ablation: str = "none"
    co_evolve: bool = False

    def __post_init__(self) -> None:
        _choice("method", self.method, METHODS)
        _choice("reward", self.reward, (None, *REWARDS))
        _choice("prefill", self.prefill, (None, *PREFILLS))
        _choice("backend", self.backend, BACKENDS)
        _choice("isolation", self.isolation, ("best", "required", "none"))
        self._check_noise()
        check_restore(self.restore, get_scope(self.scope, self.lowrank))
        for name in ("population", "directions", "samples_per_direction", "max_batch", "tensor_parallel"):
            _at_least(name, getattr(self, name), 1)
        _at_least("seed", self.seed, 0)
        for name in ("sigma", "sigma_final", "alpha"):
            _finite(name, getattr(self, name))
        for name in ("timeout", "request_timeout"):
            _seconds(name, getattr(self, name))
        self._check_engine()
        self._check_endpoint()
        self._check_variants()
        if self.samples and self.init_from is not None:
            raise UserError(f"--init-from gives a start population, and method {self.method} has none. Leave it out.")
        if self.samples and self.co_evolve:
            raise UserError(f"--co-evolve learns from generations, and method {self.method} has none. Leave it out.")
        if self.learns and self.directions < 2:
            raise UserError(f"An update needs at least 2 directions, not {self.directions}.")
        if self.budget < self.learning_batch:
            raise UserError(
                f"A budget of {self.budget} is less than one batch of {self.learning_batch} candidates "
                f"({self.directions} directions x {self.samples_per_direction}). Raise --budget or lower --directions."
            )

    def _check_engine(self) -> None:
        if self.tensor_parallel != 1 and self.backend != "vllm":
            raise UserError(f"--tensor-parallel belongs to --backend vllm, not to {self.backend}.")
        if self.restore != "exact" and self.backend not in ("transformers", *ENDPOINTS):
            raise UserError(f"Restore mode {self.restore!r} does not exist for --backend {self.backend}: use 'exact'.")
        if self.servers is not None:
            server_urls(self.servers)
        if (self.servers is None) == (self.backend == "served"):
            raise UserError(
                f"--backend {self.backend} takes no --servers: they belong to --backend served."
                if self.servers is not None
                else "--backend served needs the addresses of servers by --servers, such as http://127.0.0.1:8000. "
                "Start one by: eoh-esopt serve --model MODEL"
            )

    def _check_noise(self) -> None:
        _choice("noise", self.noise, NOISES)
        if self.rank is None:
            pass
        elif self.noise == "full":
            raise UserError("--rank belongs to --noise lowrank: full noise has none.")
        else:
            _at_least("rank", self.rank, 1)
        if self.noise == "lowrank" and self.backend not in LOWRANK_BACKENDS:
            raise UserError(
                f"Low-rank noise does not exist for --backend {self.backend}: use {' or '.join(LOWRANK_BACKENDS)}."
            )

    def _check_variants(self) -> None:
        _choice("shaping", self.shaping, tuple(SHAPINGS))
        _choice("sigma_schedule", self.sigma_schedule, tuple(SCHEDULES))
        momentum(self.momentum)
        self._check_ablation()
        if self.learns and self.antithetic and self.directions % 2:
            raise UserError(
                f"--antithetic takes directions in pairs, and {self.directions} is odd: give an even --directions."
            )
        if self.learns and self.adaptive_sigma and self.samples_per_direction < 2:
            raise UserError(
                "--adaptive-sigma compares the samples of one direction, so it needs at least 2 "
                f"--samples-per-direction, not {self.samples_per_direction}."
            )

    def _check_ablation(self) -> None:
        _choice("ablation", self.ablation, ABLATIONS)
        if self.ablation == "none":
            return
        if not self.learns:
            raise UserError(f"--ablation is for methods that learn, and {self.method} does not. Leave it out.")
        if self.ablation == "no-perturbation" and (self.antithetic or self.adaptive_sigma):
            raise UserError(
                "--ablation no-perturbation writes nothing under a direction, so it goes with neither --antithetic nor "
                "--adaptive-sigma. Leave them out."
            )

    def _check_endpoint(self) -> None:
        if self.base_url is not None:
            normalise_url(self.base_url)
        if self.backend not in ENDPOINTS:
            if self.base_url is not None:
                raise UserError(f"--base-url belongs to --backend {' or '.join(ENDPOINTS)}, not to {self.backend}.")
            return
        if self.learns:
            raise UserError(FROZEN)
        if self.prefill not in (None, "none"):
            raise UserError(f"Replies of an endpoint cannot be begun: leave out --prefill {self.prefill}.")
        if self.base_url is None and self.cassette is None:
            raise UserError(
                f"--backend {self.backend} needs the address of an endpoint by --base-url, such as "
                "http://localhost:8000, or recorded replies by --cassette."
            )

    @property
    def lowrank(self) -> int | None:
        """The rank of low-rank noise; None for full noise."""
        return None if self.noise == "full" else self.rank or DEFAULT_RANK

    @property
    def learns(self) -> bool:
        """Whether the method moves the weights."""
        return self.method.startswith("esopt-")

    @property
    def samples(self) -> bool:
        """Whether the method only draws independent samples (i1)."""
        return self.method.endswith("sample")

    @property
    def learning_batch(self) -> int:
        """Candidates behind one update."""
        return self.directions * self.samples_per_direction

    @property
    def plan(self) -> tuple[tuple[str, int], ...]:
        """Operators of one generation and their candidates."""
        if self.samples:
            return (("i1", self.learning_batch),)
        return (
            ("e1", self.population),
            ("e2", self.population),
            ("m1", self.learning_batch),
            ("m2", self.learning_batch),
        )

    @property
    def generations(self) -> int:
        """Generations that the budget reaches into; the last may be cut short."""
        return -(-self.budget // sum(count for _, count in self.plan))

    def resolved(self, parameters: int | None) -> RunConfig:
        """The same settings with every default that depends on the model or the scope filled in.

        A model of unknown size counts as a large one.
        """
        scope = get_scope(self.scope, self.lowrank)
        parameters = SMALL_MODEL if parameters is None else parameters
        small = parameters < SMALL_MODEL
        return replace(
            self,
            rank=self.lowrank,
            sigma=scope.sigma[0] if self.sigma is None else self.sigma,
            sigma_final=scope.sigma[1] if self.sigma_final is None else self.sigma_final,
            alpha=scope.alpha if self.alpha is None else self.alpha,
            reward=("graded" if small else "paper") if self.reward is None else self.reward,
            prefill=_prefill(parameters) if self.prefill is None else self.prefill,
        )

    def to_json(self) -> str:
        """The settings as the run's folder keeps them."""
        return json.dumps(asdict(self), indent=1) + "\n"


def _prefill(parameters: int) -> str:
    if parameters >= SMALL_MODEL:
        return "none"
    return "signature" if parameters < TINY_MODEL else "suggestion"


def load_config(path: Path) -> RunConfig:
    """Read the settings of a run.

    Raises:
        UserError: the file is missing or damaged, or has a key that this release does not know.
    """
    return read_config(path, RunConfig)


def read_config(path: Path, kind: type[_Config]) -> _Config:
    """Read settings that were written as JSON; the dataclass has `sampling` among them.

    Raises:
        UserError: the file is missing or damaged, or has a key that this release does not know.
    """
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        unknown = set(values) - {one.name for one in fields(kind)}
        if unknown:
            raise UserError(f"{path} has the unknown setting {sorted(unknown)[0]!r}. Use the release that wrote it.")
        return kind(**{**values, "sampling": Sampling(**values["sampling"])})
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}. Give the folder of a run.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: {error}. Restore it from a copy.") from error


def _choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise UserError(f"Unknown {name} {value!r}. Choose one of: {', '.join(str(one) for one in allowed if one)}.")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise UserError(f"{name} must be at least {least}, not {value}.")


def _seconds(name: str, value: float) -> None:
    if not 0 < value <= LONGEST_TIMEOUT:
        raise UserError(f"{name} must be above 0 and at most {LONGEST_TIMEOUT} seconds, not {value}.")


def _finite(name: str, value: float | None) -> None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise UserError(f"{name} must be a finite number of at least 0, not {value}.")
