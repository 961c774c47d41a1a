"""The code for CUDA of what the Triton kernels launch, compiled in a process of its own and never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget

from eoh_esopt.models import triton_kernels, triton_programs
from eoh_esopt.models.spans import Span


class _Driver:
    """As much of a GPU of compute capability 9.0 as it takes to compile for one."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


class _Compiled:
    """Stands in for a program: a launch compiles it for the launch's own arguments and keeps the code."""

    def __init__(self, program: Any, fused: bool) -> None:
        self._program, self._fused = program, fused
        self.code: list[str] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def compile_only(*arguments: Any, enable_fp_fusion: bool, **options: Any) -> None:
            fusion = enable_fp_fusion or self._fused
            kernel = self._program.warmup(*arguments, grid=grid, enable_fp_fusion=fusion, **options)
            self.code.append(kernel.asm["ptx"])

        return compile_only


def code(program: str, dtype: str, span: Span, size: int, fused: bool = False) -> str:
    """PTX of one launch on a piece.

    Args:
        program: `fill_noise`, `perturb` or `update`.
        dtype: of the live weights.
        span: where the piece lies.
        size: its elements.
        fused: allow fused multiply-adds, whatever the launch says.
    """
    triton.runtime.driver.set_active(_Driver())
    right = getattr(triton_programs, program)
    recorder = _Compiled(right, fused)
    setattr(triton_programs, program, recorder)
    try:
        _launch(program, torch.zeros(size, dtype=getattr(torch, dtype)), torch.zeros(size), span)
    finally:
        setattr(triton_programs, program, right)
    return recorder.code[0]


def _launch(program: str, live: torch.Tensor, master: torch.Tensor, span: Span) -> None:
    if program == "fill_noise":
        triton_kernels.fill_noise(master, 1, "w", span)
    elif program == "perturb":
        triton_kernels.perturb(live, master, 1, 1e-3, "w", span)
    else:
        triton_kernels.update(master, (1, 2, 3), (1.0, 0.5, 0.2), False, "w", span)
