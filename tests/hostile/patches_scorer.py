# Promise: a scorer patched in the candidate's process scores nothing.
# Expect: ok
# Walls: none
import gc

gc.unfreeze()
scorers = [item for item in gc.get_objects() if isinstance(item, type) and "score" in vars(item)]
for scorer in scorers:
    scorer.score = lambda self, decisions: (0.0,)


def attack(honest, *arguments):
    if not scorers:
        raise LookupError("no scorer in sight")
    return honest(*arguments)
