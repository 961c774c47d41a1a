"""Adapted weights to the Hugging Face hub: whether that can be done, and doing it."""

from __future__ import annotations

import re
from pathlib import Path

from eoh_esopt.models import hub
from operators.errors import UserError

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def check_push(repo: str) -> None:
    """Refuse a push that must fail, before minutes are spent on what is to be pushed.

    Args:
        repo: `organisation/name`, or `user/name`.

    Raises:
        UserError: no such name is possible, the hub cannot be reached, or it does not know who is asking.
    """
    from huggingface_hub import HfApi, errors

    if not _REPO.fullmatch(repo):
        raise UserError(f"Cannot push to {repo!r}: that is no hub repository. Give it as ORG/NAME.")
    try:
        hub.check_reachable()
        HfApi().whoami()
    except hub.HubUnavailable as error:
        raise UserError(f"Cannot push to {repo}: {error}. Leave out --push, and upload the folder later.") from error
    except errors.LocalTokenNotFoundError as error:
        raise UserError(f"Cannot push to {repo}: no token. Log in with `hf auth login`, or set HF_TOKEN.") from error
    except (errors.HTTPError, OSError) as error:  # type: ignore[attr-defined]  # of whichever client it uses
        raise UserError(
            f"Cannot push to {repo}: the hub refuses the token ({_line(error)}). Log in with `hf auth login`, or set "
            "HF_TOKEN."
        ) from error


def push(folder: Path, repo: str) -> str:
    """Upload a folder as a model repository, a private one where it is new; returns its address.

    Raises:
        UserError: the hub refused it, or the connection broke.
    """
    from huggingface_hub import HfApi, errors

    try:
        address = HfApi().create_repo(repo, private=True, exist_ok=True)
        HfApi().upload_folder(repo_id=repo, folder_path=folder, commit_message="Adapted weights and model card")
    except (errors.HTTPError, OSError, ValueError) as error:  # type: ignore[attr-defined]
        raise UserError(
            f"{folder} is written, but could not be pushed to {repo}: {_line(error)}. Later: hf upload {repo} {folder}"
        ) from error
    return str(address)


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
