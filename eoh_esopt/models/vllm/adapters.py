"""Low-rank directions as vLLM's LoRA adapters: every reply of a batch under its own, no weight written.

An adapter is named by the seed and the sigma of its direction, and the workers make its factors when vLLM asks them to
load it, so no tensors travel. vLLM takes the checkpoint's names, whatever it fused or sharded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_args

import torch
from torch import nn

from eoh_esopt.models.lowrank import LowRankPiece
from operators.errors import UserError
from operators.lowrank import rank_scale
from operators.records import Direction


def engine_settings(rank: int, max_batch: int) -> dict[str, Any]:
    """vLLM's settings for as many adapters in a batch as it has replies.

    Raises:
        UserError: vLLM has no adapters of that rank.
    """
    from vllm.config.lora import MaxLoRARanks

    ranks = [known for known in get_args(MaxLoRARanks) if known >= rank]
    if not ranks:
        raise UserError(f"vLLM's adapters have a rank of at most {max(get_args(MaxLoRARanks))}, not {rank}.")
    return {"enable_lora": True, "max_loras": max_batch, "max_lora_rank": min(ranks)}


def adapter_of(direction: Direction, number: int) -> Any:
    """vLLM's request for a direction's adapter; `number` is positive and no other adapter's."""
    from vllm.lora.request import LoRARequest

    name = f"{direction.seed}/{direction.sigma!r}"
    return LoRARequest(lora_name=name, lora_int_id=number, lora_path=name)


class Adapters:
    """What a worker loads for an adapter's name.

    Args:
        manager: the worker's LoRA manager; it loads from here on what this makes.
        shapes: of the matrices that have low-rank noise, by checkpoint name.
        rank: of the noise.

    Raises:
        UserError: vLLM has no adapter for one of the matrices.
    """

    def __init__(self, manager: Any, shapes: Mapping[str, Sequence[int]], rank: int) -> None:
        self._manager = manager
        self._rank = rank
        self._pieces = [LowRankPiece(name, range(rows), range(width), rank) for name, (rows, width) in shapes.items()]
        self._check_covered()
        manager._load_adapter = self.load

    def load(self, request: Any) -> Any:
        """The adapter of a request made by `adapter_of`."""
        seed, _, sigma = request.lora_path.partition("/")
        return self._made(Direction(int(seed), float(sigma)), request.lora_int_id)

    def _made(self, direction: Direction, number: int) -> Any:
        from vllm.lora.lora_model import LoRAModel
        from vllm.lora.peft_helper import PEFTHelper

        mapper = getattr(self._manager._adapter_manager.model, "hf_to_vllm_mapper", None)
        return LoRAModel.from_lora_tensors(
            number,
            dict(self._tensors(direction)),
            PEFTHelper(r=self._rank, lora_alpha=self._rank, target_modules=[]),
            device="cpu",
            dtype=self._manager.lora_config.lora_dtype,
            weights_mapper=mapper and mapper.get_rename_mapper(),
        )

    def _tensors(self, direction: Direction) -> Iterator[tuple[str, torch.Tensor]]:
        """What a file of the adapter would hold. vLLM's A is our B transposed, and its B our A, scaled."""
        for piece in self._pieces:
            left, right = piece.factors([direction.seed])
            left *= direction.sigma * rank_scale(self._rank)
            module = f"base_model.model.{piece.name.removesuffix('.weight')}"
            yield f"{module}.lora_A.weight", torch.from_numpy(right[0].T)
            yield f"{module}.lora_B.weight", torch.from_numpy(left[0])

    def _check_covered(self) -> None:
        manager = self._manager._adapter_manager
        reached = {part for name in manager.modules for part in manager.packed_modules.get(name, [name])}
        missed = self._made(Direction(0, 0.0), 1).loras.keys() - reached
        if missed:
            raise UserError(
                f"vLLM has no adapter for {min(missed)} of this architecture, so low-rank directions would miss it. "
                "Use --noise full, or --backend transformers."
            )


@contextmanager
def unwrapped(model: nn.Module) -> Iterator[None]:
    """Inside the block the model is as it was before vLLM put its adapters around layers: with the names they had."""
    wrappers = [
        (parent, name, child)
        for parent in list(model.modules())
        for name, child in list(parent.named_children())
        if hasattr(child, "base_layer") and hasattr(child, "punica_wrapper")
    ]
    for parent, name, wrapper in wrappers:
        setattr(parent, name, wrapper.base_layer)
    try:
        yield
    finally:
        for parent, name, wrapper in wrappers:
            setattr(parent, name, wrapper)
