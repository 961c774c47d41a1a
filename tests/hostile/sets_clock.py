# Promise: a candidate cannot set the clock.
# Expect: raised
# Walls: seccomp
import time


def attack(honest, *arguments):
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return honest(*arguments)
