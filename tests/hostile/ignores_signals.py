# Promise: ignoring signals does not put the deadline off.
# Expect: timeout
# Walls: none
import contextlib
import signal


def attack(honest, *arguments):
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        pass
