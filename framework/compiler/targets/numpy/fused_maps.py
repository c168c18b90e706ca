"""The function of a `FusedMap`: NumPy calls on a block of rows at a time."""

import threading

import numpy as np

from tapewright.core.hardware.parallel import parallel_for
from tapewright.core.op_definition.emitter import Source

from ...program.instructions.array_instructions import Reduce


class BlockFunction:
    """Calls ``block(i, *operands, *outputs)`` for the rows from ``i`` on, in some threads.

    ``source`` shows it. Each thread allocates separate scratch memory at its first
    block.
    """

    def __init__(self, instruction):
        self.instruction, self.__name__ = instruction, instruction.name
        self.source = _written(instruction)
        self._code = compile(self.source.text, self.source.filename, "exec")
        self._own = threading.local()
        self._starts = range(0, instruction.outputs[0].shape[0], instruction.rows)
        # not of the outputs: maxima of rows are few, but made of many
        self._entries = max(
            [a.size for each in instruction.steps for a in each.operands]
        )

    def __call__(self, *arrays):
        def work(i):
            block = getattr(self._own, "block", None)
            if block is None:
                block = self._own.block = self._new_block()
            block(i, *arrays)

        parallel_for(work, self._starts, self._entries)

    def _new_block(self):
        """Return the function with separate scratch memory."""
        scope = {
            name: np.empty(*value.spec) if type(value) is _Scratch else value
            for name, value in self.source.bound.items()
        }
        exec(self._code, scope)
        return scope["block"]


class _Scratch:
    """A placeholder for scratch memory of this shape and dtype."""

    def __init__(self, spec):
        self.spec = spec


def _written(instruction):
    source = Source("<executable of a block of rows>")
    height = instruction.outputs[0].shape[0]
    uneven = height % instruction.rows  # the last rows may be fewer
    whole = [*instruction.operands, *instruction.outputs]
    parameters = [f"a{i}" for i in range(len(whole))]
    cut = [instruction.is_cut(buffer) for buffer in whole]
    with source.function("block", ["i", *parameters]):
        names = {
            buffer: f"{name}_" if is_cut else name
            for buffer, name, is_cut in zip(whole, parameters, cut, strict=True)
        }
        scratch = [
            source.bind("t", _Scratch(spec)) for spec in instruction.scratch_specs
        ]
        rows = f"range(0, {height}, {instruction.rows})"
        source.emit(f"# for i in {rows}, shared out among threads")
        source.emit(f"j = i + {instruction.rows}")
        for name, is_cut in zip(parameters, cut, strict=True):
            if is_cut:
                source.emit(f"{name}_ = {name}[i:j]")
        if uneven:
            for name in scratch:
                source.emit(f"{name}_ = {name}[: {height} - i]")
            scratch = [f"{name}_" for name in scratch]
        for step in instruction.steps:
            (out,) = step.outputs
            args = [names[a] for a in step.operands]
            if out not in names:
                names[out] = scratch[instruction.scratch_of[out]]
            function = source.bind(f"{step.name}_", step.function)
            more = keyword_text(source, step) if isinstance(step, Reduce) else ""
            source.emit(f"{function}({', '.join(args)}{more}, out={names[out]})")
    return source


def keyword_text(source, instruction):
    """Return the keywords of a call as Python source, with a comma in front."""
    texts = []
    for name, value in instruction.keywords.items():
        text = repr(value) if name != "dtype" else source.bind("k", value)
        texts.append(f", {name}={text}")
    return "".join(texts)
