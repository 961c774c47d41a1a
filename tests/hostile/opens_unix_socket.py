# Promise: there is no talking to local services.
# Expect: raised
# Walls: seccomp
import socket


def attack(honest, *arguments):
    socket.socket(socket.AF_UNIX)
    return honest(*arguments)
