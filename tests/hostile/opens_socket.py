# Promise: there is no network.
# Expect: raised
# Walls: seccomp
import socket


def attack(honest, *arguments):
    socket.create_connection(("127.0.0.1", 22), timeout=1)
    return honest(*arguments)
