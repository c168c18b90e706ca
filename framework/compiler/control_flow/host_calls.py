"""Python inside of traced functions: `print`, `py_function`, `numpy_function`."""

import sys

import numpy as np

from tapewright.core import devices
from tapewright.core.dtypes import as_dtype
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.source_lines import user_line
from tapewright.core.symbolic_dim import NeedsSize, is_size
from tapewright.core.tensor import TensorSpec, convert_to_tensor, is_tensor, new_tensor

from ..tracing.tracer import fall_back
from .effects import Assert, host_effect, lasting_effect, made_by
from .python_call import called, copies, fitting
from .text import SLOT, as_text

__all__ = ["Assert", "numpy_function", "print", "py_function"]


def print(*inputs, output_stream=sys.stderr, sep=" ", end="\n", summarize=3, name=None):
    """Prints the values of tensors, nests of them and anything else, as one line.

    In a traced function it prints in each call, in order. ``summarize``: how many entries
    of each end of an axis are shown; -1 for all. ``output_stream``: ``sys.stdout``,
    ``sys.stderr``, a file-like object, a function of the text (``logging.info``), or
    ``"file://path"``, to which lines are appended.

    Raises: ``ValueError`` for another ``output_stream``.

    >>> print("x:", convert_to_tensor([1.0, 2.5]), [True], output_stream=sys.stdout)
    x: [1 2.5] [True]
    """
    tensors = [x for item in inputs for x in _leaves(item) if is_tensor(x)]
    parts = [_with_slots(item) for item in inputs]
    summarize = 3 if summarize is None else int(summarize)
    lasting_effect("print", tensors, parts=parts, output_stream=_named(output_stream),
                   sep=sep, end=end, summarize=summarize)  # fmt: skip


@made_by("print")
def _printed(parts, output_stream, sep, end, summarize):
    write = _writer(output_stream)

    def call(*arrays):
        arrays = iter(arrays)
        texts = [as_text(part, arrays, summarize) for part in parts]
        write(sep.join(texts) + end)

    return call


def _with_slots(item):
    """What is printed, with a `Slot` for each tensor."""
    if not is_nested(item):
        return SLOT if is_tensor(item) else item
    return map_structure(lambda x: SLOT if is_tensor(x) else x, item)


def _named(stream):
    """The name of a standard stream, whatever that is when a line is printed."""
    if stream is sys.stdout:
        return "stdout"
    return "stderr" if stream is sys.stderr or stream is _STDERR else stream


def _leaves(item):
    return flatten(item) if is_nested(item) else [item]


def _writer(stream):
    """The function that takes the text."""
    if isinstance(stream, str) and stream in ("stdout", "stderr"):
        return lambda text: getattr(sys, stream).write(text)
    if isinstance(stream, str) and stream.startswith("file://"):
        return lambda text: _append(stream.removeprefix("file://"), text)
    if hasattr(stream, "write"):
        return stream.write
    if callable(stream):
        return lambda text: stream(text.removesuffix("\n"))
    raise ValueError(
        "print: output_stream must be sys.stdout, sys.stderr, a file, a function of the "
        f"text, or 'file://path', got {stream!r}"
    )


_STDERR = sys.stderr  # the default, as it was at the time of the import


def _append(path, text):
    with open(path, "a") as file:
        file.write(text)


# --------------------------------------------------------------- functions of Python


def py_function(func=None, inp=None, Tout=None, name=None):
    """``func(*inp)``, Python code that sees tensors with values, in each call.

    Args: ``inp``: a list of tensors; ``Tout``: the dtype of the result or a `TensorSpec`,
    or a list of them, empty if ``func`` returns nothing. Gradients pass through the ops
    that ``func`` calls. Used as a decorator without ``func`` and ``inp``.

    ``func`` runs once in each call, also under tapes: gradients of any order are those of
    this run. A traced function is replayed only if shapes are
    known: where ``Tout`` is a dtype without a shape, its calls run eagerly, op by op.

    Raises: ``InvalidArgumentError`` (a ValueError) if ``func`` returns another number of
    values or another shape; ``TypeError`` for another dtype; ``TracingError`` if a trace
    is asked for (``get_concrete_function``) without shapes.

    >>> py_function(lambda x: float(x) ** 2, [convert_to_tensor(3.0)], "float32").numpy()
    np.float32(9.0)
    """
    if func is None:
        return lambda func: py_function_of(func, Tout)
    return _python("py_function", func, inp, Tout)


def py_function_of(func, Tout):
    """``func`` as a function that runs by `py_function`."""
    return lambda *inp: _python("py_function", func, list(inp), Tout)


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """``func(*inp)``, Python code that sees NumPy arrays, in each call. No gradient.

    Arguments as in `py_function`. ``stateful=False`` promises that the result depends on
    ``inp`` alone.

    >>> numpy_function(np.sort, [convert_to_tensor([3, 1, 2])], "int32").numpy()
    array([1, 2, 3], dtype=int32)
    """
    if func is None:
        return lambda func: lambda *inp: numpy_function(func, list(inp), Tout)
    _check("numpy_function", func, Tout)
    inputs = [convert_to_tensor(x) for x in inp or ()]

    def on_tensors(*tensors):
        arrays = [np.array(devices.to_numpy(x.array)) for x in tensors]
        return func(*arrays)

    specs, single = _specs("numpy_function", Tout)

    def call(*arrays):
        with use_interpreters(()):
            results = on_tensors(*[new_tensor(a) for a in arrays])
            return copies(fitting("numpy_function", results, specs))

    outputs = host_effect("numpy_function", call, inputs, specs)
    return outputs[0] if single else list(outputs)


def _python(title, func, inp, Tout):
    _check(title, func, Tout)
    inputs = [convert_to_tensor(x) for x in inp or ()]
    specs, single = _specs(title, Tout)
    outputs = called(title, func, inputs, specs)
    return outputs[0] if single else outputs


def _check(who, func, Tout):
    if not callable(func):
        raise TypeError(f"{who}: func must be callable, got {type(func).__name__}")
    if Tout is None:
        raise TypeError(f"{who}: Tout must be given: a dtype, or a list of dtypes")


def _specs(who, Tout):
    """Pairs of shape (None if any will do) and dtype, and whether one value is meant.

    In a trace a shape that is not fully known ends it: its calls run eagerly.
    """
    single = not isinstance(Tout, (list, tuple))
    specs = []
    for spec in [Tout] if single else Tout:
        if not isinstance(spec, TensorSpec):
            spec = TensorSpec(None, as_dtype(spec))
        if spec.shape.rank is not None and any([is_size(n) for n in spec.shape]):
            raise NeedsSize(
                f"{user_line(always=True)}: Tout of {who} has unknown sizes"
            )
        known = spec.shape.is_fully_defined()
        specs.append((tuple(spec.shape) if known else spec.shape, spec.dtype.dtype))
        if not known and active_tracer() is not None:
            fall_back(
                f"{who}: the shape of what the function returns is not known before it "
                "runs, so that it cannot be traced. Give Tout=TensorSpec(shape, dtype)"
            )
    return specs, single
