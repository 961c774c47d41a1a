"""Programs from files that a host wrote: its populations, samples and seeds, in the forms of EoH and of LLM4AD.

Only the programs and their descriptions are taken. What they are worth is measured again: objectives in files may come
from other instances, or be rounded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from eoh_esopt.engine.events import holds_run
from operators.errors import UserError
from operators.task import SeedHeuristic

_FOLDERS = (".", "pops", "results/pops", "population")
"""Where populations lie in a folder of results, of EoH and of LLM4AD."""

_NAME = re.compile(r"(?:population_generation|pop)_(\d+)\.json")
_REMEDY = "Give a population or seed file of EoH or LLM4AD, or the folder of their results."


def read_population(place: Path, imports: str) -> list[SeedHeuristic]:
    """The programs of a file, or of the newest population of a folder.

    Args:
        place: the file or folder.
        imports: lines to put before functions of LLM4AD, which it keeps without any.

    Raises:
        UserError: there is no such file, or it holds something else.
    """
    path = _newest(place) if place.is_dir() else place
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}. {_REMEDY}") from error
    except ValueError as error:
        raise UserError(f"{path} is no JSON: {error}. {_REMEDY}") from error
    entries = [content] if isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise UserError(f"{path} holds a {type(content).__name__}, not a list of programs. {_REMEDY}")
    programs = [_program(entry, f"{path}, entry {number}", imports) for number, entry in enumerate(entries, 1)]
    found = [program for program in programs if program is not None]
    if not found:
        raise UserError(f"{path} holds no program. {_REMEDY}")
    return found


def _newest(folder: Path) -> Path:
    found = {
        (int(match[1]), str(path)): path
        for place in _FOLDERS
        for path in (folder / place).glob("*.json")
        if (match := _NAME.fullmatch(path.name))
    }
    if found:
        return found[max(found)]
    if holds_run(folder):
        raise UserError(
            f"{folder} is a run of eoh-esopt. Write its populations in EoH's form first: "
            f"eoh-esopt export-population {folder} -o DIR, then --init-from DIR."
        )
    raise UserError(f"{folder} holds no population: no population_generation_N.json or pop_N.json. {_REMEDY}")


def _program(entry: Any, where: str, imports: str) -> SeedHeuristic | None:
    """A program and its description; None for the note of a failed attempt, which has no program."""
    if not isinstance(entry, dict):
        raise UserError(f"{where} is a {type(entry).__name__}, not an object. {_REMEDY}")
    key = next((key for key in ("code", "function") if key in entry), None)
    if key is None:
        names = ", ".join(map(str, entry)) or "nothing"
        raise UserError(f"{where} has neither code nor function, only {names}. {_REMEDY}")
    code, idea = entry[key], entry.get("algorithm")
    if code is None:
        return None
    if not isinstance(code, str) or not isinstance(idea, str | None):
        wrong = key if not isinstance(code, str) else "algorithm"
        raise UserError(f"{where}: {wrong} is a {type(entry[wrong]).__name__}, not a text. {_REMEDY}")
    if key == "function":
        code = f"{imports}\n\n{code}"
    return SeedHeuristic(" ".join((idea or "").strip("{} ").split()), code.strip() + "\n")
