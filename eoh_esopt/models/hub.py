"""Models from the Hugging Face hub: what its own cache already holds, a quick probe, and the download.

The probe exists because the hub's client retries for minutes when there is no network. Not here: the order of sources
(`fetch`).
"""

from __future__ import annotations

import os
import threading
import urllib.error
import urllib.request
from pathlib import Path

from eoh_esopt.models.local import missing_pieces
from operators.errors import UserError

_PROBE_SECONDS = 3.0
_WANTED = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]
_UNWANTED = ["original/*", "*.pth", "*.bin", "*.gguf", "onnx/*"]


class HubUnavailable(Exception):
    """The hub cannot be asked just now; the message says why. Another source may be tried."""


def cached_snapshot(hub_id: str) -> Path | None:
    """The complete copy of a model in the hub client's own cache, without network; else None."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(
            snapshot_download(hub_id, local_files_only=True, allow_patterns=_WANTED, ignore_patterns=_UNWANTED)
        )
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    return None if missing_pieces(folder) else folder


def download_snapshot(hub_id: str) -> Path:
    """Download a model into the hub client's own cache; returns its folder.

    Raises:
        HubUnavailable: offline by choice, no answer within three seconds, or the connection broke.
        UserError: the hub answered, and the model is gated, private, unknown, or without safetensors weights.
    """
    from huggingface_hub import errors, snapshot_download

    check_reachable()
    try:
        folder = Path(snapshot_download(hub_id, allow_patterns=_WANTED, ignore_patterns=_UNWANTED))
    except errors.GatedRepoError as error:
        raise UserError(
            f"model {hub_id} is gated: accept its licence on its hub page, then log in with `hf auth login` or set "
            "HF_TOKEN"
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise UserError(
            f"the hub has no model {hub_id}, or it is private: check the spelling, or log in with `hf auth login` or "
            "set HF_TOKEN"
        ) from error
    except (errors.HTTPError, OSError) as error:  # type: ignore[attr-defined]  # of whichever client it uses
        if _refused(error):
            raise UserError(f"the hub refuses {hub_id}: log in with `hf auth login` or set HF_TOKEN") from error
        raise HubUnavailable(f"the download broke off ({_first_line(error)})") from error
    if missing := missing_pieces(folder):
        raise UserError(f"hub model {hub_id} lacks {', '.join(missing)}: take one with safetensors weights")
    return folder


def check_reachable() -> None:
    """Ask the hub for a sign of life, for at most three seconds, name look-up included.

    Raises:
        HubUnavailable: offline by choice, or there was no answer.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in ("1", "true", "yes", "on"):
        raise HubUnavailable("HF_HUB_OFFLINE is set")
    outcome: list[str | None] = []

    def ask() -> None:
        request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
        try:
            with urllib.request.urlopen(request, timeout=_PROBE_SECONDS):
                outcome.append(None)
        except urllib.error.URLError as error:
            outcome.append(str(error.reason))
        except (OSError, ValueError) as error:
            outcome.append(_first_line(error))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PROBE_SECONDS)
    if not outcome:
        raise HubUnavailable(f"no answer within {_PROBE_SECONDS:.0f} s")
    if outcome[0] is not None:
        raise HubUnavailable(outcome[0])


def _refused(error: BaseException) -> bool:
    """Whether an exception, or what caused it, is the hub's answer 401 or 403."""
    cause: BaseException | None = error
    while cause is not None:
        if getattr(getattr(cause, "response", None), "status_code", None) in (401, 403):
            return True
        cause = cause.__cause__
    return False


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
