"""Python inside of traced functions: `py_function`, `numpy_function`.

`PythonCall` is the node of a function of tensors that each replay calls. The function sees
tensors with values, and a tape of its own follows what it does: by this tape, which goes
through the graph as a *token*, gradients come from the very call of the forward pass. The
tape records its gradients as well: so do those of higher order.
"""

from typing import NamedTuple

import numpy as np

from tapewright.autodiff.gradient_tape import GradientTape
from tapewright.core import devices
from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.interpreters import (
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.source_lines import user_line
from tapewright.core.symbolic_dim import NeedsSize, is_size
from tapewright.core.tensor import TensorSpec, convert_to_tensor, new_tensor
from tapewright.core.tensor_shape import TensorShape

from ..tracing.handles import handle_of
from ..tracing.tracer import fall_back
from .effects import host_effect, refuse_mapped
from .records import emit
from .region_node import RegionNode
from .regions import spec_of

__all__ = ["PythonCall", "numpy_function", "py_function"]

TOKEN = (), np.dtype(object)  # the spec of a token


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


def called(title, function, inputs, specs):
    """``function(*inputs)`` as a list of tensors of these specs, now or in each replay."""
    inputs = [convert_to_tensor(x) for x in inputs]
    refuse_mapped(title, inputs)
    if active_tracer() is None:
        return fitting(title, function(*inputs), specs)
    return list(emit(PythonCall(title, function, len(inputs), specs), inputs))


def fitting(title, results, specs):
    """What a function returned, as tensors; raises where it is not what was announced."""
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    if not specs:
        return []
    if len(results) != len(specs):
        raise InvalidArgumentError(
            f"{title}: the function must return {len(specs)} values, as Tout says, got "
            f"{len(results)}"
        )
    found = []
    for i, (x, (shape, dtype)) in enumerate(zip(results, specs)):
        x = convert_to_tensor(x, dtype=dtype)
        if not TensorShape(shape).is_compatible_with(x.shape):
            raise InvalidArgumentError(
                f"{title}: the function returned shape {tuple(x.shape)} as value {i}, but "
                f"Tout says {shape}"
            )
        found.append(x)
    return found


class Token(NamedTuple):
    """What a call leaves for its gradient."""

    tape: object
    recording: object  # of the tape, as an interpreter
    inputs: list
    outputs: list


class PythonCall(RegionNode):
    """Calls ``function`` with ``taken`` tensors, and gives tensors of these specs.

    ``keeps``: how many times it gives its token, too. ``by_token(token, *inputs)``, if
    there is one, takes the place of the function: the last input then is the token of an
    earlier call; ``repeats`` says that it was a call of this very function.
    """

    OPERANDS, RESULTS = ("argument", "token"), ("returned", "kept")
    SETTINGS = "title", "function", "taken", "specs", "keeps", "by_token", "repeats"
    __slots__ = SETTINGS[1:]

    def __init__(
        self, title, function, taken, specs, keeps=0, by_token=None, repeats=False,
        regions=(), line=None,
    ):  # fmt: skip
        super().__init__(regions, [*specs, *[TOKEN] * keeps], title, line=line)
        self.function, self.taken, self.specs = function, taken, specs
        self.keeps, self.by_token, self.repeats = keeps, by_token, repeats

    @property
    def is_effect(self):
        return self.by_token is None

    runs_python = is_effect

    def counts(self):
        sizes = {"argument": self.taken, "token": int(self.by_token is not None)}
        return sizes | {"returned": len(self.specs), "kept": self.keeps}

    def narrowed(self, used):
        return None

    def kernel(self):
        if self.by_token is not None:
            return self._later
        return self._followed if self.keeps else self._called

    def _called(self, *arrays):
        with use_interpreters(()):
            results = self.function(*[_own(a) for a in arrays])
            return copies(fitting(self.title, results, self.specs))

    def _followed(self, *arrays):
        with use_interpreters(()):
            outputs, token = self._taped([_own(a) for a in arrays])
        return [*copies(outputs), *[handle_of(token)] * self.keeps]

    def _taped(self, inputs):
        """The outputs, and the token of the call."""
        with GradientTape(persistent=True) as tape:
            tape.watch(_floating(inputs))
            outputs = fitting(self.title, self.function(*inputs), self.specs)
            return outputs, Token(tape, active_interpreters()[-1], inputs, outputs)

    def _later(self, *arrays):
        *arrays, box = arrays
        inputs = [_own(a) if a.dtype != object else new_tensor(a) for a in arrays]
        with use_interpreters(()):
            outputs, token = self._told(box.item(), inputs)
        return [*copies(outputs), *[handle_of(token)] * self.keeps]

    def _told(self, token, inputs):
        """The outputs by the token of an earlier call, and a token that knows of them."""
        if not self.keeps:
            return fitting(self.title, self.by_token(token, *inputs), self.specs), None
        inputs = [*token.inputs, *inputs[len(token.inputs) :]]
        with use_interpreters((*active_interpreters(), token.recording)):
            token.tape.watch(_floating(inputs[len(token.inputs) :]))
            outputs = fitting(self.title, self.by_token(token, *inputs), self.specs)
        return outputs, Token(token.tape, token.recording, inputs, outputs)

    def is_traced(self, operands):
        return active_tracer() is not None

    def run(self, operands):
        if self.by_token is not None:  # the token has tensors that tapes follow
            outputs, token = self._told(operands[-1].array.item(), operands[:-1])
        elif self.keeps:
            outputs, token = self._taped(operands)
        else:
            return called(self.title, self.function, operands, self.specs)
        return [*outputs, *[new_tensor(handle_of(token))] * self.keeps]

    # --- gradient

    def split(self):
        repeated = self.again(by_token=lambda t, *_: t.outputs, repeats=True)
        return self.again(keeps=self.keeps + 1), [TOKEN], repeated

    def joined(self, operands, tokens):
        return [*operands, *tokens]

    def recorded(self):
        if self.repeats:
            return self.again(), self._gradient_by_input
        twin = self.again(keeps=max(self.keeps, 1))
        return twin, twin._gradient_by_output

    def _gradient_by_output(self, inputs, outputs, cotangents, wanted):
        return self._back(inputs, outputs[-1], cotangents, wanted)

    def _gradient_by_input(self, inputs, outputs, cotangents, wanted):
        return self._back(inputs[:-1], inputs[-1], cotangents, wanted)

    def _back(self, inputs, token, cotangents, wanted):
        """The gradients of the inputs ``wanted``, from the tape of the token."""
        cotangents = cotangents[: len(self.specs)]
        kept = [i for i, c in enumerate(cotangents) if c is not None]
        given, size = [cotangents[i] for i in kept], len(inputs)

        def by_token(token, *arguments):
            return token.tape.gradient(
                [token.outputs[i] for i in kept],
                [token.inputs[i] for i in wanted],
                output_gradients=list(arguments[size:]),
                unconnected_gradients="zero",
            )

        tensors, title = [*inputs, *given], f"{self.title}_gradient"
        specs = [spec_of(inputs[i]) for i in wanted]
        node = PythonCall(title, None, len(tensors), specs, by_token=by_token)
        return emit(node, [*tensors, token])


def copies(tensors):
    """Arrays that a plan may bind to variables: Python may have kept the tensors."""
    return [_own(x.array).array for x in tensors]


def _floating(tensors):
    return [x for x in tensors if x.array.dtype.kind in "fc"]


def _own(array):
    """A tensor of a copy: the memory of a plan serves for something else later on."""
    return new_tensor(devices.copy_to(devices.array_module(type(array)), array))
