"""Scope `norms` by row in a vLLM worker: every token of a step under the direction of the request it belongs to.

A request carries its direction in the extra arguments of its sampling parameters, which vLLM hands to its workers with
it. A hook on the model reads whose tokens a step holds, and a hook on each norm layer scales its output. Neither
compiled layers nor CUDA graphs run hooks, so what was scaled is reported, and has to be asked for after every batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from eoh_esopt.models.row_gains import scaled_rows
from eoh_esopt.models.weights import ScopedTensor
from operators.records import Direction

_CARRIED = "eoh_esopt_direction"


def carry(prompt: dict[str, Any], params: Any, direction: Direction) -> None:
    """Let a request carry its direction: vLLM's prompt and sampling parameters of one request, changed in place.

    What vLLM caches of a prompt is kept apart by the salt, so no other direction's request meets it.
    """
    prompt["cache_salt"] = f"{direction.seed}/{direction.sigma!r}"
    params.extra_args = {_CARRIED: [direction.seed, direction.sigma]}


def trouble(reports: Sequence[Mapping[str, Any]], steps: int) -> str:
    """What the workers left out, by their reports; empty if nothing.

    Args:
        reports: of every worker, see `TokenGains.report`.
        steps: least number of forward passes that requests with directions took.
    """
    for report in reports:
        if report["steps"] < steps:
            return f"its layers were hooked in {report['steps']} of at least {steps} forward passes"
        if report["missed"]:
            return f"the gains {report['missed'][0]} could not be scaled by row"
    return ""


class TokenGains:
    """The hooks of one worker.

    Args:
        runner: vLLM's model runner. Its second version has no `input_batch`, and no hooks are set.
        tensors: the gains in scope.
    """

    def __init__(self, runner: Any, tensors: Sequence[ScopedTensor]) -> None:
        self._runner, self._tensors = runner, tensors
        self._rows: dict[Direction, int] = {}
        self._factors: list[torch.Tensor] = []
        self._row_of_token: torch.Tensor | None = None
        self._steps = 0
        self._left: set[str] = set()
        self._missed: set[str] = set()
        if not hasattr(runner, "input_batch"):
            return
        runner.model.register_forward_pre_hook(self._begin, with_kwargs=True)
        runner.model.register_forward_hook(self._end)
        for number, tensor in enumerate(tensors):
            tensor.module.register_forward_hook(partial(self._scale, number))

    def report(self) -> dict[str, Any]:
        """What was done since the last report.

        Returns:
            Under "steps" the number of forward passes with tokens under directions, under "missed" the names of gains
            that were not scaled in all of them.
        """
        report = {"steps": self._steps, "missed": sorted(self._missed)}
        self._steps, self._missed = 0, set()
        return report

    def _begin(self, model: nn.Module, inputs: Any, named: Mapping[str, Any]) -> None:
        """Before a step: which row of the factors each of its tokens has. Padding follows the tokens, under none."""
        batch = self._runner.input_batch
        directions = [_carried(self._runner.requests[name]) for name in batch.req_ids]
        self._row_of_token = None
        if not any(directions):
            return
        self._make_factors(directions)
        ends = self._runner.query_start_loc.np[: len(directions) + 1]
        rows = [0 if one is None else self._rows[one] for one in directions]
        positions = named["positions"]
        row_of_token = np.zeros(positions.shape[-1], np.int64)
        row_of_token[: ends[-1]] = np.repeat(rows, np.diff(ends))
        self._row_of_token = torch.from_numpy(row_of_token).to(positions.device)
        self._left = {tensor.name for tensor in self._tensors}

    def _make_factors(self, directions: Sequence[Direction | None]) -> None:
        """Make the factors of every direction in the step, unless there are: row 0 is that of no direction."""
        distinct = list(dict.fromkeys(one for one in directions if one is not None))
        if not self._rows.keys() >= set(distinct):
            self._rows = {one: row for row, one in enumerate(distinct, 1)}
            self._factors = [tensor.row_factors([None, *distinct]) for tensor in self._tensors]

    def _scale(self, number: int, module: nn.Module, inputs: Any, output: Any) -> Any:
        """Scale what a norm layer gives. vLLM's also hand on the residual that they were given, behind it."""
        if self._row_of_token is None:
            return None
        normed, *others = output if isinstance(output, tuple) else (output,)
        scaled = scaled_rows(normed, self._factors[number][self._row_of_token])
        if scaled is None:
            return None
        self._left.discard(self._tensors[number].name)
        return (scaled, *others) if others else scaled

    def _end(self, model: nn.Module, inputs: Any, output: Any) -> None:
        if self._row_of_token is not None:
            self._steps += 1
            self._missed |= self._left
        self._row_of_token = None


def _carried(request: Any) -> Direction | None:
    """The direction that a request brought with it."""
    extra = getattr(request.sampling_params, "extra_args", None) or {}
    return Direction(*extra[_CARRIED]) if _CARRIED in extra else None
