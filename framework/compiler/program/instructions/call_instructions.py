"""Instructions that call a whole kernel, access variables, or have side effects."""

from .instruction import Instruction, Memory

# ----------------------------------------------------------------------- whole kernels


class Opaque(Instruction):
    """A whole kernel: ``function(*operands, **keywords)``, for one output or a tuple.

    ``new_memory``: no output ever shares memory with an operand. ``donates``: the number
    of the operand that it overwrites and returns, or None.
    """

    __slots__ = ("function", "keywords", "new_memory", "donates")
    memory, is_pure, is_free, has_effect = Memory.ALLOCATED, False, False, False

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
    def keeps_c_order(self):
        return self.node.op is not None and self.node.op.keeps_c_order

    @property
    def is_tuple(self):
        """Return whether the function returns its outputs in a tuple."""
        return self.node.op is None or self.node.op.multiple


class Gather(Opaque):
    """``take(source, indices, axis)``; raises if an index is out of range."""

    __slots__ = ()
    may_alias = False

    source = property(lambda self: self.operands[0])
    indices = property(lambda self: self.operands[1])
    axis = property(lambda self: self.keywords["axis"])


class Scatter(Opaque):
    """Scatter rows into zeros along ``axis`` at ``indices``; duplicate indices add up."""

    __slots__ = ()
    may_alias = False

    rows = property(lambda self: self.operands[0])
    indices = property(lambda self: self.operands[1])
    axis = property(lambda self: self.keywords["axis"])


class Draw(Opaque):
    """Random numbers of Philox4x64-10: a function of ``state``, two integers.

    With ``purpose`` 0, the state is the key and the counter of a generator; else it is
    the key of a stateless draw, whose counter begins with ``purpose``. ``distribution``
    names the distribution, ``parameters`` are its attributes, further operands its
    inputs.
    """

    __slots__ = ()
    may_alias = False

    state = property(lambda self: self.operands[0])
    purpose = property(lambda self: self.keywords["purpose"])

    @property
    def distribution(self):
        return self.node.op.name.removeprefix("random_")

    @property
    def parameters(self):
        return {k: v for k, v in self.keywords.items() if k != "purpose"}


class Check(Instruction):
    """A check of values: ``function(operand, **keywords)`` raises if they are invalid."""

    __slots__ = ("function", "keywords")
    memory, is_pure, is_free = Memory.NONE, False, False
    has_effect = may_alias = False

    def __init__(self, function, operands, node, keywords):
        super().__init__(operands, node)
        self.function, self.keywords = function, keywords

    @property
    def name(self):
        return self.function.__name__


# ------------------------------------------------------------ variables, other effects


class _OnVariables:
    """Accesses the variables that the node declares."""

    __slots__ = ()

    @property
    def variables_read(self):
        return self.node.reads

    @property
    def variables_written(self):
        return self.node.writes


class LoadVariable(_OnVariables, Instruction):
    """The array of a variable at this point in the program."""

    __slots__ = ()
    memory, is_pure, is_free = Memory.VARIABLE, False, True
    has_effect = may_alias = False
    is_droppable = True

    @property
    def variable(self):
        return self.node.variable


class StoreVariable(_OnVariables, Instruction):
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
    """An optimizer step: updates variables in place; the operands are gradients.

    ``update`` is the `VariableUpdate`: its variables and its arithmetic.
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
    """A call of Python with side effects, whose outputs are new arrays."""

    __slots__ = ("function",)
    memory, is_pure, is_free = Memory.ALLOCATED, False, False
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


class RegionCall(_OnVariables, Instruction):
    """A branch or loop; ``programs`` has one program for each region of the node.

    The node (`CondNode`, `LoopNode`) decides which of them runs when, and on which operands;
    ``settings`` are the differences between its programs and the regions. A target
    compiles the programs, and may leave the rest to ``node.kernel(executables,
    **settings)``. With effects inside, the outputs are new arrays.
    """

    __slots__ = ("programs", "settings")
    memory, is_pure, is_free = Memory.ALLOCATED, False, False

    def __init__(self, operands, node):
        super().__init__(operands, node)
        self.programs, self.settings = node.lowered()

    @property
    def has_effect(self):
        return self.node.is_effect

    @property
    def may_alias(self):
        return not self.has_effect

    @property
    def variables_read(self):
        return self.node.reads if self.has_effect else ()

    @property
    def variables_written(self):
        return self.node.writes if self.has_effect else ()

    @property
    def variables_overwritten(self):
        return self.variables_written
