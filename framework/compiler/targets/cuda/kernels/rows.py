"""Rows along an axis, for kernels that process whole rows: their entries, and teams.

A long row is processed by a block of threads, others by one thread each. The results of
all threads are combined in the same order in each run.
"""

from ....program.instructions.kernel import around
from ..kernel import c_type
from .entries import each_entry

TEAM = 128  # threads of a row, at most


class Rows:
    """The rows of a buffer along an axis, and lines of code for them."""

    def __init__(self, buffer, axis):
        self.dtype = buffer.dtype
        _, self.size, self.tail = around(buffer.shape, axis)
        self.count = buffer.size // self.size
        self.is_large = buffer.size > 1 << 30

    @property
    def kind(self):
        """The C integer type of indices of entries."""
        return "long long" if self.is_large else "int"

    @property
    def have_teams(self):
        """Return whether rows are long, and few enough for a block each."""
        return self.size >= 64 and (self.tail == 1 or self.count <= 4096)

    @property
    def block(self):
        """The threads of a block."""
        return TEAM if self.have_teams else 256

    @property
    def threads(self):
        """The threads of all rows."""
        return self.count * (TEAM if self.have_teams else 1)

    @property
    def member(self):
        """The number of a thread in its team."""
        return "threadIdx.x" if self.have_teams else "0"

    @property
    def members(self):
        return "blockDim.x" if self.have_teams else "1"

    def each(self):
        """The head of a loop over rows, which declares ``row``."""
        if not self.have_teams:
            return each_entry(self.kind, "row", self.count)
        step = "row += gridDim.x"
        return f"for ({self.kind} row = blockIdx.x; row < {self.count}; {step})"

    def start(self):
        """The declaration of ``start``, the index of the first entry of ``row``."""
        above = f"row / {self.tail} * {self.size * self.tail} + row % {self.tail}"
        text = above if self.tail > 1 else f"row * {self.size}"
        return f"const {self.kind} start = {text};"

    def index(self, k):
        """The index of the ``k``-th entry of the row."""
        return (
            f"start + {k}"
            if self.tail == 1
            else f"start + ({self.kind}){k} * {self.tail}"
        )

    def entry(self, k, array="x"):
        """The value of the ``k``-th entry of the row, float16 converted to float."""
        text = f"{array}[{self.index(k)}]"
        return f"float_of_half({text})" if self.dtype.char == "e" else text

    def stored(self, value):
        """A number converted to the dtype of the entries."""
        if self.dtype.char == "e":
            return f"half_of_float({value})"
        return f"({c_type(self.dtype)})({value})"
