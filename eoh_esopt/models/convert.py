"""GGUF to safetensors: one quantised file becomes a model folder in bfloat16 that transformers opens.

Covers: unpacking the weights, tying the embedding to the output matrix, end tokens, and saving. It runs in a process of
its own (`run_conversion` starts `python -m eoh_esopt.models.convert`), so that its peak memory is given back and an
out-of-memory kill is reported rather than suffered. Not here: where the GGUF comes from and where the result goes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from operators.errors import UserError


def run_conversion(
    gguf: Path, out: Path, *, end_tokens: Sequence[str], parameters: int, memory: int, keep_open: int
) -> None:
    """Convert `gguf` into the new folder `out`, in a child process.

    Args:
        end_tokens: tokens that end an answer, the chat format's own first.
        parameters: the number of weights the result must have.
        memory: peak memory to be expected, in bytes; only named in the message when the child is killed.
        keep_open: file descriptor of the caller's lock; the child holds it too, so that the lock outlives a killed
            parent for as long as the child still writes.

    Raises:
        UserError: the child failed or was killed.
    """
    order = {
        "gguf": str(gguf),
        "out": str(out),
        "end_tokens": list(end_tokens),
        "parameters": parameters,
    }
    done = subprocess.run(
        [sys.executable, "-m", "eoh_esopt.models.convert", json.dumps(order)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
        pass_fds=(keep_open,),
        check=False,
    )
    if done.returncode == -signal.SIGKILL:
        raise UserError(
            f"converting {gguf.name} was killed, most likely for lack of memory: it needs about "
            f"{memory / 1e9:.1f} GB. Close other programs or take a smaller model; nothing half-made was kept."
        )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(
            f"converting {gguf.name} failed: {last}. Check that transformers and gguf have the versions in "
            "constraints.txt; nothing half-made was kept."
        )


def convert(gguf: Path, out: Path, *, end_tokens: Sequence[str], parameters: int) -> None:
    """Convert `gguf` into the new folder `out`, in this process.

    Raises:
        ValueError: the model has another number of weights than `parameters`, or no token of `end_tokens`.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, file = str(gguf.parent), gguf.name
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.bfloat16, **_unpack_fully())
    _forget_quantisation(model)
    _tie_to_output(model)
    count = sum(weight.numel() for weight in model.parameters())
    if count != parameters:
        raise ValueError(f"{file} gives {count:,} weights where {parameters:,} were expected")
    _set_end_tokens(model, tokenizer, end_tokens)
    tokenizer.model_max_length = model.config.max_position_embeddings
    model.config.__dict__.pop("_model_name_or_path", None)
    model.save_pretrained(str(out))
    tokenizer.save_pretrained(str(out))


def _unpack_fully() -> dict[str, Any]:
    """Ask for dense weights where this transformers could also leave them in their quantised blocks."""
    import transformers

    config: Any = getattr(transformers, "GgufConfig", None)
    return {} if config is None else {"quantization_config": config(dequantize=True)}


def _forget_quantisation(model: Any) -> None:
    """Drop the marks of the quantised file; transformers refuses to save a model that bears them."""
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.is_quantized = False


def _tie_to_output(model: Any) -> None:
    """Share one matrix between embedding and output.

    Every catalogue model with a GGUF source is tied upstream; some files hold two differently quantised copies. The
    output matrix is kept, being the finer one.
    """
    embedding, output = model.get_input_embeddings(), model.get_output_embeddings()
    embedding.weight = output.weight
    model.config.tie_word_embeddings = True


def _set_end_tokens(model: Any, tokenizer: Any, end_tokens: Sequence[str]) -> None:
    """Make tokenizer, config and generation config agree on what ends an answer."""
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    ends = [token for token in end_tokens if token in vocabulary]
    if not ends or ends[0] != end_tokens[0]:
        raise ValueError(f"the tokenizer does not know the end token {end_tokens[0]!r}")
    ids = [vocabulary[token] for token in ends]
    tokenizer.eos_token = ends[0]
    if tokenizer.pad_token is None:
        tokenizer.pad_token = ends[-1]
    model.generation_config._from_model_config = False  # else transformers may rebuild it from the config
    model.config.eos_token_id = ids[0]
    model.config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.eos_token_id = ids
    model.generation_config.pad_token_id = tokenizer.pad_token_id


def _main() -> None:
    order = json.loads(sys.argv[1])
    convert(
        Path(order["gguf"]),
        Path(order["out"]),
        end_tokens=order["end_tokens"],
        parameters=order["parameters"],
    )


if __name__ == "__main__":
    _main()
