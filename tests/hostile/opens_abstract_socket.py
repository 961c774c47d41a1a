# Promise: there is no waiting for visitors at a name without a file.
# Expect: raised
# Walls: seccomp
import socket


def attack(honest, *arguments):
    socket.socket(socket.AF_UNIX).bind("\0eoh-esopt-hostile")
    return honest(*arguments)
