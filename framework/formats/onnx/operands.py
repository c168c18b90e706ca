"""`Operand`: a tensor of the ONNX graph that is being written."""

import numpy as np


class First(str):
    """The name of a tensor with channels first, as the result of a translation."""


class Plan:
    """A computation that is not written yet, so that a later op may change it.

    ``is_first``: it has channels first.
    """

    is_first = False

    def write(self, block):
        """Add the nodes; return the name of the tensor."""
        raise NotImplementedError(f"{type(self).__name__} must define write")

    def absorbing(self, name, *operands):
        """Return the plan that also applies an elementwise op, or None."""
        return None


class Untranslatable(Exception):
    """Raised by a translation for a case that ONNX cannot express; holds the reason."""


class Deferred(Plan):
    """A tensor whose nodes are written when, and if, it is used."""

    def __init__(self, write):
        self._write = write

    def write(self, block):
        return self._write(block)


class Operand:
    """A tensor of an ONNX graph, with its shape and NumPy dtype.

    Attributes:
        value: The array of a constant, or None.
        plan: How it is computed, if a later op may change that; see `windows`.
    """

    __slots__ = ("shape", "dtype", "value", "plan", "hint", "_block", "_name", "_first")

    def __init__(
        self,
        shape,
        dtype,
        block,
        name=None,
        value=None,
        first=None,
        plan=None,
        hint=None,
    ):
        self.shape, self.dtype, self.value = shape, dtype, value
        self.plan, self.hint, self._block = plan, hint, block
        self._name, self._first = name, first

    @property
    def rank(self):
        return len(self.shape)

    @property
    def is_first(self):
        """True if it exists with channels first, at no cost."""
        return self._first is not None or (self.plan is not None and self.plan.is_first)

    @property
    def is_written(self):
        """True if a node computes it already."""
        return self._name is not None or self._first is not None

    @property
    def name(self):
        """Its name in the graph; the first use writes the nodes that compute it."""
        if self._name is None:
            if self.value is not None:
                self._name = self._block.writer.initializer(self.value, self.hint)
            elif self.is_first:
                order = (0, *range(2, self.rank), 1)
                self._name = self._block.emit("Transpose", self.first, perm=order)
            else:
                self._name = self.plan.write(self._block)
        return self._name

    @property
    def first(self):
        """The name of the tensor with channels first."""
        if self._first is None:
            if self.plan is not None and self.plan.is_first:
                self._first = self.plan.write(self._block)
            else:
                order = channels_first(range(self.rank))
                self._first = self._block.emit("Transpose", self, perm=order)
        return self._first

    def transposed(self, block, order):
        """Return the name of the transposed tensor; a constant is transposed here."""
        if tuple(order) == tuple(range(self.rank)):
            return self.name
        if self.value is not None:
            known, key = block.writer.transposed, (id(self.value), tuple(order))
            if key not in known:
                value = np.ascontiguousarray(self.value.transpose(order))
                known[key] = block.writer.initializer(value, self.hint), self.value
            return known[key][0]
        return block.emit("Transpose", self, perm=tuple(order))


def channels_first(dims):
    """Move the last dimension to position 1."""
    batch, *spatial, channels = dims
    return (batch, channels, *spatial)
