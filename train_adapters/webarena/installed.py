"""Where the environments of the browsers and of the benchmark's scorer are, their data, and Chromium."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from operators.errors import UserError

_ROOT = Path(__file__).parents[2]
_REMEDY = "Make it with scripts/setup_web.sh"
BROWSERS, SCORER = ("EOH_ESOPT_WEB", ".venv-web"), ("EOH_ESOPT_WEBSCORE", ".venv-webscore")
"""Variables that name the environments, and where they are looked for without them."""


def environment(which: tuple[str, str]) -> Path:
    """The folder of a virtual environment.

    Raises:
        UserError: it is not there.
    """
    variable, name = which
    named = os.environ.get(variable)
    for folder in (Path(named),) if named else (_ROOT / name, Path.cwd() / name):
        if (folder / "bin" / "python").exists():
            return folder.absolute()
    raise UserError(f"There is no environment {name}. {_REMEDY}, or let {variable} name the folder it is in.")


def python_of(which: tuple[str, str]) -> Path:
    """The Python of a virtual environment.

    Raises:
        UserError: it is not there.
    """
    return environment(which) / "bin" / "python"


def data_of(which: tuple[str, str], place: str) -> Path:
    """A file or folder of a package in a virtual environment.

    Args:
        which: the environment.
        place: relative to where its packages are.

    Raises:
        UserError: it is not there.
    """
    folder = environment(which)
    for packages in (folder / "lib").glob("python*/site-packages"):
        if (packages / place).exists():
            return packages / place
    raise UserError(f"{folder} has no {place}. {_REMEDY} again.")


def chromium() -> str:
    """The browser's program.

    Raises:
        UserError: there is none.
    """
    named = os.environ.get("EOH_ESOPT_CHROMIUM")
    for name in filter(None, (named, "chromium", "chromium-browser", "google-chrome")):
        found = shutil.which(name)
        if found:
            return found
    raise UserError("There is no Chromium. Install it (apt-get install chromium), or let EOH_ESOPT_CHROMIUM name it.")
