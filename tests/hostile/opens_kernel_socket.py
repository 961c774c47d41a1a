# Promise: there is no talking to the kernel's own services.
# Expect: raised
# Walls: seccomp
import socket


def attack(honest, *arguments):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
    return honest(*arguments)
