# Promise: a coroutine is refused, not awaited.
# Expect: wrong_shape raised
# Walls: none
async def attack(honest, *arguments):
    return honest(*arguments)
