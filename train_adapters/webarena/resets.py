"""Putting a set of sites back, by requests or by a command of the user's."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Sequence

from train_adapters.webarena.failures import InfraFailed

_TAIL = 300
"""Characters of what a command says last that are told."""


def reset_by_request(url: str, seconds: float) -> None:
    """Send a POST and wait for the answer.

    Args:
        url: of whatever puts the sites back.
        seconds: limit.

    Raises:
        InfraFailed: it could not be sent, or the answer is an error or too late.
    """
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=seconds) as answer:
            answer.read()
    except (OSError, http.client.HTTPException) as error:
        why = f"no answer within {seconds:g} s" if "timed out" in str(error) else str(error) or type(error).__name__
        raise InfraFailed("reset_failed", f"the sites were not put back: POST {url}: {why}") from error


def reset_by_command(command: Sequence[str], seconds: float) -> None:
    """Run a command and wait for its end.

    Args:
        command: and its arguments.
        seconds: limit; what still runs then is ended, with all that it has started.

    Raises:
        InfraFailed: it could not be run, did not end in time or not with 0.
    """
    name = command[0]
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise InfraFailed("reset_failed", f"the sites were not put back: {error}") from error
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise InfraFailed(
                "reset_failed", f"the sites were not put back: {name} had not ended after {seconds:g} s"
            ) from None
        if code:
            said.seek(0)
            text = " ".join(said.read().decode(errors="replace").split())[-_TAIL:]
            raise InfraFailed("reset_failed", f"the sites were not put back: {name} ended with {code}: {text}")
