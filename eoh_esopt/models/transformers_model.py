"""A language model in this process, by transformers: batches of replies under directions, updates, checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, StoppingCriteria

from eoh_esopt.models import chat
from eoh_esopt.models.protocol import Reply, Request, Sampling
from eoh_esopt.models.row_gains import row_directions
from eoh_esopt.models.sampling import RowSampler
from eoh_esopt.models.scopes import Scope
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
        restore: `exact` or `subtract`, see `eoh_esopt.models.weights`.
        dtype: of the live weights, a key of `DTYPES`; `auto` takes the checkpoint's.
        max_batch: most rows generated at once.

    Raises:
        UserError: the checkpoint cannot be loaded, has no chat template, or its weights cannot be moved.
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
    ) -> None:
        self._folder = folder
        self._scope = scope
        self._sampling = sampling
        self._restore = restore
        self._max_batch = max_batch
        self._tokenizer, self._model = _load(folder, dtype)
        self._context = int(getattr(self._model.config.get_text_config(), "max_position_embeddings", 1 << 30))
        if sampling.max_new_tokens >= self._context:
            raise UserError(
                f"max-new-tokens is {sampling.max_new_tokens}, but the model's context is {self._context} tokens "
                "and must hold the prompt too. Choose a smaller reply limit."
            )
        self.weights = ScopedWeights(self._model, scope, restore)
        self._parameters: int = sum(parameter.numel() for parameter in self._model.parameters())

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
        texts = [chat.render(self._tokenizer, request.prompt, request.prefill) for request in requests]
        encoded = self._encode(texts)
        length = encoded["input_ids"].shape[1]
        prompt_tokens = encoded["attention_mask"].sum(dim=1).tolist()
        room = min(self._sampling.max_new_tokens, self._context - length)
        if room < 1:
            return [
                Reply(request.prefill, count, 0, truncated=True)
                for request, count in zip(requests, prompt_tokens, strict=True)
            ]
        stop = _FunctionEnd(self._tokenizer, [bool(request.prefill) for request in requests], length)
        sampler = RowSampler(self._sampling, [request.seed for request in requests], length)
        with self._under([request.direction for request in requests]):
            tokens = self._model.generate(
                **encoded,
                generation_config=self._generation_config(room),
                logits_processor=[sampler],
                stopping_criteria=[stop],
            )
        return [
            self._reply(request, row[length:].tolist(), count, stop.ends[i], room)
            for i, (request, row, count) in enumerate(zip(requests, tokens, prompt_tokens, strict=True))
        ]

    @torch.no_grad()
    def probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
        """Next-token logits of one prompt: shape (vocabulary,), float32."""
        encoded = self._encode([chat.render(self._tokenizer, prompt, "")])
        with self._under([direction]):
            logits = self._model(**encoded).logits[0, -1].float().clone()
        return np.asarray(logits.cpu())

    def apply(self, update: Update) -> None:
        """Move the true weights, and the live ones with them."""
        self.weights.update(update)

    def checksum(self) -> str:
        """sha256 of the true weights, see `ScopedWeights.checksum`."""
        return self.weights.checksum()

    def drift(self) -> float:
        """See `ScopedWeights.drift`."""
        return self.weights.drift()

    def save(self, folder: Path, *, float32: bool = False) -> None:
        """Write a standard checkpoint: the live weights, or all of them in float32 with the masters exact."""
        if float32:
            state = {name: tensor.float() for name, tensor in self._model.state_dict().items()}
            state |= self.weights.snapshot()
            for alias, name in (getattr(self._model, "all_tied_weights_keys", None) or {}).items():
                state[alias] = state[name]
            self._model.save_pretrained(folder, state_dict=state)
            config = copy.deepcopy(self._model.config)  # transformers wrote the live dtype: a reload would round
            config.dtype = "float32"
            config.save_pretrained(folder)
        else:
            self._model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)

    def describe(self) -> dict[str, Any]:
        """What a history states of the model."""
        return {
            "model": self._folder.name,
            "backend": "transformers",
            "parameters": self._parameters,
            "dtype": str(self._model.dtype).removeprefix("torch."),
            "device": str(self._model.device),
            "scope": self._scope.name,
            "scope_elements": self.weights.elements,
            "restore": self._restore,
            "extra_bytes": self.weights.extra_bytes,
        }

    def close(self) -> None:
        """Nothing outlives the object."""

    def _encode(self, texts: list[str]) -> Any:
        return self._tokenizer(
            texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False
        ).to(self._model.device)

    @contextmanager
    def _under(self, directions: list[Direction | None]) -> Iterator[None]:
        if self._scope.per_row:
            with row_directions(self.weights, directions):
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

    def _generation_config(self, max_new_tokens: int) -> GenerationConfig:
        own = self._model.generation_config
        eos = own.eos_token_id if own.eos_token_id is not None else self._tokenizer.eos_token_id
        return GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=max_new_tokens,
            do_sample=False,
            eos_token_id=eos,
            pad_token_id=self._tokenizer.pad_token_id,
            bos_token_id=own.bos_token_id,
        )

    def _reply(self, request: Request, tokens: list[int], prompt_tokens: int, end: int | None, room: int) -> Reply:
        eos = self._generation_config(room).eos_token_id
        ends = [tokens.index(token) + 1 for token in (eos if isinstance(eos, list) else [eos]) if token in tokens]
        if end is not None:
            ends.append(end)
        count = min([*ends, len(tokens)])
        text = self._tokenizer.decode(tokens[:count], skip_special_tokens=True)
        if request.prefill:
            text = request.prefill + chat.cut_after_function(text)
        return Reply(text, prompt_tokens, count, truncated=not ends and count >= room)


class _FunctionEnd(StoppingCriteria):
    """Ends the rows that began inside a function once their function is over; notes their lengths in tokens."""

    def __init__(self, tokenizer: Any, prefilled: list[bool], prompt_length: int) -> None:
        self._tokenizer = tokenizer
        self._prefilled = prefilled
        self._prompt_length = prompt_length
        self.ends: list[int | None] = [None] * len(prefilled)

    def __call__(self, tokens: torch.LongTensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        drawn = tokens.shape[1] - self._prompt_length
        first = self._prompt_length + max(0, drawn - chat.TAIL_TOKENS)
        for row, prefilled in enumerate(self._prefilled):
            if prefilled and self.ends[row] is None:
                tail = self._tokenizer.decode(tokens[row, first:], skip_special_tokens=True)
                if chat.ends_function(tail):
                    self.ends[row] = drawn
        return torch.tensor([end is not None for end in self.ends], device=tokens.device)


def _load(folder: Path, dtype: str) -> tuple[Any, Any]:
    if dtype not in DTYPES:
        raise UserError(f"Unknown dtype {dtype!r}. Choose one of: {', '.join(DTYPES)}.")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=DTYPES[dtype], device_map="auto" if torch.cuda.is_available() else None
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise UserError(f"The model in {folder} cannot be loaded: {error}") from error
    chat.check_chat_template(tokenizer, str(folder))
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.train(False)
    model.requires_grad_(False)
    model.get_output_embeddings().register_forward_pre_hook(_contiguous)  # type: ignore[no-untyped-call]
    return tokenizer, model


def _contiguous(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The last positions' hidden states are a strided slice, for which torch copies the whole output matrix per row."""
    return tuple(one.contiguous() for one in inputs)
