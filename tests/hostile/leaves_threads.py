# Promise: threads left running do not hold the answer up.
# Expect: ok
# Walls: none
import threading


def spin():
    while True:
        pass


threading.Thread(target=spin).start()


def attack(honest, *arguments):
    return honest(*arguments)
