"""A language model served by vLLM in this process' own engine: batches under directions, updates, checkpoints."""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eoh_esopt.models import chat
from eoh_esopt.models.checkpoint import stored_tensors
from eoh_esopt.models.protocol import Reply, Request, Sampling
from eoh_esopt.models.scopes import Scope, get_scope
from eoh_esopt.models.vllm.adapters import adapter_of, engine_settings
from eoh_esopt.models.vllm.assemble import Assembly
from eoh_esopt.models.vllm.spawning import script_left_out
from eoh_esopt.models.vllm.token_gains import carry, trouble
from eoh_esopt.models.vllm.wire import FUNCTION_ENDS, SEED_MASK
from operators.errors import UserError
from operators.records import Direction, Update
from operators.update_fields import fields_of

EXTENSION = "eoh_esopt.models.vllm.extension.EsWorkerExtension"
TESTED = ("0.32",)
_USUAL_SHARE, _LEAST_SHARE = 0.9, 0.25


class VllmModel:
    """A model in vLLM whose weights can be moved along directions.

    Args:
        folder: checkpoint folder with config, safetensors and tokenizer.
        scope: name of the scope that directions move.
        sampling: how tokens are drawn.
        dtype: of the live weights: auto, bfloat16, float16 or float32.
        max_batch: most replies written at once.
        max_model_len: context kept, in tokens; the model's own when None.
        tensor_parallel: over how many devices each layer is split.
        eager: no CUDA graphs; always so on a CPU, and where replies carry gains of their own.
        rank: of low-rank noise, for which every reply of a batch has an adapter; None for full noise.
        settings: how conversations are held.

    Raises:
        UserError: vLLM is not installed, or cannot serve the model with movable weights.
    """

    def __init__(
        self,
        folder: Path,
        *,
        scope: str,
        sampling: Sampling,
        dtype: str = "auto",
        max_batch: int = 64,
        max_model_len: int | None = None,
        tensor_parallel: int = 1,
        eager: bool = False,
        rank: int | None = None,
        settings: chat.ChatSettings = chat.PLAIN,
    ) -> None:
        self._folder, self._sampling, self._max_batch = folder, sampling, max_batch
        self._settings = settings
        self._scope = get_scope(scope, rank)
        self._adapters = 0
        self._llm = _engine(folder, self._scope, dtype, max_batch, max_model_len, tensor_parallel, eager)
        self._tokenizer = self._llm.get_tokenizer()
        chat.check_chat_template(self._tokenizer, str(folder), settings)
        self._context = int(self._llm.llm_engine.model_config.max_model_len)
        self._ends = chat.end_tokens(self._tokenizer, None)
        facts = self._llm.collective_rpc("es_open", args=(str(folder), scope, "exact", rank))
        errors = [one["error"] for one in facts if "error" in one]
        if errors:
            self.close()
            raise UserError(errors[0])
        self._facts = facts
        self._assembly = Assembly(folder, facts)
        self._gains_by_row = self._scope.multiplicative and self._rows_work()

    @property
    def parameters(self) -> int:
        """How many weights the checkpoint's served tensors have."""
        return self._assembly.parameters

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """Requests of one batch share a direction, unless replies have gains of their own, as in transformers.

        With low-rank noise all have any direction, or all have none.
        """
        kinds = [self._kind(one.direction) for one in requests]
        groups = [list(group) for _, group in groupby(range(len(requests)), kinds.__getitem__)]
        return [group[at : at + self._max_batch] for group in groups for at in range(0, len(group), self._max_batch)]

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """The replies to one batch. The weights are restored whatever happens."""
        texts = [chat.render(self._tokenizer, one.prompt, one.prefill, self._settings) for one in requests]
        prompts = chat.encode(self._tokenizer, texts)
        rooms = [
            chat.room(len(prompt), self._context, request.limit(self._sampling.max_new_tokens))
            for request, prompt in zip(requests, prompts, strict=True)
        ]
        fits = [index for index, room in enumerate(rooms) if room]
        outputs: dict[int, Any] = {}
        if fits:
            params = [self._params(requests[index], rooms[index]) for index in fits]
            written = self._outputs(
                [prompts[index] for index in fits], params, [requests[index].direction for index in fits]
            )
            outputs = dict(zip(fits, written, strict=True))
        return [
            self._reply(request, len(prompts[index]), outputs.get(index), chat.opening(texts[index]))
            for index, request in enumerate(requests)
        ]

    def probe(self, prompt: str, direction: Direction | None) -> NDArray[np.float32]:
        """Log-probability of each of the prompt's tokens: shape (tokens - 1,), float32."""
        from vllm import SamplingParams

        params = SamplingParams(max_tokens=1, temperature=0.0, prompt_logprobs=0)
        [tokens] = chat.encode(self._tokenizer, [chat.render(self._tokenizer, prompt, "", self._settings)])
        [output] = self._outputs([tokens], [params], [direction])
        tokens = output.prompt_token_ids
        values = [entry[token].logprob for token, entry in zip(tokens[1:], output.prompt_logprobs[1:], strict=True)]
        return np.array(values, np.float32)

    def apply(self, update: Update) -> None:
        """Move the true weights, and the live ones with them."""
        self._llm.collective_rpc("es_update", args=(fields_of(update),))
        self._forget()

    def checksum(self) -> str:
        """sha256 of the true weights, see `digest.digest`."""
        with self._dumped() as folder:
            return self._assembly.checksum(folder)

    def drift(self) -> float:
        """0: the true weights are kept."""
        return 0.0

    def save(self, folder: Path, *, float32: bool = False) -> None:
        """Write a standard checkpoint with the base checkpoint's config and tokenizer."""
        with self._dumped() as dumped:
            self._assembly.save(dumped, folder, float32=float32)

    def describe(self) -> dict[str, Any]:
        """What a history states of the model."""
        first = self._facts[0]
        return {
            "model": self._folder.name,
            "backend": "vllm",
            "parameters": self.parameters,
            "dtype": first["dtype"],
            "device": first["device"],
            **self._scope.facts,
            "scope_elements": self._assembly.scope_elements,
            "restore": "exact",
            "extra_bytes": sum(one["extra_bytes"] for one in self._facts),
            "by_row": self._scope.rank is not None or self._gains_by_row,
        }

    def close(self) -> None:
        """End vLLM's processes."""
        if self._llm is not None:
            self._llm.llm_engine.engine_core.shutdown()
            self._llm = None

    def _params(self, request: Request, room: int) -> Any:
        from vllm import SamplingParams

        return SamplingParams(
            temperature=self._sampling.temperature,
            top_p=self._sampling.top_p,
            top_k=self._sampling.top_k,
            presence_penalty=self._sampling.presence_penalty,
            max_tokens=room,
            seed=request.seed & SEED_MASK,
            stop=[*self._settings.until(request.stop).stop, *(FUNCTION_ENDS if request.prefill else ())],
            stop_token_ids=self._ends,
        )

    def _reply(self, request: Request, prompt_tokens: int, output: Any, opening: str) -> Reply:
        if output is None:
            return Reply(request.prefill, prompt_tokens, 0, truncated=True)
        [completion] = output.outputs
        text = chat.finished(completion.text, bool(request.prefill), self._settings.until(request.stop))
        truncated = completion.finish_reason == "length"
        return Reply(request.prefill + opening + text, prompt_tokens, len(completion.token_ids), truncated=truncated)

    def _kind(self, direction: Direction | None) -> object:
        """The same for directions whose requests can share a batch."""
        if self._gains_by_row:
            return None
        return direction if self._scope.rank is None else direction is None

    def _outputs(
        self, tokens: Sequence[Sequence[int]], params: Sequence[Any], directions: Sequence[Direction | None]
    ) -> list[Any]:
        """vLLM's outputs, each under its direction. The weights are restored whatever happens."""
        prompts: list[dict[str, Any]] = [{"prompt_token_ids": one} for one in tokens]
        if self._gains_by_row:
            return self._carried_outputs(prompts, params, directions)
        with self._each_under(directions) as adapters:
            return self._write(prompts, params, adapters)

    def _carried_outputs(
        self, prompts: Sequence[dict[str, Any]], params: Sequence[Any], directions: Sequence[Direction | None]
    ) -> list[Any]:
        """The outputs of requests that carry their directions.

        Raises:
            RuntimeError: the workers did not scale every gain for every token.
        """
        for prompt, settings, direction in zip(prompts, params, directions, strict=True):
            if direction is not None:
                carry(prompt, settings, direction)
        self._forget()
        written = self._write(prompts, params, [None] * len(prompts))
        drawn = [len(one.outputs[0].token_ids) for one, direction in zip(written, directions, strict=True) if direction]
        found = trouble(self._llm.collective_rpc("es_report_rows"), max(drawn, default=0))
        if found:
            raise RuntimeError(f"Replies were not written under their directions: {found}.")
        return written

    def _rows_work(self) -> bool:
        """Whether requests can carry their directions: tried with one reply of two tokens, whose factors are 1."""
        from vllm import SamplingParams

        self._llm.collective_rpc("es_open_rows")
        prompt: dict[str, Any] = {"prompt_token_ids": [0] * 4}
        params = SamplingParams(max_tokens=2, temperature=0.0, ignore_eos=True)
        carry(prompt, params, Direction(0, 0.0))
        self._write([prompt], [params], [None])
        found = trouble(self._llm.collective_rpc("es_report_rows"), 2)
        if found:
            warnings.warn(f"vLLM writes under one direction at a time: {found}.", stacklevel=3)
        return not found

    def _write(self, prompts: Sequence[dict[str, Any]], params: Sequence[Any], adapters: Sequence[Any]) -> list[Any]:
        """vLLM's outputs. All requests wait before the first is begun: what runs beside what then never varies."""
        try:
            self._llm.sleep(level=0)
            self._llm.enqueue(prompts, params, lora_request=adapters, use_tqdm=False)
            self._llm.wake_up(tags=["scheduling"])
            written: list[Any] = self._llm.wait_for_completion(use_tqdm=False)
        except BaseException:
            self._drop_requests()
            raise
        return written

    def _drop_requests(self) -> None:
        """Nothing of a batch that was broken off may run on beside the next."""
        engine = self._llm.llm_engine
        engine.abort_request(list(engine.output_processor.request_states), internal=True)
        self._llm.wake_up(tags=["scheduling"])

    @contextmanager
    def _each_under(self, directions: Sequence[Direction | None]) -> Iterator[list[Any]]:
        """Each request under its direction, by an adapter of its own, which is given, or else all under the same."""
        if self._scope.rank is None:
            if len(set(directions)) != 1:
                raise ValueError(f"A batch takes one direction, not {len(set(directions))}.")
            with self._under(directions[0]):
                yield [None] * len(directions)
            return
        distinct = list(dict.fromkeys(one for one in directions if one is not None))
        adapters = {one: adapter_of(one, self._adapters + number) for number, one in enumerate(distinct, 1)}
        self._adapters += len(distinct)
        try:
            self._forget()
            yield [None if one is None else adapters[one] for one in directions]
        finally:
            for adapter in adapters.values():
                self._llm.llm_engine.remove_lora(adapter.lora_int_id)

    @contextmanager
    def _under(self, direction: Direction | None) -> Iterator[None]:
        """Under a direction, or the true weights. No activation of an earlier batch is met again either way."""
        try:
            if direction is not None:
                self._llm.collective_rpc("es_perturb", args=(direction.seed, direction.sigma))
            self._forget()
            yield
        finally:
            if direction is not None:
                self._llm.collective_rpc("es_restore")
                self._forget()

    def _forget(self) -> None:
        """Empty every cache of activations: they are of other weights now."""
        self._llm.reset_prefix_cache()
        self._llm.reset_mm_cache()
        self._llm.llm_engine.reset_encoder_cache()

    @contextmanager
    def _dumped(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="eoh-esopt-weights-") as name:
            folder = Path(name)
            self._assembly.prepare(folder)
            self._llm.collective_rpc("es_dump", args=(name,))
            yield folder


