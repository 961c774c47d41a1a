"""vLLM's own OpenAI-compatible server, with weights that one client can move."""

from __future__ import annotations

import importlib.util
import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from eoh_esopt.models import chat
from eoh_esopt.models.fetch import resolve
from eoh_esopt.models.progress import console_progress
from eoh_esopt.models.protocol import Prompt
from eoh_esopt.models.vllm.control import Control
from eoh_esopt.models.vllm.reaper import leave_nothing_behind
from eoh_esopt.models.vllm.routes import Gate
from eoh_esopt.models.vllm.together import Together
from eoh_esopt.models.vllm.wire import API_KEY, checked_key, is_loopback, key_file
from operators.errors import UserError

EXTENSION = "eoh_esopt.models.vllm.server_extension.EsServerExtension"

_OWN = ("model", "model_tag", "host", "port", "dtype", "max_model_len", "tensor_parallel_size")
_FIXED = (
    "api_key",
    "api_server_count",
    "data_parallel_size",
    "grpc",
    "headless",
    "uds",
    "worker_cls",
    "worker_extension_cls",
)

_STOP_STRINGS = 256
"""How many a request may name: a reply that begins inside a function needs one for each character of a first column."""


@dataclass(frozen=True)
class ServeOptions:
    """What to serve, and where.

    Attributes:
        model: name, hub id or folder.
        host: address to listen on.
        port: port to listen on.
        dtype: of the live weights.
        max_model_len: context kept, in tokens; the model's own when None.
        tensor_parallel: over how many devices each layer is split.
        scope: the largest scope that will be moved: memory of the GPU is kept free for it.
        vllm_arguments: further arguments of vLLM's own server.
    """

    model: str
    host: str = "127.0.0.1"
    port: int = 8000
    dtype: str = "auto"
    max_model_len: int | None = None
    tensor_parallel: int = 1
    scope: str = "full"
    vllm_arguments: tuple[str, ...] = ()


def serve(options: ServeOptions, notify: Callable[[str], None]) -> None:
    """Serve until the process is told to end.

    Raises:
        UserError: vLLM is missing or of a release that was not tested, or cannot serve the model with these options.
    """
    _begin_vllm()
    with console_progress() as progress:
        folder = resolve(options.model, progress=progress)
    tokenizer = _tokenizer(folder)
    with _key(options, notify) as key:
        os.environ["VLLM_API_KEY"] = key  # vLLM guards its own routes too
        arguments = _arguments(options, folder)
        import uvloop

        leave_nothing_behind()
        try:
            uvloop.run(_serve(arguments, folder, tokenizer, key, options, notify))
        except (ValueError, RuntimeError, OSError) as error:
            raise UserError(f"vLLM cannot serve {options.model} on port {options.port}: {error}") from error


def _begin_vllm() -> None:
    """Make vLLM read our settings of it, and see that it is of a release that was tested."""
    found = importlib.util.find_spec("vllm")
    if found is None or found.origin is None:  # a folder of that name is no package
        raise UserError("vLLM is not installed. Install it: pip install 'eoh-esopt[vllm]'.")
    os.environ["VLLM_MAX_STOP_STRINGS"] = str(_STOP_STRINGS)
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    try:
        from eoh_esopt.models.vllm.model import check_version
    except ImportError as error:
        raise UserError(f"vLLM cannot be used: {error}. Install it anew: pip install 'eoh-esopt[vllm]'.") from error
    check_version()


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    chat.check_chat_template(tokenizer, str(folder))
    return tokenizer


@contextmanager
def _key(options: ServeOptions, notify: Callable[[str], None]) -> Iterator[str]:
    """The environment's key, or a new one in a file that only this user can read, for as long as the server runs."""
    if not is_loopback(options.host):
        notify(
            f"Warning: {options.host} is reached from other machines, and whoever has the key may change the model. "
            "The key is sent as it is: use a private network or an encrypted tunnel."
        )
    file = key_file(options.port)
    file.unlink(missing_ok=True)
    key = checked_key(os.environ.get(API_KEY, ""))
    if key:
        yield key
        return
    key = secrets.token_urlsafe(32)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as stream:
        stream.write(key + "\n")
    notify(f"The key is in {file}. Clients of this user on this machine find it; others need it in {API_KEY}.")
    try:
        yield key
    finally:
        file.unlink(missing_ok=True)


