"""`EmptyKernel`: instructions whose results have no entries need no steps."""

from ..kernel import CudaKernel


class EmptyKernel(CudaKernel):
    """Does nothing, in place of an instruction with only empty results."""

    __slots__ = ()

    def __init__(self, replaced, limits):
        super().__init__(replaced, limits)
        self.operands = ()

    @classmethod
    def accepts(cls, instruction):
        """Return whether there is nothing to compute."""
        is_empty = not any([out.size for out in instruction.outputs])
        computes = instruction.is_pure and not instruction.is_free
        return bool(instruction.outputs) and is_empty and computes

    def steps_on(self, addresses):
        return []
