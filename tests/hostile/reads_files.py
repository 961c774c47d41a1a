# Promise: files that Python does not need cannot be read.
# Expect: raised
# Walls: landlock
def attack(honest, *arguments):
    with open("/etc/passwd") as file:
        file.read()
    return honest(*arguments)
