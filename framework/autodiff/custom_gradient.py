"""Gradients defined by users: `custom_gradient`, `RegisterGradient`, `recompute_grad`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeAlias, TypeVar, overload

from tapewright.core.errors import ShapeError, TracingError
from tapewright.core.interpreters import (
    ARRAY_EVAL,
    Interpreter,
    active_interpreter,
    active_interpreters,
    active_tracer,
    converted,
    set_interpreters,
    use_interpreters,
)
from tapewright.core.nest import flatten, pack
from tapewright.core.op_definition.user_gradients import from_user, to_user
from tapewright.core.primitive import register_gradient
from tapewright.core.record import Pullback, add_cotangent, fill_missing
from tapewright.core.shapes.symbolic_operand import SymbolicOperand
from tapewright.core.state.stateless_scope import substituted
from tapewright.core.tensor import Tensor, convert_to_tensor, next_key
from tapewright.core.typing import P, R
from tapewright.core.variable import Variable, next_serial
from tapewright.ops.array.conversion import identity, set_apart
from tapewright.ops.array.shape import broadcast_to
from tapewright.ops.math.reduction import reduce_sum

from .batching import BatchedTensor, NotDiagonal
from .gradient_tape import GradientTape

# A function that returns its value and its gradient function.
Differentiated: TypeAlias = Callable[P, tuple[R, Callable[..., Any]]]
F = TypeVar("F", bound=Callable[..., Any])


class _VariableWatcher(Interpreter):
    """Collector of the trainable variables that are read while it is active."""

    __slots__ = ("variables",)
    only_watches_variables = True

    def __init__(self):
        self.variables = {}

    def read_variable(self, variable, tensor):
        if variable._tw_is_accessible:
            self.variables[id(variable)] = variable


class _AccessWatcher(_VariableWatcher):
    """Collector of variables, and of their values before they are assigned to.

    ``outside`` are the interpreters that see these values.
    """

    __slots__ = ("outside", "start", "before")

    def __init__(self, outside):
        super().__init__()
        self.outside, self.start = outside, next_serial()
        self.before = {}  # id -> variable, tensor

    @property
    def hides_tapes(self):
        return any([each.takes_records for each in self.outside])

    def before_assign(self, variable, method, key):
        if not isinstance(variable, Variable):
            if variable._tw_serial > self.start:  # f makes it anew
                return
            raise TracingError(
                "recompute_grad: f must not draw from a Generator that the traced "
                "function around it has created, since the same numbers cannot be "
                "drawn again; create it outside of the traced function, or in f"
            )
        if id(variable) not in self.before:
            with use_interpreters(self.outside):
                self.before[id(variable)] = variable, variable._tw_read_uncast()


def _pull_back(record, g, cotangents, useful):
    """Pull cotangents back through a call with a custom gradient."""
    pullback, _, keys, gradient, variables, tracked, sources, outputs = record
    name = pullback.name
    on_arrays = active_interpreter() is ARRAY_EVAL
    with use_interpreters(() if on_arrays else active_interpreters()):
        given = [to_user(c, on_arrays) for c in fill_missing(g, outputs)]
        count = len(tracked) - len(variables)
        gradients = call_gradient_function(gradient, given, count, variables, name)
        parts = [
            from_user(_checked(name, i, gradient, sources[i]), on_arrays)
            for i, gradient in enumerate(gradients)
            if tracked[i]
        ]
    for key, part in zip(keys, parts, strict=True):
        add_cotangent(cotangents, key, part, useful)


def _checked(name, i, gradient, source):
    """Return the gradient of source ``i`` as a tensor of its shape."""
    if gradient is None:
        return None
    shape, dtype = source
    gradient = convert_to_tensor(gradient, dtype_hint=dtype)
    if not gradient.shape.is_compatible_with(shape):
        raise ShapeError(
            "custom_gradient",
            f"the gradient {i} that the gradient function of {name} returns "
            f"must have the shape {shape} of its input or variable",
            gradient=gradient,
        )
    return gradient


def call_gradient_function(gradient, cotangents, count, variables, name):
    """Call a gradient function; return the gradients of its inputs, then of variables."""
    gradient = converted(gradient)
    if variables:
        answer = gradient(*cotangents, variables=list(variables))
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise TypeError(
                f"custom_gradient: the gradient function of {name} must return "
                "(gradients, variable_gradients), because variables are used"
            )
        gradients, of_variables = answer
        of_variables = flatten(of_variables)
        if len(of_variables) != len(variables):
            raise ValueError(
                f"custom_gradient: the gradient function of {name} must return "
                f"{len(variables)} variable gradients, got {len(of_variables)}"
            )
    else:
        gradients, of_variables = gradient(*cotangents), []
    gradients = flatten(gradients)
    if len(gradients) != count:
        raise ValueError(
            f"custom_gradient function expected to return {count} gradients, but "
            f"returned {len(gradients)} instead (for {name})"
        )
    return [*gradients, *of_variables]


@overload
def custom_gradient(
    f: None = None,
) -> Callable[[Differentiated[P, R]], Callable[P, R]]: ...
@overload
def custom_gradient(f: Differentiated[P, R]) -> Callable[P, R]: ...
def custom_gradient(f=None):
    """Decorator to define a custom gradient of a function.

    Use it for gradients that are more stable or cheaper than automatic gradients, and
    for functions that tapes cannot differentiate. Higher-order gradients differentiate
    the ops inside the gradient function.

    Args:
        f: Function that returns ``(outputs, gradient)``; the decorated function returns
            the outputs alone. ``gradient(*cotangents)`` receives one cotangent for each
            output and returns one gradient (or None) for each positional argument of
            ``f``. If ``f`` reads trainable variables that are not arguments,
            ``gradient`` must also accept ``variables=`` and return
            ``(gradients, variable_gradients)``. Keyword arguments are passed on and
            have no gradient.

    Returns:
        The decorated function.

    Raises:
        TypeError: If ``f`` does not return such a pair.
        ValueError: If the number or the shape of the gradients is wrong.

    Example:
        The derivative of ``log(1 + exp(x))``; for large ``x`` the automatic gradient
        is NaN:

        >>> @tw.custom_gradient
        ... def log1pexp(x):
        ...     e = tw.exp(x)
        ...     return tw.math.log(1 + e), lambda g: g * (1 - 1 / (1 + e))
        >>> x = tw.constant(100.0)
        >>> with tw.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = log1pexp(x)
        >>> tape.gradient(y, x).numpy()
        np.float32(1.0)
    """
    if f is None:
        return custom_gradient
    _check_function("custom_gradient", f)

    @functools.wraps(f)
    def decorated(*args, **kwargs):
        for x in args:
            if isinstance(x, SymbolicOperand):
                raise TypeError(
                    f"{_name(f)} must not be called on a KerasTensor, since a functional "
                    "model would lose its custom gradient; call it in the call() of a "
                    "Layer, or in a Lambda layer"
                )
        interpreters = active_interpreters()
        watcher = _VariableWatcher()
        # Tapes record the ops inside f, too, since its gradient function may use their
        # values, and be differentiated itself.
        with use_interpreters((*interpreters, watcher)):
            answer = converted(f)(*args, **kwargs)
        if not (isinstance(answer, tuple) and len(answer) == 2 and callable(answer[1])):
            raise TypeError(
                f"custom_gradient: {_name(f)} must return (value, gradient function), got "
                f"{type(answer).__name__}"
            )
        outputs, gradient = answer
        inputs = flatten(list(args))
        given = {id(x) for x in inputs if isinstance(x, Variable)}
        variables = [v for v in watcher.variables.values() if id(v) not in given]
        if variables and not _takes_variables(gradient):
            raise TypeError(
                f"custom_gradient: {_name(f)} uses the variables "
                f"{[v.path for v in variables]}, so its gradient function must take the "
                "keyword argument 'variables' and return (gradients, variable_gradients)"
            )
        results = record_custom_call(
            _name(f), inputs, variables, flatten(outputs), gradient
        )
        return pack(outputs, results)

    return decorated


def record_custom_call(name, inputs, variables, outputs, gradient):
    """Record a call with a custom gradient on tapes and in traces; return its results."""
    interpreters = active_interpreters()
    owners = [x.owner for x in (*inputs, *outputs) if type(x) is BatchedTensor]
    for at in range(len(interpreters) - 1, 0, -1):
        below, batcher = interpreters[:at], interpreters[at]
        batched = any([owner is batcher for owner in owners])
        if batched and any([r.takes_records or r.traces for r in below]):
            call = _BatchedCall(name, batcher, variables, gradient)
            with use_interpreters(below):
                results = call.record(inputs, outputs)
            start = at + 1
            break
    else:
        with use_interpreters(_without_tapes(interpreters)):
            # New tensors, since f may have returned an argument as it is.
            results = [identity(convert_to_tensor(out)) for out in outputs]
        tracer = active_tracer()
        if tracer is not None:
            results = tracer.custom_call(name, results, inputs, variables, gradient)
        start = 0
    _record_on_tapes(name, inputs, variables, results, gradient, interpreters, start)
    return results


class _BatchedCall:
    """Call on batched tensors, which the interpreters below see as one call on all values."""

    def __init__(self, name, batcher, variables, gradient):
        self.name, self.batcher = name, batcher
        self.variables, self.gradient = variables, gradient

    def record(self, inputs, outputs):
        batcher = self.batcher
        if batcher.strict:
            raise NotDiagonal(identity.primitive)
        self.mapped = [type(x) is BatchedTensor and x.owner is batcher for x in inputs]
        values = [
            batcher.densify_all(x) if m else x for x, m in zip(inputs, self.mapped)
        ]
        first = next(x for x in (*inputs, *outputs) if type(x) is BatchedTensor)
        outputs = [batcher.densify_like(x, first) for x in outputs]
        self.count = outputs[0].array.shape[0]
        results = record_custom_call(
            self.name, values, self.variables, outputs, self._call_gradient
        )
        return [batcher.map(result) for result in results]

    def _call_gradient(self, *cotangents, variables=None):
        below, batcher = active_interpreters(), self.batcher
        count = len(self.mapped)
        with use_interpreters((*below, batcher)):
            answer = call_gradient_function(
                self.gradient,
                [batcher.map(c) for c in cotangents],
                count,
                self.variables,
                self.name,
            )
        mapped = [*self.mapped, *[False] * len(self.variables)]
        gradients = [self._gathered(g, m) for g, m in zip(answer, mapped)]
        return (
            gradients if variables is None else (gradients[:count], gradients[count:])
        )

    def _gathered(self, gradient, is_mapped):
        """Return the gradients of a mapped input, or their sum for any other input."""
        if gradient is None:
            return None
        if type(gradient) is BatchedTensor and gradient.owner is self.batcher:
            gradient = self.batcher.densify_all(gradient)
        else:
            gradient = convert_to_tensor(gradient)
            gradient = broadcast_to(gradient, (self.count, *gradient.array.shape))
        return gradient if is_mapped else reduce_sum(gradient, axis=0)


def _record_on_tapes(name, inputs, variables, results, gradient, interpreters, start):
    """Record the call on every tape, from position ``start``, that tracks a source."""
    sources = [_source(x) for x in (*inputs, *variables)]
    specs = [s if s is None else (s.shape, s.dtype) for s in sources]
    outputs = [(r.array.shape, r.array.dtype) for r in results]
    for at, interpreter in enumerate(interpreters[start:], start):
        if not interpreter.takes_records:
            continue
        tracked = [s is not None and s.key in interpreter.known for s in sources]
        floating = [r for r in results if r.dtype.is_differentiable]
        if not any(tracked) or not floating:
            continue
        for result in results:
            if type(result.key) is not int:
                result.key = next_key()
        record = (
            Pullback(name, _pull_back),
            tuple([r.key for r in results]),
            tuple([s.key for s, is_tracked in zip(sources, tracked) if is_tracked]),
            *(gradient, variables, tracked, specs, outputs),
        )
        interpreter.process_record(record, results, interpreters[:at])


def _source(x):
    if isinstance(x, Variable):
        return x.read()
    return x if isinstance(x, Tensor) else None


def _takes_variables(gradient):
    try:
        parameters = inspect.signature(gradient).parameters
    except (TypeError, ValueError):  # a builtin has no signature: try the call
        return True
    return "variables" in parameters or any(
        p.kind is p.VAR_KEYWORD for p in parameters.values()
    )


def _name(f):
    return getattr(f, "__name__", type(f).__name__)


class RegisterGradient:
    """Decorator to register the gradient of an op that has none, by the op's name.

    The decorated function receives the op, with ``inputs``, ``outputs`` and
    ``get_attr(name)``, and one cotangent for each output; it returns one gradient for
    each input.

    Args:
        op_type: Name of the op in TensorFlow ("MatMul") or in tapewright ("matmul").

    Raises:
        KeyError: If the op already has a gradient.
        TypeError: If ``op_type`` is not a string.
    """

    def __init__(self, op_type: str):
        if not isinstance(op_type, str):
            raise TypeError(
                f"RegisterGradient: op_type must be a string, got {op_type!r}"
            )
        self._op_type = op_type

    def __call__(self, f: F) -> F:
        register_gradient(self._op_type, f)
        return f


def _without_tapes(interpreters):
    return tuple([r for r in interpreters if not r.takes_records])


def _check_function(who, f):
    if not callable(f):
        raise TypeError(f"{who}: f must be a function, got {f!r}")


def recompute_grad(f: Callable[P, R]) -> Callable[P, R]:
    """Gradient checkpointing: recompute ``f`` in the backward pass to save memory.

    It trades time for memory: residuals of ops inside ``f`` are not kept.

    The second computation starts from the state of the first: random generators draw
    the same numbers, and each variable that ``f`` assigns to, such as a moving mean, is
    reset to its earlier value. Its assignments are then undone, so that each counts
    once. Other side effects of ``f`` happen twice: printing, draws of NumPy, arbitrary
    Python code.

    Args:
        f: Function to recompute, such as a layer.

    Returns:
        Function with the arguments, results and gradients of ``f``.

    Raises:
        TracingError: If ``f`` draws from a `Generator` that the traced function around
            it has created.
        ValueError: If ``f`` calls `Layer.add_loss`, since the loss would have no
            gradient.

    References:
        Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).

    Example:
        >>> x = tw.Variable(3.0)
        >>> with tw.GradientTape() as tape:
        ...     y = tw.recompute_grad(lambda x: x * x)(x)
        >>> tape.gradient(y, x).numpy()
        np.float32(6.0)
    """
    _check_function("recompute_grad", f)

    @functools.wraps(f)
    def decorated(*args, **kwargs):
        if any([isinstance(x, SymbolicOperand) for x in flatten([args, kwargs])]):
            return f(*args, **kwargs)  # a model consists of ops

        @custom_gradient
        def forward(args, kwargs):
            outside = active_interpreters()
            watcher = _AccessWatcher(outside)
            with use_interpreters((*_without_tapes(outside), watcher)):
                outputs = converted(f)(*args, **kwargs)
            for variable in watcher.variables.values():
                variable.read()  # notifies the tapes
            with use_interpreters(()):  # the context must not keep tapes
                context = copy_context()  # a layer around f, and its dtypes
            state = list(watcher.before.values())
            return outputs, functools.partial(
                _recompute, context, f, args, kwargs, state
            )

        return forward(args, kwargs)

    return decorated


def _recompute(context, *call, variables=None):
    return context.copy().run(_gradients, active_interpreters(), variables, *call)


def _gradients(interpreters, variables, f, args, kwargs, state, *cotangents):
    set_interpreters(interpreters)
    flat = [_set_apart(x) for x in flatten([args, kwargs])]
    args, kwargs = pack([args, kwargs], flat)
    sources = [x for x in flat if isinstance(x, Tensor) and x.dtype.is_differentiable]
    variables = list(variables or [])
    if active_tracer() is not None:
        state = [(variable, set_apart(tensor)) for variable, tensor in state]
    with substituted(state), GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([*sources, *variables])
        outputs = flatten(converted(f)(*args, **kwargs))
    pairs = [
        (out, c)
        for out, c in zip(map(convert_to_tensor, outputs), cotangents)
        if out.dtype.is_differentiable
    ]
    targets, seeds = [out for out, _ in pairs], [c for _, c in pairs]
    results = tape.gradient(targets, [*sources, *variables], output_gradients=seeds)
    by_id = {id(x): g for x, g in zip(sources, results)}
    gradients = [by_id.get(id(x)) for x in flat]
    return (gradients, results[len(sources) :]) if variables else gradients


def _set_apart(x):
    if not isinstance(x, (Tensor, Variable)):
        return x
    tensor, mask = set_apart(x), getattr(x, "_keras_mask", None)
    if mask is not None:
        tensor._keras_mask = mask
    return tensor


def grad_pass_through(f: Callable[P, R]) -> Callable[P, R]:
    """Straight-through estimator: ``f`` with the gradient of the identity.

    Args:
        f: Function of one tensor, such as rounding, whose derivative is ignored.

    Returns:
        Function with the values of ``f``, and the gradient of the identity.

    Example:
        >>> x = tw.Variable(1.4)
        >>> with tw.GradientTape() as tape:
        ...     y = tw.grad_pass_through(tw.round)(x)
        >>> y.numpy(), tape.gradient(y, x).numpy()
        (np.float32(1.0), np.float32(1.0))
    """
    _check_function("grad_pass_through", f)

    @custom_gradient
    def forward(*args, **kwargs):
        def gradient(*cotangents, variables=None):
            if variables is None:
                return cotangents
            return cotangents, [None] * len(variables)

        return converted(f)(*args, **kwargs), gradient

    return functools.wraps(f)(forward)
