# Promise: a thread that never gives the interpreter back is ended with the rest.
# Expect: timeout
# Walls: none
import sys
import threading
import time


def spin():
    while True:
        pass


def attack(honest, *arguments):
    sys.setswitchinterval(10**6)
    threading.Thread(target=spin).start()
    time.sleep(0)
    return honest(*arguments)
