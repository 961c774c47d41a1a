# Promise: not even the candidate's own working folder is writable.
# Expect: raised
# Walls: landlock
def attack(honest, *arguments):
    with open("note", "w") as file:
        file.write("here")
    return honest(*arguments)
