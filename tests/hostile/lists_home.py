# Promise: the users' folders cannot be listed.
# Expect: raised
# Walls: landlock
import os


def attack(honest, *arguments):
    os.listdir("/home")
    return honest(*arguments)
