# Promise: a candidate whose module body never ends is ended at its deadline.
# Expect: timeout
# Walls: none
while True:
    pass
