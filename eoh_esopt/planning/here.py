"""How fast this machine is: a few layers of the model, with random weights, timed for some seconds.

What a layer takes and what is taken once (embedding, output matrix, drawing a token) come apart by timing a slice of
several layers and one of none; the whole model is the sum. A slice has more weights than the processor's caches hold,
so its weights come from memory, as the model's do. Its tensors are also moved along directions, in every restore mode
that is asked for, by the kernels that a run uses. No checkpoint is needed, and none is read but its config.json.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, LlamaConfig, LogitsProcessor

from eoh_esopt.models.protocol import Sampling
from eoh_esopt.models.row_gains import row_directions
from eoh_esopt.models.row_products import row_products
from eoh_esopt.models.sampling import RowSampler
from eoh_esopt.models.scopes import Scope
from eoh_esopt.models.transformers_model import make_ready
from eoh_esopt.models.weights import ScopedWeights
from eoh_esopt.planning.shapes import ModelShape
from operators.records import Direction, Update

Clock = Callable[[], float]

_BEYOND_CACHES = 100e6  # bytes of a slice's layers
_STEPS = 9  # tokens of a reply that is timed
_FEW, _MORE = 1, 5  # directions of the updates that are timed
_NO_TOKEN = 1 << 30


@dataclass(frozen=True)
class Generation:
    """What writing a batch takes, by the number of its rows.

    Attributes:
        rows: ascending.
        prompt: seconds for a token of each row's prompt.
        step: seconds for one more token of each row.
    """

    rows: tuple[int, ...]
    prompt: tuple[float, ...]
    step: tuple[float, ...]


@dataclass(frozen=True)
class Moving:
    """What moving all weights in scope takes in one restore mode, in seconds.

    Attributes:
        perturb: under a direction.
        restore: back.
        update: by an update, without its directions.
        direction: for each of its directions.
    """

    perturb: float
    restore: float
    update: float
    direction: float


@dataclass(frozen=True)
class MeasuredSpeeds:
    """See `eoh_esopt.planning.speeds.Speeds`; between the numbers of rows that were timed, in proportion."""

    generation: Generation
    moving: Moving

    def prompts(self, rows: int, tokens: int) -> float:
        """See `Speeds`."""
        return tokens * _between(rows, self.generation.rows, self.generation.prompt)

    def step(self, rows: int, context: float) -> float:
        """See `Speeds`. The context is the one that was timed."""
        return _between(rows, self.generation.rows, self.generation.step)

    def perturb(self) -> float:
        """See `Speeds`."""
        return self.moving.perturb

    def restore(self) -> float:
        """See `Speeds`."""
        return self.moving.restore

    def update(self, directions: int) -> float:
        """See `Speeds`."""
        return self.moving.update + directions * self.moving.direction


class Slices:
    """Two slices of a model on this machine: some layers, and none.

    Args:
        shape: the model.
        folder: of its config.json; None for a Llama of the same sizes.
        dtype: of the weights.
        device: where they are.
        clock: in seconds.
    """

    def __init__(
        self, shape: ModelShape, folder: Path | None, dtype: torch.dtype, device: str, clock: Clock = time.perf_counter
    ) -> None:
        self._shape = shape
        self._clock = clock
        config = _llama(shape) if folder is None else AutoConfig.from_pretrained(folder).get_text_config()
        pattern = max(1, shape.layers // max(1, shape.attending))  # layers that differ from one another
        layer = dtype.itemsize * (shape.parameters - shape.vocabulary * shape.hidden) / shape.layers
        wanted = pattern * int(np.ceil(_BEYOND_CACHES / layer / pattern))
        self.layers = min(wanted, shape.layers)
        with torch.random.fork_rng(devices=()):  # transformers draws weights from the global generator
            self._some, self._none = (_model(config, count, dtype, device) for count in (self.layers, 0))
        self._rng = torch.Generator().manual_seed(1)
        self._device = device

    def generation(self, contexts: Mapping[int, int], scope: Scope | None, repeats: int = 3) -> Generation:
        """Time batches.

        Args:
            contexts: tokens of each prompt, by number of rows.
            scope: of directions that every row has one of; None for rows without.
            repeats: of which the fastest counts.
        """
        rows = sorted(contexts)
        found = [self._batch(count, contexts[count], scope, repeats) for count in rows]
        prompts = [seconds / contexts[count] for count, (seconds, _) in zip(rows, found, strict=True)]
        return Generation(tuple(rows), tuple(prompts), tuple(step for _, step in found))

    def moving(self, scope: Scope, restore: str, moved: int, repeats: int = 3) -> Moving:
        """Time directions and updates.

        Args:
            scope: what is moved.
            restore: the restore mode.
            moved: weights in scope of the whole model.
            repeats: of which the fastest counts.
        """
        weights = ScopedWeights(self._some, scope, restore)
        times: dict[str, float] = {}
        works = {
            "perturb": lambda: weights.perturb(Direction(1, 1e-6)) if not scope.per_row else None,
            "restore": weights.restore,
            "few": lambda: weights.update(_update(_FEW)),
            "more": lambda: weights.update(_update(_MORE)),
        }
        for _ in range(repeats + 1):  # once more, because the first compiles
            for name, work in works.items():
                times[name] = min(times.get(name, np.inf), self._seconds(work))
        scale = moved / weights.elements
        direction = max(0.0, times["more"] - times["few"]) / (_MORE - _FEW)
        fixed = max(0.0, times["few"] - _FEW * direction)
        return Moving(*(scale * one for one in (times["perturb"], times["restore"], fixed, direction)))

    def bandwidth(self, repeats: int = 5) -> float:
        """Bytes a second that an in-place scalar add reads and writes."""
        values = torch.zeros(int(_BEYOND_CACHES // 4), device=self._device)
        return 2 * values.nbytes / min(self._seconds(lambda: values.add_(1.0)) for _ in range(repeats))

    def _batch(self, rows: int, context: int, scope: Scope | None, repeats: int) -> tuple[float, float]:
        """Seconds of the prompts and of a further token, of the whole model."""
        first, step = [], []
        for model in (self._none, self._some):
            with _under(model, scope if model is self._some else None, rows):
                found = [self._reply(model, rows, context) for _ in range(repeats)]
            first.append(min(prompts for prompts, _ in found))
            step.append(min(one for _, one in found))
        return self._whole(*first), self._whole(*step)

    def _reply(self, model: Any, rows: int, context: int) -> tuple[float, float]:
        """Seconds until the first token of a batch of replies, and the median of its later tokens."""
        tokens = torch.randint(3, self._shape.vocabulary, (rows, context), generator=self._rng).to(self._device)
        mask = torch.ones_like(tokens)
        mask[0, : min(1, rows - 1)] = 0  # prompts of one batch differ in length, and padded ones take other kernels
        sampler = _Clocked(RowSampler(Sampling(max_new_tokens=_STEPS), list(range(rows)), context), self._now)
        began = self._now()
        model.generate(
            tokens,
            attention_mask=mask,
            generation_config=_LONG,
            logits_processor=[sampler],
        )
        return sampler.times[0] - began, float(np.median(np.diff(sampler.times)))

    def _whole(self, none: float, some: float) -> float:
        return none + max(0.0, some - none) * self._shape.layers / self.layers

    def _seconds(self, work: Callable[[], object]) -> float:
        began = self._now()
        work()
        return self._now() - began

    def _now(self) -> float:
        if self._device.startswith("cuda"):
            torch.cuda.synchronize(self._device)
        return self._clock()


_LONG = GenerationConfig(  # type: ignore[no-untyped-call]
    max_new_tokens=_STEPS, do_sample=False, eos_token_id=[_NO_TOKEN], pad_token_id=0
)


class _Clocked(LogitsProcessor):
    """Draws tokens, and notes when."""

    def __init__(self, sampler: RowSampler, now: Clock) -> None:
        self._sampler = sampler
        self._now = now
        self.times: list[float] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        decided = self._sampler(input_ids, scores)
        self.times.append(self._now())
        return cast(torch.FloatTensor, decided)


@contextmanager
def _under(model: Any, scope: Scope | None, rows: int) -> Iterator[None]:
    """Every row under a direction of its own, if there is a scope."""
    directions: list[Direction | None] = [Direction(row, 1e-3) for row in range(rows)]
    if scope is None:
        context: Any = nullcontext()
    else:
        by_row = row_directions if scope.rank is None else row_products
        context = by_row(ScopedWeights(model, scope), directions)
    with context:
        yield


def _model(config: Any, layers: int, dtype: torch.dtype, device: str) -> Any:
    config = copy.deepcopy(config)
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    model: Any = AutoModelForCausalLM.from_config(config, dtype=dtype).to(device)  # type: ignore[no-untyped-call]
    make_ready(model)
    return model


def _llama(shape: ModelShape) -> LlamaConfig:
    return LlamaConfig(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=1 << 20,
    )


def _update(directions: int) -> Update:
    return Update(0, tuple(range(directions)), (0.0,) * directions, (1e-6,) * directions, 1e-6, 1e-6)


def _between(rows: int, timed: Sequence[int], seconds: Sequence[float]) -> float:
    return float(np.interp(rows, timed, seconds))
