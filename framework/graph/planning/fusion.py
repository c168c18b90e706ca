"""Calls of a program joined: what makes a plan faster than its ops one by one.

Each step is a function that changes a `Program` in place. `sum_of_squares`,
`scaled_sums` and `accumulated_products` round elsewhere than the ops do, by an ulp or so;
the others keep every bit of the result.
"""

import numpy as np

from ... import blas, config
from .blocks import row_blocks
from .lowering import Array
from .verifier import verify_program

__all__ = ["STEPS", "fuse"]


def fuse(program, off=(), verify=False):
    """Run all steps but those switched off, in `config` or in ``off``.

    With ``verify`` the program is verified after each of them.
    """
    for step in STEPS:
        if step.__name__ not in off and config.graph_pass_is_on(step.__name__):
            step(program)
            if verify:
                verify_program(program, step.__name__)
    return program


# ------------------------------------------------------------------- looking around


def _uses(program):
    """How many calls and outputs read each array, itself or through a view."""
    count = {}
    for call in program.calls:
        for array in call.arrays():
            count[array] = count.get(array, 0) + 1
    for array in program.outputs:
        count[array] = count.get(array, 0) + 1
    return count


def _number(array):
    """The value of a constant of rank 0, or None."""
    if type(array) is Array and array.origin == "constant" and array.shape == ():
        return array.payload
    return None


def _identity(function):
    """What tells functions apart: ``np.add.reduce`` is a new object at each look."""
    owner = getattr(function, "__self__", None)
    return (
        (id(owner), function.__name__) if isinstance(owner, np.ufunc) else id(function)
    )


def _replace(program, swap, gone=()):
    """Arrays take the place of others (``swap``), and calls disappear."""
    if swap:
        for call in program.calls:
            if any([type(a) is Array and a in swap for a in call.args]):
                call.args = tuple(
                    [swap.get(a, a) if type(a) is Array else a for a in call.args]
                )
        program.outputs = [swap.get(a, a) for a in program.outputs]
    if gone:
        gone = set(map(id, gone))
        program.calls = [call for call in program.calls if id(call) not in gone]


# --------------------------------------------------------------------------- steps


def merge_equal(program):
    """One call in place of several that compute the same of the same."""
    known, swap, gone = {}, {}, []
    for call in program.calls:
        if call.form not in ("ufunc", "out", "view"):
            continue
        args = tuple([swap.get(a, a) if type(a) is Array else a for a in call.args])
        name = [id(a) if type(a) is Array else (type(a), repr(a)) for a in args]
        key = (_identity(call.function), *name, repr(sorted(call.kwargs.items())))
        first = known.get(key)
        if first is None:
            known[key] = call
            continue
        gone.append(call)
        for own, other in zip(call.outputs, first.outputs):
            swap[own] = other
    if gone:
        roots = {a: b.root for a, b in swap.items()}
        for call in program.calls:
            for out in call.outputs:
                out.root = roots.get(out.root, out.root)
        _replace(program, swap, gone)


def drop_unused(program):
    """Calls whose results nobody reads go."""
    needed, kept = {id(a) for a in program.outputs}, []
    for call in reversed(program.calls):
        is_pure = call.form in ("ufunc", "out", "view", "read")
        if is_pure and not any([id(out) in needed for out in call.outputs]):
            continue
        needed.update([id(a) for a in call.arrays()])
        kept.append(call)
    program.calls = kept[::-1]


def uniform_constants(program):
    """A constant that holds one number throughout, as that number, where it broadcasts."""
    for call in program.calls:
        if call.form != "ufunc":
            continue
        shape, args = call.outputs[0].shape, list(call.args)
        for i, a in enumerate(args):
            others = [b.shape for j, b in enumerate(args) if j != i]
            is_uniform = (
                a.origin == "constant" and a.shape and not any(a.payload.strides)
            )
            if is_uniform and a.size and np.broadcast_shapes((), *others) == shape:
                args[i] = program.constant(a.payload[(0,) * a.payload.ndim].reshape(()))
        call.args = tuple(args)


