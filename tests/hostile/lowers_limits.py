# Promise: limits that a candidate lowers are those of its own process.
# Expect: ok
# Walls: none
import resource

for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_STACK, resource.RLIMIT_MEMLOCK):
    resource.setrlimit(kind, (0, 0))


def attack(honest, *arguments):
    return honest(*arguments)
