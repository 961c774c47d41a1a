# Promise: a sleep in native code with every signal blocked is ended at the deadline.
# Expect: timeout
# Walls: none
import ctypes
import signal


def attack(honest, *arguments):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(10**6)
