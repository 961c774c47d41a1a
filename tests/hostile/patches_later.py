# Promise: a thread that patches the scorer while the driver works changes nothing.
# Expect: ok
# Walls: none
import sys
import threading


def patch():
    while True:
        problem.score = lambda self, decisions: (0.0,)


frame = sys._getframe()
while "problem" not in frame.f_locals:
    frame = frame.f_back
problem = type(frame.f_locals["problem"])
threading.Thread(target=patch, daemon=True).start()


def attack(honest, *arguments):
    return honest(*arguments)
