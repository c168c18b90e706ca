"""Python code inside traced functions: `py_function`, `numpy_function`, `timestamp`.

`PythonCall` is the node of a function of tensors that each replay calls. The function
sees tensors with values, recorded by a separate tape. This tape passes through the
graph as a *token*, so that gradients come from the very call of the forward pass. The
tape also records the gradient computation, so higher-order gradients work the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from tapewright.autodiff.gradient_tape import GradientTape
from tapewright.core import hooks
from tapewright.core.dtypes import as_dtype, kind_of
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware import devices
from tapewright.core.interpreters import (
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.messages.source_lines import user_line
from tapewright.core.shapes.symbolic_dim import NeedsSize, is_symbolic
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor, new_tensor
from tapewright.core.typing import TensorLike

from ..tracing.graph import spec_of
from ..tracing.handles import HANDLE, HANDLE_SPEC, handle_of, object_of
from ..tracing.tracer import fall_back
from .effects import host_effect, refuse_mapped
from .recording import emit
from .region_node import RegionNode


@overload
def py_function(
    func: None = None, inp: None = None, Tout: Any = None, name: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
@overload
def py_function(
    func: Callable[..., Any],
    inp: Sequence[TensorLike],
    Tout: Any,
    name: str | None = None,
) -> Any: ...
def py_function(func=None, inp=None, Tout=None, name=None):
    """Call a Python function, which sees tensors with values, in every call.

    Gradients flow through the ops that ``func`` calls. ``func`` runs once per call,
    also under tapes: gradients of any order are computed from this run. A traced
    function is replayed only if the result shapes are known: if ``Tout`` is a dtype
    without a shape, its calls run eagerly, op by op. Without ``func`` and ``inp``, this
    is a decorator.

    Args:
        func: Python function of as many tensors as ``inp`` has.
        inp: List of tensors, the arguments of ``func``.
        Tout: Dtype or `tw.TensorSpec` of the result, or a list of them; an empty list
            if ``func`` returns nothing.

    Returns:
        A tensor, or a list of tensors if ``Tout`` is a list.

    Raises:
        InvalidArgumentError: If ``func`` returns a different number of values or a
            different shape (a ValueError).
        TypeError: If ``func`` returns a different dtype.
        TracingError: If ``get_concrete_function`` must trace the call and the shapes
            are unknown.

    Example:
        >>> x = tw.constant(3.0)
        >>> tw.py_function(lambda x: float(x) ** 2, [x], "float32").numpy()
        np.float32(9.0)
    """
    if func is None:
        return lambda func: lambda *inp: py_function(func, list(inp), Tout)
    inputs, specs, single = _arguments("py_function", func, inp, Tout)
    node = PythonCall("py_function", func, len(inputs), specs)
    outputs = node.interpret(inputs, None)
    return outputs[0] if single else list(outputs)


@overload
def numpy_function(
    func: None = None,
    inp: None = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
@overload
def numpy_function(
    func: Callable[..., Any],
    inp: Sequence[TensorLike],
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
) -> Any: ...
def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """Call a Python function on NumPy arrays in every call; it has no gradient.

    Without ``func`` and ``inp``, this is a decorator.

    Args:
        func: Python function of as many NumPy arrays as ``inp`` has.
        inp: List of tensors, the arguments of ``func``.
        Tout: Dtype or `tw.TensorSpec` of the result, or a list of them; an empty list
            if ``func`` returns nothing. Without a shape, calls of a traced function run
            eagerly.
        stateful: False promises that the result depends on ``inp`` only.

    Returns:
        A tensor, or a list of tensors if ``Tout`` is a list.

    Example:
        >>> import numpy as np
        >>> tw.numpy_function(np.sort, [tw.convert_to_tensor([3, 1, 2])], "int32").numpy()
        array([1, 2, 3], dtype=int32)
    """
    if func is None:
        return lambda func: lambda *inp: numpy_function(func, list(inp), Tout)
    inputs, specs, single = _arguments("numpy_function", func, inp, Tout)
    for x in inputs:
        if x.key is not None:
            hooks.export.call(x, "numpy_function")

    def call(*arrays):
        with use_interpreters(()):
            results = func(*[np.array(devices.to_numpy(a)) for a in arrays])
            results = _checked_results("numpy_function", results, specs)
            return [_copied(x.array) for x in results]

    outputs = host_effect("numpy_function", call, inputs, specs)
    return outputs[0] if single else list(outputs)


def timestamp(name: str | None = None) -> Tensor:
    """Return the seconds since 1970 as a float64 scalar.

    In a traced function, each call returns the time of the call.

    Example:
        >>> start = tw.timestamp()
        >>> bool(tw.timestamp() >= start)
        True
    """
    dtype = np.dtype("float64")

    def call():
        return [devices.current_module().asarray(time.time(), dtype)]

    return host_effect("timestamp", call, (), [((), dtype)])[0]


def _arguments(who, func, inp, Tout):
    """Check arguments; return tensors, (shape, dtype) pairs, and the single-result flag.

    A shape of None accepts any shape. In a trace, a shape that is not fully known ends
    the trace, and calls run eagerly.
    """
    if not callable(func):
        raise TypeError(f"{who}: func must be callable, got {type(func).__name__}")
    if Tout is None:
        raise TypeError(f"{who}: Tout must be given: a dtype, or a list of dtypes")
    inputs = [convert_to_tensor(x) for x in inp or ()]
    single, specs = not isinstance(Tout, (list, tuple)), []
    for spec in [Tout] if single else Tout:
        if not isinstance(spec, TensorSpec):
            spec = TensorSpec(None, as_dtype(spec))
        if spec.shape.rank is not None and any([is_symbolic(n) for n in spec.shape]):
            raise NeedsSize(
                f"{user_line(always=True)}: Tout of {who} has unknown sizes"
            )
        known = spec.shape.is_fully_defined()
        specs.append((tuple(spec.shape) if known else spec.shape, spec.dtype.dtype))
        if not known and active_tracer() is not None:
            remedy = "Pass Tout=TensorSpec(shape, dtype)"
            if spec.shape.rank is not None:
                remedy = (
                    f"Tout has the shape {tuple(spec.shape)}: pass all sizes, such as "
                    "TensorSpec(x.shape, dtype) for the shape of a tensor x"
                )
            fall_back(
                f"{who}: the shape of the result is unknown before the function runs, "
                f"so it cannot be traced. {remedy}"
            )
    return inputs, specs, single


def _checked_results(who, results, specs):
    """Convert the results of a function to tensors; raise if they differ from the specs."""
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    if not specs:
        return []
    if len(results) != len(specs):
        raise InvalidArgumentError(
            f"{who}: the function must return {len(specs)} values, as in Tout; got "
            f"{len(results)}"
        )
    tensors = []
    for i, (x, (shape, dtype)) in enumerate(zip(results, specs)):
        x = convert_to_tensor(x, dtype=dtype)
        if not TensorShape(shape).is_compatible_with(x.shape):
            raise InvalidArgumentError(
                f"{who}: the function returned shape {tuple(x.shape)} for value {i}, "
                f"but Tout specifies {shape}"
            )
        tensors.append(x)
    return tensors


class Token(NamedTuple):
    """The tape of a call, kept for its gradient; the tape is also an interpreter."""

    tape: object
    interpreter: object
    inputs: list
    outputs: list


class PythonCall(RegionNode):
    """Call ``function`` with ``arity`` tensors and return tensors of these specs.

    ``keeps`` is the number of times that the node also returns its token. If there is a
    ``by_token(token, *inputs)``, it is called instead of the function, and the last
    operand is the token of an earlier call; ``repeats`` means that this was a call of
    the same function.
    """

    OPERANDS, RESULTS = ("argument", "token"), ("returned", "kept")
    SETTINGS = "title", "function", "arity", "specs", "keeps", "by_token", "repeats"
    __slots__ = SETTINGS[1:]

    def __init__(
        self, title, function, arity, specs, keeps=0, by_token=None, repeats=False,
        regions=(), line=None,
    ):  # fmt: skip
        super().__init__(regions, [*specs, *[HANDLE_SPEC] * keeps], title, line=line)
        self.function, self.arity, self.specs = function, arity, specs
        self.keeps, self.by_token, self.repeats = keeps, by_token, repeats

    @property
    def is_effect(self):
        return self.by_token is None

    is_host_call = is_effect

    def counts(self):
        sizes = {"argument": self.arity, "token": int(self.by_token is not None)}
        return sizes | {"returned": len(self.specs), "kept": self.keeps}

    def narrowed(self, used):
        return None

    def kernel(self):
        return self._on_arrays

    def _on_arrays(self, *arrays):
        """Run on copies: Python may keep tensors, and a replay reuses its memory."""
        with use_interpreters(()):
            results = self.run([new_tensor(_copied(a)) for a in arrays])
            return [_copied(x.array) for x in results]

    def is_traced(self, operands):
        return active_tracer() is not None

    def run(self, operands):
        refuse_mapped(self.title, operands)
        if self.by_token is not None:
            outputs, token = self._run_by_token(
                object_of(operands[-1].array), operands[:-1]
            )
        elif self.keeps:
            outputs, token = self._run_on_tape(operands)
        else:
            outputs, token = self._checked(self.function(*operands)), None
        return [*outputs, *[new_tensor(handle_of(token))] * self.keeps]

    def _checked(self, results):
        return _checked_results(self.title, results, self.specs)

    def _run_on_tape(self, inputs):
        """Return the outputs, and the token of the call."""
        with GradientTape(persistent=True) as tape:
            tape.watch(_floating(inputs))
            outputs = self._checked(self.function(*inputs))
            return outputs, Token(tape, active_interpreters()[-1], inputs, outputs)

    def _run_by_token(self, token, inputs):
        """Return the outputs by an earlier token, and a token that includes them."""
        if not self.keeps:
            return self._checked(self.by_token(token, *inputs)), None
        inputs = [*token.inputs, *inputs[len(token.inputs) :]]
        with use_interpreters((*active_interpreters(), token.interpreter)):
            token.tape.watch(_floating(inputs[len(token.inputs) :]))
            outputs = self._checked(self.by_token(token, *inputs))
        return outputs, Token(token.tape, token.interpreter, inputs, outputs)

    # --- gradient

    def split(self):
        repeated = self.copy(by_token=lambda token, *_: token.outputs, repeats=True)
        return self.copy(keeps=self.keeps + 1), [HANDLE_SPEC], repeated

    def with_tokens(self, operands, tokens):
        return [*operands, *tokens]

    def recorded(self):
        """See `RegionNode`; the token is a result, or the last operand of a repeated call."""
        twin = self.copy() if self.repeats else self.copy(keeps=max(self.keeps, 1))

        def gradient(inputs, outputs, cotangents, wanted):
            *inputs, token = inputs if self.repeats else [*inputs, outputs[-1]]
            return self._gradient(inputs, token, cotangents, wanted)

        return twin, gradient

    def _gradient(self, inputs, token, cotangents, wanted):
        """Return the gradients of the inputs ``wanted``, from the tape of the token."""
        cotangents = cotangents[: len(self.specs)]
        present = [i for i, c in enumerate(cotangents) if c is not None]
        given, size = [cotangents[i] for i in present], len(inputs)

        def by_token(token, *arguments):
            return token.tape.gradient(
                [token.outputs[i] for i in present],
                [token.inputs[i] for i in wanted],
                output_gradients=list(arguments[size:]),
                unconnected_gradients="zero",
            )

        tensors, title = [*inputs, *given], f"{self.title}_gradient"
        specs = [spec_of(inputs[i]) for i in wanted]
        node = PythonCall(title, None, len(tensors), specs, by_token=by_token)
        return emit(node, [*tensors, token])


def _floating(tensors):
    return [x for x in tensors if kind_of(x.array.dtype) in "fc"]


def _copied(array):
    """Copy an array; return a token unchanged."""
    if array.dtype == HANDLE:
        return array
    return devices.copy_to(devices.array_module(type(array)), array)