def _engine(
    folder: Path, scope: Scope, dtype: str, max_batch: int, max_model_len: int | None, tensor_parallel: int, eager: bool
) -> Any:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    try:
        import torch
        from vllm import LLM
    except ImportError as error:
        raise UserError(f"vLLM is not installed ({error}). Install it: pip install 'eoh-esopt[vllm]'.") from error
    check_version()
    if scope.multiplicative:
        os.environ.setdefault("VLLM_USE_V2_MODEL_RUNNER", "0")  # the first one shows whose tokens a step holds
    adapters = {} if scope.rank is None else engine_settings(scope.rank, max_batch)
    try:
        with script_left_out():
            return LLM(
                str(folder),
                dtype=dtype,
                max_num_seqs=max_batch,
                max_model_len=max_model_len,
                tensor_parallel_size=tensor_parallel,
                enforce_eager=eager or scope.multiplicative or not torch.cuda.is_available(),
                worker_extension_cls=EXTENSION,
                disable_log_stats=True,
                **memory_share(folder, scope.name, tensor_parallel),
                **whole_prompts(),
                **adapters,
            )
    except (ValueError, RuntimeError, OSError) as error:
        raise UserError(f"vLLM cannot serve {folder}: {error}") from error


def whole_prompts() -> dict[str, bool]:
    """vLLM's setting that has no prompt read in parts, where there is no GPU; none where there is.

    After a part, vLLM 0.32 takes back what the request's generator has drawn. torch's generators on CPUs have no way
    back, and the engine ends, with every request.
    """
    import torch

    return {} if torch.cuda.is_available() else {"enable_chunked_prefill": False}


