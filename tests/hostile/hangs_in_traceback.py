# Promise: an error whose traceback is a ring is ended at the deadline.
# Expect: timeout raised
# Walls: none
class RingError(Exception):
    __traceback__ = tb_next = tb_frame = f_code = property(lambda self: self)
    co_filename = tb_lineno = 0


def attack(honest, *arguments):
    raise RingError
