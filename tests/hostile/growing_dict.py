# Promise: memory that grows in small objects stops at the cap.
# Expect: out_of_memory
# Walls: none
def attack(honest, *arguments):
    hoard = {}
    while True:
        hoard[len(hoard)] = f"{len(hoard)}" * 10_000
