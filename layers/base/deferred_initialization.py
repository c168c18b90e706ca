"""Weights that a file is about to fill: made without values, and no more than it holds.

While a model is made from the config in a file, initializers would compute what is thrown
away; and a config that asks for weights of 4 TB would get them.
"""

import math
from contextlib import contextmanager
from contextvars import ContextVar

from tapewright.core import devices
from tapewright.core.errors import SavingError

__all__ = ["blank_weights", "room"]

_ROOM = ContextVar("room", default=None)
room = _ROOM.get  # the `Room` of this context, or None

# Numbers that a layer may have which its file does not hold: counters, seeds, states.
SLACK = 1 << 16


@contextmanager
def blank_weights(path, numbers, place=None):
    """Inside, weights are made without values; gives the `Room` that they take.

    ``numbers``: how many the file at ``path`` holds for them; ``place``: where their
    config stands in it, for errors.
    """
    own = Room(path, numbers, place)
    token = _ROOM.set(own)
    try:
        yield own
    finally:
        _ROOM.reset(token)


class Room:
    """The count of numbers that a file holds, and the weights made to take them."""

    def __init__(self, path, numbers, place=None):
        self.path, self.numbers, self.place = path, numbers, place
        self.left = numbers + SLACK
        self._blank = []

    def give(self, variable, shape, owner, make):
        """Gives a variable a blank value, and remembers what would have made its value.

        Raises: `SavingError` if the weights made so far are more than the file holds.
        """
        self.left -= math.prod(shape)
        if self.left < 0:
            raise SavingError(
                self.path,
                f"the weight '{variable.name}' of {owner} would have shape {shape}, but "
                f"the file holds {self.numbers} numbers for all weights together",
                self.place,
            )
        own = variable._array
        blank = devices.array_module(type(own)).zeros(shape, own.dtype)
        variable._bind(blank)
        self._blank.append((variable, blank, make))

    def settle(self):
        """Weights that nothing was assigned to get the value that they would have had."""
        for variable, blank, make in self._blank:
            if variable._array is blank:
                variable.assign(make())
        self._blank.clear()
