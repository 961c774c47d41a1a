"""`eoh-esopt doctor`: what this machine offers, and what to do about what it lacks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from operators.errors import UserError


class Finding(NamedTuple):
    """One line of the report: what was looked at, whether it is fine, and what was found."""

    what: str
    fine: bool
    found: str


@click.command()
def doctor() -> None:
    """Say what this machine offers: memory, processor, isolation of candidates, models in the cache.

    Exit code 0 when a search can run, 1 when it cannot.

    \b
    Example:
      eoh-esopt doctor
    """
    table = Table("", "what", "found", title="eoh-esopt doctor", title_justify="left")
    findings = list(_findings())
    for finding in findings:
        table.add_row("ok" if finding.fine else "--", finding.what, Text(finding.found))
    Console().print(table)
    raise SystemExit(0 if all(finding.fine for finding in findings if finding.what in _NEEDED) else 1)


_NEEDED = ("noise", "sandbox")


def _findings() -> Iterator[Finding]:
    import torch

    from eoh_esopt.engine.run import machine

    facts = machine()
    packages = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    yield Finding("python and packages", True, f"{facts['python']}; {packages}")
    yield Finding(
        "processor", True, f"{os.cpu_count()} cores, {facts['cpu_capability']}, {torch.get_num_threads()} threads"
    )
    fast = "avx512_bf16" in _cpu_flags() or torch.cuda.is_available()
    advice = "" if fast else "; on this processor --dtype float32 may be faster"
    yield Finding("bfloat16 in hardware", fast, ("yes" if fast else "no") + advice)
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    yield Finding("GPU", bool(gpus), ", ".join(gpus) or "none: small models run on the processor")
    yield _memory()
    yield _noise()
    yield from _sandbox()
    yield from _models()


def _cpu_flags() -> str:
    try:
        with open("/proc/cpuinfo") as stream:
            return next((line for line in stream if line.startswith("flags")), "")
    except OSError:
        return ""


def _memory() -> Finding:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError):
        return Finding("memory", True, "unknown")
    free = shutil.disk_usage(os.getcwd()).free / 2**30
    return Finding("memory", total > 4, f"{total:.0f} GiB; {free:.0f} GiB free on this disk")


def _noise() -> Finding:
    """The fast kernels against the definition."""
    import numpy as np

    from eoh_esopt.models.kernels import fill_noise
    from eoh_esopt.models.spans import Span
    from operators.noise import NOISE_VERSION, noise, normal_table, stream_key

    values = np.empty(1001, np.float32)
    fill_noise(values, np.uint64(stream_key(1, "doctor")), *Span.whole(1001).arguments, normal_table())
    same = bool((values == noise(1, "doctor", 0, 1001)).all())
    return Finding(
        "noise", same, f"version {NOISE_VERSION}, fast kernels {'equal' if same else 'DIFFER FROM'} its definition"
    )


def _sandbox() -> Iterator[Finding]:
    from eoh_esopt.sandbox.evaluator import Evaluator
    from eoh_esopt.sandbox.spec import ProblemSpec
    from operators.records import Status
    from problems.registry import get

    task = get("tsp_construct").task
    try:
        with Evaluator(ProblemSpec.named("tsp_construct"), workers=1) as evaluator:
            outcomes = [outcome for _, outcome in evaluator.evaluate([task.seeds[0].code])]
            fine = outcomes[0].status is Status.OK
            yield Finding("sandbox", fine, evaluator.isolation_level if fine else outcomes[0].detail)
    except UserError as error:
        yield Finding("sandbox", False, str(error))


def _models() -> Iterator[Finding]:
    from eoh_esopt.models.catalogue import known_names
    from eoh_esopt.models.fetch import info

    here = [name for name in known_names() if info(name).folder is not None]
    yield Finding(
        "models in the cache", bool(here), ", ".join(here) or "none: eoh-esopt model get SmolLM2-135M-Instruct"
    )