def memory_share(folder: Path, scope: str, tensor_parallel: int) -> dict[str, float]:
    """vLLM's setting for the share of each GPU that it may fill: the usual one less what the masters need.

    Raises:
        UserError: the checkpoint cannot be read, or its masters leave no room on the GPU.
    """
    import torch

    if not torch.cuda.is_available() or get_scope(scope).multiplicative:
        return {}
    masters = 4 * sum(math.prod(one.shape) for one in stored_tensors(folder).values()) / tensor_parallel
    share = _USUAL_SHARE - masters / torch.cuda.get_device_properties(0).total_memory
    if share < _LEAST_SHARE:
        raise UserError(
            f"The float32 masters of {folder.name} take {masters / 2**30:.0f} GiB of each GPU, which leaves too little "
            "for vLLM. Split the model with --tensor-parallel, use --scope norms, or a smaller model."
        )
    return {"gpu_memory_utilization": round(share, 3)}


def check_version() -> None:
    """Refuse vLLM releases that this was not tested with: weights and caches are reached by its inner names.

    Raises:
        UserError: another release is installed.
    """
    found = next((text for text in map(_version, ("vllm", "vllm-cpu")) if text), "")
    if not found.startswith(TESTED):
        raise UserError(
            f"vLLM {found or 'of unknown version'} is installed; this was tested with {', '.join(TESTED)}. "
            f"Install one of those: pip install 'vllm=={TESTED[-1]}.*'."
        )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
