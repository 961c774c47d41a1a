# Promise: a candidate cannot start another program.
# Expect: raised
# Walls: seccomp
import subprocess


def attack(honest, *arguments):
    subprocess.run(["/bin/sh", "-c", "true"], check=True)
    return honest(*arguments)
