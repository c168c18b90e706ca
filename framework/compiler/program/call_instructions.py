"""Instructions that call a kernel as it is, touch variables, or reach the world outside."""

from .instruction import Instruction, Memory

__all__ = [
    "Draw",
    "EffectCall",
    "Gather",
    "Load",
    "Opaque",
    "Scatter",
    "Store",
    "Update",
]


# ------------------------------------------------------------------- kernels as they are


class Opaque(Instruction):
    """A kernel as it is: ``function(*operands, **keywords)``, for one output or a tuple.

    ``new_memory``: no output ever shares memory with an operand. ``donates``: the number
    of the operand that it changes in place and hands on, or None.
    """

    __slots__ = ("function", "keywords", "new_memory", "donates")
    memory, is_pure, is_free, has_effect = Memory.OWN, False, False, False

    def __init__(
        self, function, operands, node, keywords=None, new_memory=False, donates=None
    ):
        super().__init__(operands, node)
        self.function, self.keywords = function, keywords or {}
        self.new_memory, self.donates = new_memory, donates

    @property
    def name(self):
        return getattr(self.function, "__name__", None) or self.node.name

    @property
    def donated(self):
        return None if self.donates is None else self.operands[self.donates]

    @property
    def may_alias(self):
        return not self.new_memory

    @property
    def is_tuple(self):
        """Return whether the function returns its outputs in a tuple."""
        return self.node.op is None or self.node.op.multiple


class Gather(Opaque):
    """``take(source, indices, axis)``; raises for an index that is out of range."""

    __slots__ = ()

    source = property(lambda self: self.operands[0])
    indices = property(lambda self: self.operands[1])
    axis = property(lambda self: self.keywords["axis"])


class Scatter(Opaque):
    """Rows put into an array of zeros along ``axis``, at ``indices``; equal ones add up."""

    __slots__ = ()

    rows = property(lambda self: self.operands[0])
    indices = property(lambda self: self.operands[1])
    axis = property(lambda self: self.keywords["axis"])


class Draw(Opaque):
    """Random numbers of Philox4x64-10: a function of ``state``, two integers.

    ``purpose`` 0: the state is the key and the counter of a generator; else it is the key
    of a stateless draw, whose counter begins with ``purpose``. ``distribution`` names the
    kind of numbers, ``parameters`` are its attributes, further operands its inputs.
    """

    __slots__ = ("distribution",)

    def __init__(self, distribution, function, operands, node, keywords):
        super().__init__(function, operands, node, keywords, new_memory=True)
        self.distribution = distribution

    state = property(lambda self: self.operands[0])
    purpose = property(lambda self: self.keywords["purpose"])

    @property
    def parameters(self):
        return {k: v for k, v in self.keywords.items() if k != "purpose"}


# ------------------------------------------------------------- variables and the outside


class _OnVariables:
    """The variables are those that the node declares."""

    __slots__ = ()

    @property
    def variables_read(self):
        return self.node.reads

    @property
    def variables_written(self):
        return self.node.writes


class Load(_OnVariables, Instruction):
    """The array of a variable, as it is now."""

    __slots__ = ()
    memory, is_pure, is_free = Memory.VARIABLE, False, True
    has_effect = may_alias = False
    is_droppable = True

    @property
    def variable(self):
        return self.node.variable


class Store(_OnVariables, Instruction):
    """The operand becomes the array of a variable."""

    __slots__ = ()
    memory, is_pure, is_free = Memory.NONE, False, True
    has_effect, may_alias = True, False

    @property
    def variable(self):
        return self.node.variable

    @property
    def kept(self):
        return self.operands


class Update(_OnVariables, Instruction):
    """A step of an optimizer: changes variables in place by gradients, the operands.

    ``update`` is the `VariableUpdate`, which says what it reads and writes.
    """

    __slots__ = ("update",)
    memory, is_pure, is_free = Memory.NONE, False, False
    has_effect, may_alias = True, False

    def __init__(self, update, operands, node):
        super().__init__(operands, node)
        self.update = update

    @property
    def function(self):
        return self.update

    @property
    def variables_overwritten(self):
        return self.node.writes

    @property
    def gradient_slots(self):
        """The gradients for which the update has memory, with their numbers."""
        memory = enumerate(self.update.gradient_memory)
        return [(self.operands[n], n) for n, array in memory if array is not None]


class EffectCall(_OnVariables, Instruction):
    """A call that the world outside notices: Python's, or a loop with effects in it.

    Its outputs are new arrays.
    """

    __slots__ = ("function",)
    memory, is_pure, is_free = Memory.OWN, False, False
    has_effect, may_alias = True, False

    def __init__(self, function, operands, node):
        super().__init__(operands, node)
        self.function = function

    @property
    def name(self):
        return getattr(self.function, "__name__", None) or self.node.name

    @property
    def variables_overwritten(self):
        return self.node.writes
