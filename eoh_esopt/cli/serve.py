"""`eoh-esopt serve`: a model in vLLM's own server, with weights that a search can move."""

from __future__ import annotations

import click


@click.command()
@click.option("--model", required=True, help="Name from `eoh-esopt model list`, a hub id, or a folder.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on: this machine alone.")
@click.option("--dtype", default="auto", show_default=True, help="auto, bfloat16, float16 or float32.")
@click.option("--max-model-len", type=click.IntRange(1), help="Context in tokens.  [default: the model's]")
@click.option("--tensor-parallel", type=click.IntRange(1), default=1, show_default=True, help="GPUs for one copy.")
@click.option(
    "--scope", default="full", show_default=True, help="Largest scope of the runs: full or norms (less memory)."
)
@click.argument("vllm_arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- VLLM ARGUMENTS]")
def serve(
    model: str,
    port: int,
    host: str,
    dtype: str,
    max_model_len: int | None,
    tensor_parallel: int,
    scope: str,
    vllm_arguments: tuple[str, ...],
) -> None:
    """Serve a model with vLLM so that `eoh-esopt run --backend served` can move its weights.

    Every request needs a key: that of EOH_ESOPT_KEY, or one that is made and kept in a file for this user. What follows
    `--` goes to vLLM's own server.

    \b
    Examples:
      eoh-esopt serve --model SmolLM2-135M-Instruct
      eoh-esopt serve --model meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --port 8001
      eoh-esopt serve --model ./my-model --tensor-parallel 2 -- --gpu-memory-utilization 0.8
    """
    from eoh_esopt.models.vllm import server

    options = server.ServeOptions(model, host, port, dtype, max_model_len, tensor_parallel, scope, vllm_arguments)
    server.serve(options, lambda text: click.echo(text, err=True))
