"""A model with two inputs and two outputs."""

import tapewright as tw
from tapewright import Input, Model
from tapewright.layers import Dense


def two_inputs():
    """A model with two inputs, two outputs and an op between layers."""
    a, b = Input((3,), name="a"), Input((2,), name="b")
    hidden = Dense(4, activation="tanh", name="hidden")(a)
    joined = tw.concat([hidden, b], 1)
    first = Dense(1, name="first")(joined)
    second = Dense(2, name="second")(joined * 2.0)
    return Model([a, b], [first, second], name="two")
