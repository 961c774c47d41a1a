# Promise: a signal that raises errors in the sandbox's own code, again and again, costs at most the candidate.
# Expect: ok raised killed
# Walls: none
import signal


def interrupt(number, frame):
    raise KeyboardInterrupt


signal.signal(signal.SIGALRM, interrupt)


def attack(honest, *arguments):
    result = honest(*arguments)
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    return result
