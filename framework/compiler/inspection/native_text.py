"""The text of a machine-code executable: loop nests, products, and NumPy calls.

The computation of each machine-code function follows its name. Arrays are named after
arguments, the ends of variable paths, and the ops that compute them.
"""

import math

from tapewright.core.settings import config

from ..loops.loop_nest import LoopNest
from ..loops.pretty import nest_text
from ..program.instructions.array_instructions import Contract
from ..targets.native.kernels.kernel import is_shared
from ..targets.native.kernels.slice_loop import SliceLoop
from ..targets.native.loop_support import reason_for_numpy
from ..targets.native.products import blas
from ..targets.native.products.product_calls import is_product, product_of
from ..targets.native.segments import code_of
from .pretty import counted, heading
from .program_text import call_text, calls_text, indented, note


def native_text(executable, graph):
    """Print a replay: a heading, and its computation, call by call.

    Above each nest and product: the ops, the arrays that it returns, bytes read and
    written, operations, and the user's lines. After a NumPy call: why it is not machine
    code.
    """
    lines = [*heading(executable, graph), _share(executable)]
    calls = calls_text(executable, _segment, lambda _: reason_for_numpy, SliceLoop)
    return "\n\n".join(["\n".join(lines), calls])


def _share(executable):
    """Return the share of a replay that is machine code, as text."""
    segments = executable.segments
    count = sum([len(segment.instructions) for segment in segments])
    working = [each for each in executable.program.instructions if not each.is_free]
    functions = counted(len(segments), "function")
    threads = counted(config.threads(), "thread")
    return (
        f"  machine code for {count} of {counted(len(working), 'instruction')}, in "
        f"{functions}, on up to {threads}"
    )


def _segment(segment, names):
    count = counted(len(segment.instructions), "instruction")
    parts = [f"{segment.name}: machine code for {count}"]
    parts += [
        indented(_code(each, names, segment.limits)) for each in segment.instructions
    ]
    return "\n\n".join([f"{parts[0]}\n{parts[1]}", *parts[2:]])


def _code(instruction, names, limits, way=None):
    """Format an instruction as loops, products or calls, below a note.

    ``way`` is how its blocks run, if known from the enclosing instruction.
    """
    more = ""
    if type(instruction) is LoopNest:
        way = way or _way(instruction, limits)
        text = nest_text(instruction, names.of, way, names.taken)
    elif type(instruction) is SliceLoop:
        each = [_code(step, names, limits, "one a slice") for step in instruction.steps]
        head = f"for each of {instruction.count} slices:"
        text = "\n".join([head, *map(indented, each)])
    elif is_product(instruction):
        more, text = _blocks(instruction, way), _equation(instruction, names)
    elif _is_thin_product(instruction):
        text = _equation(instruction, names)
    else:
        text = call_text(instruction, names)
    return f"# {note(instruction, more)}\n{text}"


def _is_thin_product(instruction):
    """Return whether a kernel is a product of whole arrays in their current layout."""
    replaced = getattr(instruction, "replaced", None)
    if type(replaced) is not Contract or not is_product(replaced):
        return False
    return not any([a.is_view for a in replaced.operands])


def _way(nest, limits):
    shared = is_shared(limits, nest.blocks.extent, code_of(nest).work)
    return "in parallel" if shared else "one after the other"


def _equation(product, names):
    (out,) = product.outputs
    a, b = product.reads
    return f"{names.of(out)} = {names.of(a)} @ {names.of(b)}"


def _blocks(product, way):
    """The matrices of a product as BLAS sees them, and how it is shared among threads."""
    (out,), sizes = product.outputs, product_of(product)
    shapes = f"[{sizes.m},{sizes.k}] @ [{sizes.k},{sizes.n}]"
    count = math.prod(sizes.batch)
    if count > 1:
        return f"{count} x {shapes}, {way or 'in parallel'}"
    rows, columns = blas.blocks(sizes.m, sizes.n, sizes.k, out.dtype)
    cut = f", {rows} x {columns} blocks in parallel" if rows * columns > 1 else ""
    return f"{shapes}{cut}"