def sum_of_squares(program):
    """The sum of all squares of an array as a product of BLAS."""
    uses = _uses(program)
    for call in program.calls:
        if call.form != "out" or call.function != np.add.reduce:
            continue
        (squares,), made = call.args, call.outputs[0]
        if made.shape != () or squares.call is None or uses.get(squares) != 1:
            continue
        inner = squares.call
        x = inner.args[0] if inner.args else None
        is_square = inner.function is np.square or (
            inner.function is np.multiply and inner.args[1] is x
        )
        if is_square and x.dtype.char in "fd" and x.shape == squares.shape:
            call.function, call.args, call.kwargs = square_sum, (x,), {}


def square_sum(x, out=None):
    """The sum of the squares of all entries."""
    total = blas.sum_of_squares(np, x)
    if out is None:
        return total
    out[...] = total
    return out


def scaled_sums(program):
    """``y + c * x`` or ``y - c * x`` in one pass of BLAS over ``y``, where ``y`` ends here.

    BLAS rounds once where NumPy rounds the product, too. Factors from above 1 could make
    the product overflow, which it then does not, and 0 would hide NaN and infinity of x.
    """
    uses = _uses(program)
    for call in program.calls:
        if call.form != "ufunc" or not _worth_it(call):
            continue
        left, right = call.args[:2] if len(call.args) == 2 else (None, None)
        roles = {
            np.add: [(right, left, 1.0), (left, right, 1.0)],
            np.subtract: [(right, left, -1.0)],  # c * x - y would have to negate y
        }
        for scaled, y, sign in roles.get(call.function, ()):
            factor, x = _factor_of(scaled)
            if factor is None or not 0 < abs(factor) <= 1:
                continue
            free = uses.get(scaled) == 1 and _is_free(y, uses, call)
            if free and x.shape == y.shape and x is not y:
                _write_into(program, call, add_scaled, (x, y), alpha=sign * factor)
                uses[scaled] = 0
                break


def accumulated_products(program):
    """``a @ b + y`` as a product that adds to ``y``, where nobody else needs ``y``."""
    uses, gone = _uses(program), []
    for call in program.calls:
        if call.form != "ufunc" or call.function is not np.add or not _worth_it(call):
            continue
        for product, y in (call.args[::-1], call.args):
            inner = product.call
            is_product = inner is not None and inner.function is np.dot
            if not is_product or uses.get(product) != 1 or len(product.shape) != 2:
                continue
            if product.shape != y.shape:  # it is broadcast
                continue
            if _is_free(y, uses, call) and product is not y:
                gone.append(inner)
                _write_into(program, call, accumulate, (*inner.args, y))
                break
    _replace(program, {}, gone)


def _worth_it(call):
    """Whether a pass less pays for a call that takes longer to make."""
    out = call.outputs[0]
    return out.nbytes >= 1 << 14 and out.dtype.char in "fd"


def _factor_of(array):
    """``(number, x)`` of an array that is their product, or ``(None, None)``."""
    call = array.call
    if call is not None and call.form == "ufunc" and call.function is np.multiply:
        for i in (0, 1):
            number = _number(call.args[i])
            if number is not None:
                return float(number), call.args[1 - i]
    return None, None


def _is_free(y, uses, call):
    """Whether a call may write into ``y``: memory of its own, read by nobody else."""
    made = y.call is not None and y.call.form in ("ufunc", "out", "inout")
    own = y.root is y or (made and y.call.form == "inout")
    return made and own and uses.get(y) == 1 and y.shape == call.outputs[0].shape


def _write_into(program, call, function, args, **kwargs):
    """The call becomes one that changes its last argument."""
    out, root = call.outputs[0], args[-1].root
    call.form, call.function, call.args, call.kwargs = "inout", function, args, kwargs
    for other in program.calls:
        for array in other.outputs:
            if array.root is out:
                array.root = root


def add_scaled(x, y, alpha):
    """``y += alpha * x``."""
    return blas.axpy(alpha, x, y)


def accumulate(a, b, y):
    """``y += a @ b``."""
    return blas.gemm(a, b, y, beta=1.0)


# What does the same to these very arrays, replay after replay.
add_scaled.prepare = lambda x, y, alpha: blas.axpy_call(alpha, x, y)
accumulate.prepare = lambda a, b, y: blas.gemm_call(a, b, y, beta=1.0)


STEPS = [
    merge_equal,
    uniform_constants,
    sum_of_squares,
    accumulated_products,
    scaled_sums,
    drop_unused,
    row_blocks,
]
for _step in STEPS:
    config.offer_graph_pass(_step.__name__)
