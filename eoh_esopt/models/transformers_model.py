"""A language model in this process, by transformers: batches of replies under directions, updates, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, StoppingCriteria

from eoh_esopt.models import chat
from eoh_esopt.models.checkpoint import stored_tensors, write_adapted
from eoh_esopt.models.local import check_movable
from eoh_esopt.models.names import checkpoint_names
from eoh_esopt.models.protocol import Reply, Request, Sampling
from eoh_esopt.models.row_gains import row_directions
from eoh_esopt.models.row_products import row_products
from eoh_esopt.models.sampling import RowSampler
from eoh_esopt.models.scopes import Scope
from eoh_esopt.models.stopwatch import Stopwatch
from eoh_esopt.models.weights import ScopedWeights
from operators.errors import UserError
from operators.records import Direction, Update

DTYPES = {"auto": "auto", "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class TransformersModel:
    """A causal language model whose weights can be moved along directions.

    Args:
        folder: checkpoint folder with config, safetensors and tokenizer.
        scope: which weights directions move.
        sampling: how tokens are drawn.
        restore: how a direction is taken back, see `eoh_esopt.models.weights`.
        dtype: of the live weights, a key of `DTYPES`; `auto` takes the checkpoint's.
        max_batch: most rows generated at once.
        settings: how conversations are held.

    Attributes:
        weights: those that directions move.
        on_written: told, reply by reply, the seed of its request, the tokens of its prompt and those that were drawn.

    Raises:
        UserError: the checkpoint cannot be loaded, has no chat template that takes the settings, or its weights cannot
            be moved.
    """

    def __init__(
        self,
        folder: Path,
        *,
        scope: Scope,
        sampling: Sampling,
        restore: str = "exact",
        dtype: str = "auto",
        max_batch: int = 64,
        settings: chat.ChatSettings = chat.PLAIN,
    ) -> None:
        self.folder = folder
        self._scope = scope
        self._sampling = sampling
        self._restore = restore
        self._max_batch = max_batch
        self._settings = settings
        self._tokenizer, self._model, self._names = _load(folder, dtype)
        chat.check_chat_template(self._tokenizer, str(folder), settings)
        self._ends = chat.end_tokens(self._tokenizer, self._model.generation_config.eos_token_id)
        self._context = int(getattr(self._model.config.get_text_config(), "max_position_embeddings", 1 << 30))
        if sampling.max_new_tokens >= self._context:
            raise UserError(
                f"max-new-tokens is {sampling.max_new_tokens}, but the model's context is {self._context} tokens "
                "and must hold the prompt too. Choose a smaller reply limit."
            )
        self.weights = ScopedWeights(self._model, scope, restore, self._names)
        self._parameters: int = sum(parameter.numel() for parameter in self._model.parameters())
        self._gpus = {one.device for one in self._model.parameters() if one.device.type == "cuda"}
        self.stopwatch = Stopwatch(wait=self._wait)
        self.on_written: Callable[[int, list[int], list[int]], None] = lambda seed, prompt, drawn: None

    @property
    def network(self) -> torch.nn.Module:
        """The model of transformers that writes; whoever trains it otherwise than along directions works on it."""
        network: torch.nn.Module = self._model
        return network

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers."""
        return self._tokenizer

    @property
    def parameters(self) -> int:
        """How many weights the model has, tied ones once."""
        return self._parameters

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """Rows of one batch share a direction, unless the scope lets every row carry its own."""
        if self._scope.per_row:
            groups = [list(range(len(requests)))]
        else:
            groups = [list(group) for _, group in groupby(range(len(requests)), lambda i: requests[i].direction)]
        return [group[at : at + self._max_batch] for group in groups for at in range(0, len(group), self._max_batch)]

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """The replies to one batch. The weights are restored whatever happens."""
        texts = [chat.render(self._tokenizer, one.prompt, one.prefill, self._settings) for one in requests]
        prompts = chat.encode(self._tokenizer, texts)
        rooms = [
            chat.room(len(tokens), self._context, request.limit(self._sampling.max_new_tokens))
            for request, tokens in zip(requests, prompts, strict=True)
        ]
        replies = [
            Reply(request.prefill, len(tokens), 0, truncated=True)
            for request, tokens in zip(requests, prompts, strict=True)
        ]
        fitting = [i for i, room in enumerate(rooms) if room]
        if fitting:
            settings = [self._settings.until(requests[i].stop) for i in fitting]
            rows = [
                _Row(requests[i], prompts[i], rooms[i], chat.opening(texts[i]), of_row)
                for i, of_row in zip(fitting, settings, strict=True)
            ]
            for i, reply in zip(fitting, self._write(rows), strict=True):
                replies[i] = reply
        return replies

    def _write(self, rows: list[_Row]) -> list[Reply]:
        """The replies to prompts that fit into the context."""
        encoded = self._padded([row.prompt for row in rows])
        length = encoded["input_ids"].shape[1]
        stop = _Ends(self._tokenizer, rows, length)
        sampler = RowSampler(self._sampling, [row.request.seed for row in rows], length)
        with self._under([row.request.direction for row in rows]):
            tokens = self._model.generate(
                **encoded,
                generation_config=self._generation_config(max(row.room for row in rows)),
                logits_processor=[sampler],
                stopping_criteria=[stop],
            )
        return [
            self._reply(row, drawn[length : length + row.room].tolist(), stop.ends[i])
            for i, (row, drawn) in enumerate(zip(rows, tokens, strict=True))
        ]

    @torch.no_grad()
    def probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
        """Next-token logits of one prompt: shape (vocabulary,), float32."""
        text = chat.render(self._tokenizer, prompt, "", self._settings)
        encoded = self._padded(chat.encode(self._tokenizer, [text]))
        with self._under([direction]):
            logits = self._model(**encoded).logits[0, -1].float().clone()
        return np.asarray(logits.cpu())

    def apply(self, update: Update) -> None:
        """Move the true weights, and the live ones with them."""
        self.weights.update(update)
        self._wait()

    def checksum(self) -> str:
        """sha256 of the true weights, see `ScopedWeights.checksum`."""
        return self.weights.checksum()

    def drift(self) -> float:
        """See `ScopedWeights.drift`."""
        return self.weights.drift()

    def save(self, folder: Path, *, float32: bool = False) -> None:
        """Write a standard checkpoint: the live weights, or all of them in float32 with the masters exact.

        It has the files and tensors of the one that was loaded, with other values for the (text) model's.
        """
        tensors: dict[str, torch.Tensor] = dict(self.weights.live)
        if float32:
            tensors = {name: tensor.float() for name, tensor in tensors.items()} | self.weights.snapshot()
        write_adapted(self.folder, folder, tensors, tied=frozenset(self._names.values()))

    def describe(self) -> dict[str, Any]:
        """What a history states of the model."""
        return {
            "model": self.folder.name,
            "backend": "transformers",
            "parameters": self._parameters,
            "dtype": str(self._model.dtype).removeprefix("torch."),
            "device": str(self._model.device),
            **self._scope.facts,
            "scope_elements": self.weights.elements,
            "restore": self._restore,
            "extra_bytes": self.weights.extra_bytes,
        }

    def close(self) -> None:
        """Nothing outlives the object."""

    def _padded(self, prompts: list[list[int]]) -> Any:
        padded = self._tokenizer.pad({"input_ids": prompts}, padding_side="left", return_tensors="pt")
        return padded.to(self._model.device)

    def _under(self, directions: list[Direction | None]) -> AbstractContextManager[None]:
        return self.stopwatch.around(self._moved(directions))

    @contextmanager
    def _moved(self, directions: list[Direction | None]) -> Iterator[None]:
        if self._scope.per_row:
            by_row = row_directions if self._scope.rank is None else row_products
            with by_row(self.weights, directions):
                yield
            return
        shared = set(directions)
        if len(shared) != 1:
            raise ValueError(f"Scope {self._scope.name!r} takes one direction a batch, not {len(shared)}.")
        direction = shared.pop()
        if direction is None:
            yield
            return
        try:
            self.weights.perturb(direction)
            yield
        finally:
            self.weights.restore()

    def _wait(self) -> None:
        """Until the GPUs have done what they were told, so that times are those of the work."""
        for gpu in self._gpus:
            torch.cuda.synchronize(gpu)

    def _generation_config(self, max_new_tokens: int) -> GenerationConfig:
        return GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=max_new_tokens,
            do_sample=False,
            eos_token_id=self._ends,
            pad_token_id=self._tokenizer.pad_token_id,
            bos_token_id=self._model.generation_config.bos_token_id,
        )

    def _reply(self, row: _Row, tokens: list[int], end: int | None) -> Reply:
        ends = [tokens.index(token) + 1 for token in self._ends if token in tokens]
        if end is not None:
            ends.append(end)
        count = min([*ends, len(tokens)])
        self.on_written(row.request.seed, row.prompt, tokens[:count])
        text = self._tokenizer.decode(tokens[:count], skip_special_tokens=True)
        text = chat.finished(text, bool(row.request.prefill), row.settings)
        truncated = not ends and count >= row.room
        return Reply(row.opening + row.request.prefill + text, len(row.prompt), count, truncated)


