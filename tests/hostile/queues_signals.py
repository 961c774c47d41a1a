# Promise: signals that a candidate queues for itself hold nothing up.
# Expect: ok
# Walls: none
import os
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
    for _ in range(100):
        os.kill(os.getpid(), number)


def attack(honest, *arguments):
    return honest(*arguments)
