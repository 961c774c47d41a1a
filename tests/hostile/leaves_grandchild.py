# Promise: a process that its parent has left alone does not outlive the evaluation either.
# Expect: ok
# Walls: none
import contextlib
import os
import signal
import time

with contextlib.suppress(OSError):
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork():
            os._exit(0)
        os.closerange(0, 64)
        time.sleep(10**6)


def attack(honest, *arguments):
    return honest(*arguments)
