# Promise: the interpreter's hooks for errors are never called.
# Expect: raised
# Walls: none
import sys
import threading
import time

sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *details: time.sleep(10**6)


def attack(honest, *arguments):
    raise ValueError("for the hooks")
