# Promise: a candidate cannot lift its own limits.
# Expect: raised
# Walls: capabilities
import resource


def attack(honest, *arguments):
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return honest(*arguments)
