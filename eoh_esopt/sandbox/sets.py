"""The instance sets of a problem by split and size, as specs that the sandbox can build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eoh_esopt.sandbox.spec import ProblemSpec
from problems import registry


def named_sets(
    problem: str, split: str | None, sizes: Sequence[int], instances: int | None, data: str | None
) -> Iterator[tuple[str, ProblemSpec]]:
    """Name and spec of each set that is asked for. All are built once, so that a mistake shows before the work.

    Args:
        problem: name, or absolute path of a file.
        split: train, val or test; None for test where the problem has published sets.
        sizes: of the instances; none for all published ones.
        instances: the first so many of each set; None for the problem's default.
        data: folder of published files; None for instances drawn from their seeds.

    Raises:
        UserError: there is no such problem or set.
    """
    published = registry.get(problem).sets
    if published is not None:
        split = split or "test"
        sizes = sizes or published.sizes(split)
    chosen: Sequence[int | None] = sizes or [None]
    for size in chosen:
        spec = ProblemSpec.named(problem, split=split, size=size, n_instances=instances, data=data)
        spec.build()
        yield f"{split or ''}{size or ''}" or "all", spec