@dataclass(frozen=True)
class _Row:
    """One row of a batch.

    Attributes:
        prompt: the tokens it begins with.
        room: how many may follow.
        opening: the tag of a thought begun for it.
        settings: of its conversation, its own stop strings among them.
    """

    request: Request
    prompt: list[int]
    room: int
    opening: str
    settings: chat.ChatSettings


class _Ends(StoppingCriteria):
    """Ends the rows whose reply is over, by its text or its length; notes the lengths, in tokens, of the former."""

    def __init__(self, tokenizer: Any, rows: list[_Row], prompt_length: int) -> None:
        self._tokenizer = tokenizer
        self._rows = rows
        self._prompt_length = prompt_length
        self._tails = [chat.tail_tokens(row.settings) for row in rows]
        self.ends: list[int | None] = [None] * len(rows)

    def __call__(self, tokens: torch.LongTensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        drawn = tokens.shape[1] - self._prompt_length
        for i, row in enumerate(self._rows):
            if self.ends[i] is None and drawn <= row.room and (row.request.prefill or row.settings.stop):
                first = self._prompt_length + max(0, drawn - self._tails[i])
                tail = self._tokenizer.decode(tokens[i, first:], skip_special_tokens=True)
                if chat.has_ended(tail, bool(row.request.prefill), row.settings):
                    self.ends[i] = drawn
        over = [end is not None or drawn >= row.room for end, row in zip(self.ends, self._rows, strict=True)]
        return torch.tensor(over, device=tokens.device)


def _load(folder: Path, dtype: str) -> tuple[Any, Any, dict[str, str]]:
    """Tokenizer, model, and the checkpoint names of the model's parameters."""
    if dtype not in DTYPES:
        raise UserError(f"Unknown dtype {dtype!r}. Choose one of: {', '.join(DTYPES)}.")
    check_movable(folder)
    stored = stored_tensors(folder)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=DTYPES[dtype], device_map="auto" if torch.cuda.is_available() else None
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"The model in {folder} cannot be loaded: {reason}") from error
    if any(parameter.dtype == torch.float64 for parameter in model.parameters()):
        raise UserError(f"The model in {folder} has float64 weights, and masters are float32. Use --dtype float32.")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    make_ready(model)
    return tokenizer, model, checkpoint_names(model, folder, stored)


def make_ready(model: Any) -> None:
    """Prepare a causal language model of transformers for writing, and for nothing else."""
    model.train(False)
    model.requires_grad_(False)
    model.get_output_embeddings().register_forward_pre_hook(_contiguous)


def _contiguous(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The last positions' hidden states are a strided slice, for which torch copies the whole output matrix per row."""
    return tuple(one.contiguous() for one in inputs)
