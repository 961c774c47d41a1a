# Promise: memory that grows step by step stops at the cap.
# Expect: out_of_memory
# Walls: none
def attack(honest, *arguments):
    hoard = []
    while True:
        hoard.append(bytearray(1 << 20))
