# Promise: a package that is not there is the candidate's error, with its name.
# Expect: raised
# Walls: none
import no_such_package_anywhere


def attack(honest, *arguments):
    return no_such_package_anywhere.solve(*arguments)