def _arguments(options: ServeOptions, folder: Path) -> Any:
    """vLLM's own arguments.

    Raises:
        UserError: some are given that would go around the control, or that belong before the `--`.
    """
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.entrypoints.serve.utils.api_utils import cli_env_setup
    from vllm.logger import configure_logging_from_args
    from vllm.platforms import current_platform
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    from eoh_esopt.models.vllm.model import memory_share, whole_prompts

    cli_env_setup()
    parser = make_arg_parser(FlexibleArgumentParser(prog="eoh-esopt serve ... --"))
    arguments = parser.parse_args(list(options.vllm_arguments))
    _check_further(arguments, parser.parse_args([]), options.vllm_arguments)
    arguments.model, arguments.model_tag = str(folder), None
    arguments.host, arguments.port = options.host, options.port
    arguments.dtype, arguments.max_model_len = options.dtype, options.max_model_len
    arguments.tensor_parallel_size = options.tensor_parallel
    arguments.worker_extension_cls = EXTENSION
    arguments.served_model_name = arguments.served_model_name or [Path(options.model).name]
    arguments.disable_uvicorn_access_log = True
    arguments.enforce_eager = arguments.enforce_eager or current_platform.is_cpu()
    for name, value in whole_prompts().items():
        setattr(arguments, name, value)
    if arguments.gpu_memory_utilization == parser.get_default("gpu_memory_utilization"):
        for name, share in memory_share(folder, options.scope, options.tensor_parallel).items():
            setattr(arguments, name, share)
    configure_logging_from_args(arguments)
    validate_parsed_serve_args(arguments)
    return arguments


def _check_further(given: Any, default: Any, further: Sequence[str]) -> None:
    for name in (*_OWN, *_FIXED):
        if getattr(given, name, None) != getattr(default, name, None):
            option = f"--{name.replace('_', '-')}"
            raise UserError(
                f"{option} cannot be given after -- ({' '.join(further)}). "
                + ("It is an option of `eoh-esopt serve` itself." if name in _OWN else _REMEDIES.get(name, ""))
            )


_REMEDIES = {
    "api_key": f"Put the key into {API_KEY}.",
    "api_server_count": "One process has to control the weights: start several servers instead.",
    "data_parallel_size": "Start several servers instead, see scripts/serve.sh.",
}


async def _serve(
    arguments: Any, folder: Path, tokenizer: Any, key: str, options: ServeOptions, notify: Callable[[str], None]
) -> None:
    from vllm import envs
    from vllm.entrypoints.launchers.api_server.app_state import init_app_state
    from vllm.entrypoints.launchers.api_server.entry import build_async_engine_client
    from vllm.entrypoints.launchers.app import build_app
    from vllm.entrypoints.launchers.launcher import serve_http, setup_server
    from vllm.entrypoints.launchers.utils.server_utils import get_uvicorn_log_config

    from eoh_esopt.models.vllm.engine import ServerEngine

    signal.signal(signal.SIGTERM, _interrupt)  # until the server has handlers of its own
    address, socket = setup_server(arguments, reuse_port=False)
    async with build_async_engine_client(arguments) as llm:
        tasks = await llm.get_supported_tasks()
        app = build_app(arguments, tasks, llm.model_config)
        await init_app_state(llm, app.state, arguments, tasks)
        facts = _facts(arguments, folder, llm.model_config, options) | {"ends": chat.end_tokens(tokenizer, None)}
        engine = ServerEngine(llm, folder)
        control, together = Control(engine, facts), Together(engine)
        inner = app.middleware_stack or app.build_middleware_stack()
        app.middleware_stack = Gate(
            inner, control=control, key=key, render=partial(_render, tokenizer), together=together
        )
        notify(f"Serving {options.model} at {address}. To use it: --backend served --servers {address}")
        log_config = get_uvicorn_log_config(arguments)
        shutdown = await serve_http(
            app,
            sock=socket,
            enable_ssl_refresh=arguments.enable_ssl_refresh,
            host=arguments.host,
            port=arguments.port,
            log_level=arguments.uvicorn_log_level,
            access_log=not arguments.disable_uvicorn_access_log,
            timeout_keep_alive=envs.VLLM_HTTP_TIMEOUT_KEEP_ALIVE,
            ssl_keyfile=arguments.ssl_keyfile,
            ssl_certfile=arguments.ssl_certfile,
            ssl_ca_certs=arguments.ssl_ca_certs,
            ssl_cert_reqs=arguments.ssl_cert_reqs,
            ssl_ciphers=arguments.ssl_ciphers,
            h11_max_incomplete_event_size=arguments.h11_max_incomplete_event_size,
            h11_max_header_count=arguments.h11_max_header_count,
            **({} if log_config is None else {"log_config": log_config}),
        )
    try:
        await shutdown
    finally:
        socket.close()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _facts(arguments: Any, folder: Path, config: Any, options: ServeOptions) -> dict[str, Any]:
    """What the status tells of the server itself."""
    from vllm.version import __version__

    return {
        "model": folder.name,
        "asked_for": options.model,
        "served": arguments.served_model_name[0],
        "dtype": str(config.dtype).removeprefix("torch."),
        "context": int(config.max_model_len),
        "tensor_parallel": arguments.tensor_parallel_size,
        "versions": {"vllm": __version__, "python": sys.version.split()[0]},
    }


def _render(
    tokenizer: Any, turns: Sequence[tuple[Prompt, str]], settings: chat.ChatSettings
) -> list[tuple[list[int], str]]:
    texts = [chat.render(tokenizer, prompt, prefill, settings) for prompt, prefill in turns]
    tokens = chat.encode(tokenizer, texts) if texts else []
    return list(zip(tokens, map(chat.opening, texts), strict=True))
