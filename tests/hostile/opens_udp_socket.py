# Promise: no datagram leaves the machine.
# Expect: raised
# Walls: seccomp
import socket


def attack(honest, *arguments):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"hello", ("127.0.0.1", 9))
    return honest(*arguments)
