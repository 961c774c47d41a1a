"""A training on the local sites in a process of its own that kills itself in the middle of an episode.

Arguments: the folder, and the number of the batch of replies before which it dies.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from training_cases import train
from web_cases import adapter, config
from web_models import Interrupted, opens

if __name__ == "__main__":
    model = Interrupted(int(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL), opens)
    train(Path(sys.argv[1]), config(), model, adapter())  # type: ignore[arg-type]
