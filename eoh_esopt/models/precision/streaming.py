"""Weights between the host's memory and a device, chunk by chunk, two buffers deep.

On a CUDA device copies run while the device works on the chunk before; on the CPU both memories are the same one, and
nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch


def host_copy(live: torch.Tensor, limit: int) -> torch.Tensor:
    """float32 copies of n weights in the host's memory, page-locked where they are to be streamed to a CUDA device."""
    copy = torch.empty(live.numel(), dtype=torch.float32, pin_memory=live.is_cuda)
    for target, source in zip(torch.split(copy, limit), torch.split(live, limit), strict=True):
        target.copy_(source)
    return copy


def uploaded(chunks: Sequence[torch.Tensor], device: torch.device) -> Iterator[torch.Tensor]:
    """Chunks of host memory on the device, in order.

    Each is valid until the next one is asked for, and work on it has to be in the device's current stream. On the CPU
    they are the chunks themselves.
    """
    if device.type != "cuda":
        yield from (chunk.to(device) for chunk in chunks)
        return
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    current = torch.cuda.current_stream(device)
    side.wait_stream(current)  # the buffers' memory may still be in use there
    largest = max(chunk.numel() for chunk in chunks)
    buffers = [torch.empty(largest, dtype=chunks[0].dtype, device=device) for _ in range(2)]
    free = _events()
    try:
        arriving: list[tuple[torch.Tensor, torch.cuda.Event]] = []
        for number, chunk in enumerate(chunks):
            with torch.cuda.stream(side):
                side.wait_event(free[number % 2])
                copy = buffers[number % 2][: chunk.numel()]
                copy.copy_(chunk, non_blocking=True)
                arriving.append((copy, side.record_event()))
            if number:
                yield from _arrived(arriving.pop(0), current)
                free[(number - 1) % 2].record(current)
        yield from _arrived(arriving.pop(0), current)
    finally:
        current.wait_stream(side)


def _events() -> list[torch.cuda.Event]:
    """One for each of two buffers. An event that was never recorded has happened."""
    return [torch.cuda.Event(), torch.cuda.Event()]  # type: ignore[no-untyped-call]


def _arrived(arriving: tuple[torch.Tensor, torch.cuda.Event], current: torch.cuda.Stream) -> Iterator[torch.Tensor]:
    copy, event = arriving
    current.wait_event(event)
    yield copy


def cast_into(targets: Sequence[torch.Tensor], sources: Iterable[torch.Tensor]) -> None:
    """targets = cast(sources), rounded on the host, so that only the targets' bytes travel to their device."""
    device = targets[0].device
    if device.type != "cuda":
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)
        return
    largest = max(target.numel() for target in targets)
    buffers = [torch.empty(largest, dtype=targets[0].dtype, pin_memory=True) for _ in range(2)]
    free = _events()
    for number, (target, source) in enumerate(zip(targets, sources, strict=True)):
        free[number % 2].synchronize()
        copy = buffers[number % 2][: target.numel()]
        copy.copy_(source)
        target.copy_(copy, non_blocking=True)
        free[number % 2].record(torch.cuda.current_stream(device))
