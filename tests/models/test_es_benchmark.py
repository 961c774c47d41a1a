"""The benchmark of directions and updates, and its plain side."""

from __future__ import annotations

import pytest
import torch

from benchmarks import es
from benchmarks.plain import es as plain

SIZES = {"a.weight": 4000, "b.weight": 4000, "norm.weight": 9}


def weights(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    return {name: torch.full((size,), 0.5, dtype=dtype) for name, size in SIZES.items()}


@pytest.mark.parametrize("dtype", es.DTYPES)
def test_plain_noise_is_sigma_strong_and_each_tensors_own(dtype: torch.dtype) -> None:
    """Ratios against a side that adds less noise, or none, would flatter ours."""
    moved = weights(dtype)
    plain.perturb(moved, 3, 0.25)
    a, b = (moved[name].float() - 0.5 for name in ("a.weight", "b.weight"))
    assert 0.23 < float(a.std()) < 0.27
    assert abs(float(torch.corrcoef(torch.stack([a, b]))[0, 1])) < 0.1
    plain.perturb(moved, 3, -0.25)
    assert all(torch.allclose(one, torch.full_like(one, 0.5), atol=0.02) for one in moved.values())


def test_a_plain_update_adds_the_noise_of_its_directions() -> None:
    """An update that leaves directions out would take a fraction of the time."""
    updated, perturbed = weights(torch.float32), weights(torch.float32)
    plain.update(updated, [3, 4], [0.1, -0.2])
    plain.perturb(perturbed, 3, 0.1)
    plain.perturb(perturbed, 4, -0.2)
    assert all(torch.allclose(updated[name], perturbed[name], atol=1e-6) for name in SIZES)


def test_chunks_go_on_with_the_tensors_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator seeded anew for every chunk would repeat its noise."""
    monkeypatch.setattr(plain, "CHUNK", 1600)
    moved = weights(torch.float32)
    plain.perturb(moved, 3, 1.0)
    first, second = moved["a.weight"][:1600], moved["a.weight"][1600:3200]
    assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 0.1


def test_every_operation_gives_a_row_with_its_bytes_and_normals() -> None:
    """A ratio would be printed beside another operation's name, or a bandwidth that nothing has."""
    rows = {(row.dtype, row.operation): row for row in es.weight_rows(es.WEIGHT_OPERATIONS, SIZES, 0.01)}
    count = sum(SIZES.values())
    assert set(rows) == {(dtype, name) for dtype in ("float32", "bfloat16") for name in es.WEIGHT_OPERATIONS}
    assert all(row.seconds > 0 and row.plain > 0 and row.bound > 0 for row in rows.values())
    assert all(
        row.bound == row.add for name, row in rows.items() if name[0] == "float32" and name[1] in ("perturb", "restore")
    )
    assert rows["bfloat16", "restore"].bound == pytest.approx(1.5 * rows["bfloat16", "restore"].add)
    assert rows["bfloat16", "restore"].bytes_moved == 6 * count
    assert rows["float32", "perturb"].bytes_moved == 8 * count
    assert rows["bfloat16", "update-30"].bytes_moved == 10 * count
    assert rows["bfloat16", "update-30"].normals == 30 * count
    table = es.weight_table(list(rows.values()), threads=2).splitlines()
    assert len(table) == len(rows) + 2
    assert len({line.count("|") for line in table}) == 1


def test_operations_left_out_are_not_measured() -> None:
    """Who asks for one figure would wait for the updates too."""
    assert [row.operation for row in es.weight_rows(["restore", "generate"], SIZES, 0.01)] == ["restore"] * 2


@pytest.mark.parametrize("dtype", es.DTYPES)
def test_ours_comes_back_to_the_masters(dtype: torch.dtype) -> None:
    """The benchmark would time a restore that restores nothing."""
    made = es.make_weights(SIZES, dtype)
    before, works = made.flat.clone(), es._ours(made)
    works["perturb"]()
    assert (made.flat != before).float().mean() > 0.9
    works["restore"]()
    assert torch.equal(made.flat, before)
    works["update-10"]()
    assert not torch.equal(made.flat, before)
