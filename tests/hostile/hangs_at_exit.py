# Promise: nothing of the candidate runs once its answer is out.
# Expect: ok
# Walls: none
import atexit
import time
import weakref


class Late:
    def __del__(self):
        time.sleep(10**6)


kept = Late()
atexit.register(time.sleep, 10**6)
weakref.finalize(kept, time.sleep, 10**6)


def attack(honest, *arguments):
    return honest(*arguments)
