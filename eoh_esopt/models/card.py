"""Model cards: what adapted weights are, what they were made from, how to load them, and what is not known of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eoh_esopt.models.cache import read_record
from eoh_esopt.models.catalogue import lookup
from operators.records import Update

SEARCH, TRAINING = "search for heuristics", "training of an agent"
"""What weights may have been adapted in."""

_LICENCE_IDS = {"apache-2.0": "apache-2.0", "mit": "mit", "llama 3.1": "llama3.1"}
"""What the hub calls the licences that a name begins with."""


@dataclass(frozen=True)
class Base:
    """The model that weights were adapted from.

    Attributes:
        name: its hub id where it is known, else the name of its folder.
        hub_id: None where it is not known.
        licence: as its makers name it; None where it is not known.
    """

    name: str
    hub_id: str | None
    licence: str | None


@dataclass(frozen=True)
class Card:
    """What a model card states.

    Attributes:
        name: what the model is called there; also what to give to the loaders.
        base: the model that it was made from.
        base_checksum: sha256 of the base's true weights.
        checksum: sha256 of the adapted true weights.
        history: sha256 of the history file.
        verdict: whether these are the weights that the run ended with.
        scope: which weights moved.
        restore: restore mode of the run.
        dtype: of the weights written.
        updates: what was applied.
        command: what wrote the folder.
        search: what the run was for and what came of it, in sentences; empty where that is not known.
        files: sha256 of the files with weights.
        rank: of low-rank noise; None for full noise.
        purpose: what the weights were adapted in, `SEARCH` or `TRAINING`.
    """

    name: str
    base: Base
    base_checksum: str
    checksum: str
    history: str
    verdict: str
    scope: str
    restore: str
    dtype: str
    updates: Sequence[Update]
    command: str
    search: str
    files: Mapping[str, str]
    rank: int | None = None
    purpose: str = SEARCH

    def text(self) -> str:
        """The card in Markdown, with the header that hubs read."""
        parts = (self._header(), self._summary(), self._origin(), self._loading(), self._measured(), self._files())
        return "\n\n".join(parts) + "\n"

    def _header(self) -> str:
        licence = _licence_id(self.base.licence)
        lines = [
            "library_name: transformers",
            "pipeline_tag: text-generation",
            *([f"base_model: {self.base.hub_id}"] if self.base.hub_id else []),
            *([f"license: {licence}"] if licence else []),
            f"tags:\n- evolution-strategies\n- {'heuristic-search' if self.purpose == SEARCH else 'agents'}",
        ]
        return "\n".join(["---", *lines, "---"])

    def _summary(self) -> str:
        moved = "all weights" if self.scope == "full" else "only the gains of its RMSNorm layers"
        if self.rank is not None:
            moved = f"the matrices of its linear layers, by noise of rank {self.rank}"
        return (
            f"# {self.name}\n\n{self.base.name}, adapted by evolution strategies on its weights during a "
            f"{self.purpose}: {_count(len(self.updates), 'update')} moved {moved} (scope `{self.scope}`). Made by "
            "eoh-esopt.\n\n"
            + (
                f"Licence: that of the base model, {self.base.licence}."
                if self.base.licence
                else "Licence: that of the base model, which is not known here. Ask its makers before passing it on."
            )
        )

    def _origin(self) -> str:
        rows = [
            ("base model", self.base.name),
            ("base weights, sha256", f"`{self.base_checksum}`"),
            ("adapted weights, sha256", f"`{self.checksum}`"),
            ("history file, sha256", f"`{self.history}`"),
            ("scope", self.scope),
            ("noise", "full" if self.rank is None else f"lowrank, rank {self.rank}"),
            ("updates", str(len(self.updates))),
            ("directions of an update", _first_to_last([len(one.seeds) for one in self.updates])),
            ("sigma", _first_to_last([one.sigma for one in self.updates])),
            ("alpha", _first_to_last([one.alpha for one in self.updates])),
            ("restore mode", self.restore),
            ("dtype of this copy", self.dtype),
        ]
        table = "\n".join(f"| {name} | {value} |" for name, value in rows)
        return (
            f"## Where it comes from\n\n| | |\n|---|---|\n{table}\n\n{self.verdict}\n\nThe two sums of weights are "
            "those of the history: over the exact values, before they were rounded to this copy's dtype. The base "
            f"model and the history are all that is needed to make it again:\n\n```\n{self.command}\n```"
        )

    def _loading(self) -> str:
        option = " --dtype float32" if self.dtype == "float32" else ""
        note = " Without `--dtype` it rounds float32 weights." if option else ""
        return (
            "## Loading\n\n```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
            f'model = AutoModelForCausalLM.from_pretrained("{self.name}")\n'
            f'tokenizer = AutoTokenizer.from_pretrained("{self.name}")\n```\n\n'
            f"or `vllm serve {self.name}{option}`.{note} Configuration, tokenizer and chat template "
            "are the base model's."
        )

    def _measured(self) -> str:
        what = self.purpose.partition(" ")[0]
        return (
            f"## What was measured\n\n{self.search or f'What the {what} found is not part of the history.'}\n\n"
            "Nothing else was evaluated: neither other tasks, nor general abilities, nor safety. The weights were "
            f"moved towards replies that score well in one {what}; expect the rest to be the base model's at best."
        )

    def _files(self) -> str:
        rows = "\n".join(f"| {name} | `{value}` |" for name, value in self.files.items())
        return f"## Files\n\n| file | sha256 |\n|---|---|\n{rows}"


def base_of(name: str, folder: Path) -> Base:
    """What is known of a base model.

    Args:
        name: as the user named it: a name of the catalogue, a hub id or a path.
        folder: where it lies.
    """
    record = read_record(folder)
    entry = lookup(name) or (lookup(record.name) if record else None)
    if entry is not None:
        return Base(entry.hub_id, entry.hub_id, entry.licence)
    if Path(name).is_dir() or name.count("/") != 1:
        return Base(folder.name, None, record.licence if record else None)
    return Base(name, name, None)


def describe_search(run: Path) -> str:
    """What the run in a folder was for and what came of it, in sentences; empty where it is not known."""
    try:
        config = json.loads((run / "config.json").read_text(encoding="utf-8"))
        problem = Path(config["problem"]).name
        text = f"The search was for heuristics for `{problem}` (method {config['method']}, budget {config['budget']})."
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    try:
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        value = float(summary["best"]["objective"]) * (-1 if summary["maximise"] else 1)
        return f"{text} On its instances the best heuristic has a mean {summary['measure']} of {value:.6g}."
    except (OSError, ValueError, KeyError, TypeError):
        return text


def purpose_of(run: Path) -> str:
    """What the run in a folder was, `SEARCH` where that is not known."""
    try:
        return TRAINING if "adapter" in json.loads((run / "config.json").read_text(encoding="utf-8")) else SEARCH
    except (OSError, ValueError, TypeError):
        return SEARCH


def describe_training(run: Path) -> str:
    """What the training in a folder was on and what came of it, in sentences; empty where it is not known."""
    try:
        adapter = Path(json.loads((run / "config.json").read_text(encoding="utf-8"))["adapter"]).stem
        text = f"The training was on `{adapter}`."
        last = json.loads((run / "summary.json").read_text(encoding="utf-8"))["evaluations"][-1]
        return (
            f"{text} On the {_count(len(last['rewards']), 'task')} of its split {last['split']} the mean reward is "
            f"{last['mean']:.3f}, over {_count(len(last['repeats']), 'repeat')}."
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return ""


def _licence_id(licence: str | None) -> str | None:
    known = (licence or "").lower()
    return next((name for begin, name in _LICENCE_IDS.items() if known.startswith(begin)), None)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _first_to_last(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{values[0]:g}" if values[0] == values[-1] else f"{values[0]:g} to {values[-1]:g}"
