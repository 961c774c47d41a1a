"""The scorer's side of the protocol: `webarena-verified` in its own environment, whose pins go with no other.

It imports nothing of this package; see `browser/line_process.py` for the lines it reads and writes.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from webarena_verified.api import WebArenaVerified
from webarena_verified.types.config import WebArenaVerifiedConfig

PROTOCOL = 1
"""Both sides must have the same."""


def main() -> None:
    """Answer requests until there are no more."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no reply
    logging.disable(logging.CRITICAL)
    _say(out, {"id": 0, "ok": {"protocol": PROTOCOL, "webarena-verified": version("webarena-verified")}})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            _say(out, {"id": request["id"], "ok": _score(**request["with"])})
        except Exception as error:  # noqa: BLE001 - whatever the scorer does, the reply is typed
            _say(
                out, {"id": request["id"], "error": {"kind": "judge_error", "text": f"{type(error).__name__}: {error}"}}
            )


def _say(out: Any, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


_known: dict[str, WebArenaVerified] = {}


def _score(task: int, response: Any, trace: str, urls: dict[str, str]) -> dict[str, Any]:
    """The score of an episode.

    Args:
        task: WebArena's id.
        response: the agent's, as `webarena-verified` wants it.
        trace: HAR file.
        urls: of the sites, by name.
    """
    key = json.dumps(urls, sort_keys=True)
    if key not in _known:
        environments = {f"__{site.upper()}__": {"urls": [url]} for site, url in urls.items()}
        _known[key] = WebArenaVerified(config=WebArenaVerifiedConfig(environments=environments))
    result = _known[key].evaluate_task(task_id=task, agent_response=response, network_trace=Path(trace))
    return {"score": float(result.score), "status": result.status.value, "problem": result.error_msg or ""}


if __name__ == "__main__":
    main()
