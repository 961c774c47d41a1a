# Promise: a candidate ended by its own alarm clock costs only itself.
# Expect: killed
# Walls: none
import signal
import time


def attack(honest, *arguments):
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(10**6)
