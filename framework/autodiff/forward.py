"""Forward mode: Jacobian-vector products; also Hessian-vector products and `ravel`.

A `ForwardAccumulator` keeps a tangent for every tensor that depends on its primals. Ops
need no further rules for it: a VJP rule is linear in the cotangent, and its transpose,
a backward pass over the rule itself, is the JVP. Elementwise and linear ops have
shortcuts.
"""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Self, overload

import numpy as np

from tapewright.core import nest
from tapewright.core.dtypes import kind_of
from tapewright.core.errors import DTypeError, GradientLookupError, ShapeError
from tapewright.core.interpreters import (
    ARRAY_EVAL,
    Interpreter,
    active_interpreters,
    process_op,
    set_interpreters,
    use_interpreters,
)
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.tape import Tape
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    convert_to_tensor,
    module_of,
    new_tensor,
    next_key,
)
from tapewright.core.typing import Gradient, R, TensorLike, TensorNest
from tapewright.core.variable import Variable, on_device_of, unwrap_value
from tapewright.ops.array.creation import zeros, zeros_like
from tapewright.ops.array.indexed_slices import dense
from tapewright.ops.array.joining import concat, split
from tapewright.ops.array.shape import broadcast_to, reshape

from .backward import backward_pass, sum_cotangents
from .gradient_tape import GradientTape, UnconnectedGradients


class ForwardAccumulator:
    """Forward-mode automatic differentiation: compute Jacobian-vector products (JVPs).

    Tangents are computed along with the function. A tape takes one backward pass for
    each output of a function; an accumulator takes one forward pass for each input, and
    keeps only the tangents of tensors still in use. Accumulators can be nested and
    combined with tapes: the outer one differentiates the inner one. Custom gradients
    are used in forward mode, too.

    Args:
        primals: Tensor or variable, or any nest of them.
        tangents: Nest of the same structure, with a tangent of the shape and dtype of
            each primal.

    Raises:
        ValueError: If the structures or shapes differ, or a primal is repeated.
        TypeError: If a primal is not a tensor or variable.

    Example:
        >>> x = tw.convert_to_tensor([1.0, 3.0])
        >>> with tw.autodiff.ForwardAccumulator(x, [1.0, 0.0]) as acc:
        ...     y = x * x
        >>> acc.jvp(y).numpy()
        array([2., 0.], dtype=float32)
    """

    def __init__(self, primals: TensorNest, tangents: TensorLike | TensorNest):
        self._tangents = Tangents()
        self._recording = False
        self._watch(primals, tangents)

    def __repr__(self) -> str:
        tangents = self._tangents
        count = len(tangents.known) + len(tangents.variables)
        state = "recording, " if self._recording else ""
        return f"<ForwardAccumulator: {state}tangents of {count} values>"

    def __enter__(self) -> Self:
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        set_interpreters((*active_interpreters(), self._tangents))
        self._recording = True
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            rest = [r for r in active_interpreters() if r is not self._tangents]
            set_interpreters(tuple(rest))
            self._recording = False

    def _watch(self, primals, tangents):
        for primal, tangent in _pairs(primals, tangents):
            self._tangents.watch(primal, tangent)

    @overload
    def jvp(
        self,
        primals: Tensor | Variable,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Gradient: ...
    @overload
    def jvp(
        self,
        primals: TensorNest,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any: ...
    def jvp(self, primals, unconnected_gradients=UnconnectedGradients.NONE):
        """Return the tangents of ``primals``, computed while the accumulator was active.

        Args:
            primals: Result of the function, a tensor or any nest of tensors.
            unconnected_gradients: "none" or "zero", the result for tensors that do not
                depend on the primals of the accumulator.

        Returns:
            Nest like ``primals``. The tangent of an integer tensor, or of an
            unconnected one, is None, or zeros under "zero".

        Raises:
            LookupError: If an op on the path has no gradient.
            ValueError: If ``unconnected_gradients`` is unknown.
            TypeError: If ``primals`` contains anything but tensors.
        """
        zero = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
        return nest.map_structure(lambda x: self._tangent_of(x, zero), primals)

    def _tangent_of(self, primal, zero):
        if not isinstance(primal, (Tensor, Variable)):
            raise TypeError(
                "jvp: primals must be a tensor or variable, or a nest of them, got "
                f"{type(primal).__name__}; results of NumPy or Python have no tangent"
            )
        tangent = self._tangents.tangent_of(primal)
        return zeros_like(primal) if tangent is None and zero else tangent


def jvp(
    f: Callable[..., R], primals: TensorNest, tangents: TensorLike | TensorNest
) -> tuple[R, R]:
    """Compute ``f`` and its directional derivative (Jacobian-vector product) in one pass.

    Args:
        f: Function that returns a tensor or any nest of tensors.
        primals: Arguments of ``f``: a tensor or variable, or a list or tuple of them.
        tangents: Nest like ``primals``, the direction, with the shape and dtype of each
            primal.

    Returns:
        ``(f(*primals), derivative)``. The derivative of outputs that do not depend on
        the primals is zero.

    Raises:
        ValueError: If the structures or shapes differ, or a primal is repeated.
        TypeError: If a primal is not a tensor or variable.

    Example:
        >>> y, dy = tw.autodiff.jvp(lambda x: x * x, tw.convert_to_tensor(3.0), 2.0)
        >>> y.numpy(), dy.numpy()
        (np.float32(9.0), np.float32(12.0))
    """
    with ForwardAccumulator(primals, tangents) as accumulator:
        value = nest.map_structure(convert_to_tensor, _call(f, primals))
    return value, accumulator.jvp(value, UnconnectedGradients.ZERO)


def hvp(
    f: Callable[..., Any], primals: TensorNest, tangents: TensorLike | TensorNest
) -> Any:
    """Compute a Hessian-vector product: the Hessian of ``f`` times ``tangents``.

    It costs a few gradients and never forms the Hessian. If ``f`` has several outputs,
    their sum is differentiated. The method is reverse over reverse, with ``tangents``
    as the second cotangent. (Forward over reverse needs less memory, but more ops.)

    Args:
        f: Function that returns a tensor or any nest of tensors.
        primals: Arguments of ``f``: a tensor or variable, or a list or tuple of them.
            They may include variables that ``f`` reads by itself.
        tangents: Nest like ``primals``, the vector, with the shape and dtype of each
            primal.

    Returns:
        Nest like ``primals``, with None for primals that ``f`` does not depend on.

    Raises:
        ValueError: If the structures or shapes differ, or a primal is repeated.
        TypeError: If a primal is not a tensor or variable.

    Example:
        >>> x = tw.convert_to_tensor([1.0, 2.0])
        >>> tw.autodiff.hvp(lambda x: x[0] * x[1] * x[1], x, [1.0, 0.0]).numpy()
        array([0., 4.], dtype=float32)
    """
    pairs = _pairs(primals, tangents)
    sources = [primal for primal, _ in pairs]
    with GradientTape(watch_accessed_variables=False) as outer:
        outer.watch(sources)
        with GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(sources)
            value = _call(f, primals)
        gradients = [_dense(g) for g in inner.gradient(value, sources)]
    targets = [(g, t) for g, (_, t) in zip(gradients, pairs) if g is not None]
    products = outer.gradient(
        [g for g, _ in targets],
        sources,
        output_gradients=[t for _, t in targets],
        unconnected_gradients=UnconnectedGradients.ZERO,
    )
    by_id = {
        id(source): convert_to_tensor(product)
        for source, product, g in zip(sources, products, gradients)
        if g is not None
    }
    return nest.pack(primals, [by_id.get(id(x)) for x in nest.flatten(primals)])


def _call(f, primals):
    return f(*primals) if isinstance(primals, (list, tuple)) else f(primals)


def ravel(values: TensorNest) -> tuple[Tensor, Callable[[TensorLike], Any]]:
    """Flatten a nest of tensors into one vector; also return the inverse function.

    Both directions are differentiable.

    Args:
        values: Tensor or variable, or any nest of them, all of one dtype.

    Returns:
        ``(vector, unravel)``; ``unravel(vector)`` returns a nest like ``values``.

    Raises:
        ValueError: If a value is None, or ``unravel`` is given a vector of another
            length.
        DTypeError: If the dtypes differ (a ``TypeError``).

    Example:
        >>> vector, unravel = tw.autodiff.ravel([tw.constant([[1.0, 2.0]]), tw.constant(3.0)])
        >>> vector.numpy()
        array([1., 2., 3.], dtype=float32)
        >>> [x.shape for x in unravel(vector * 2.0)]
        [TensorShape([1, 2]), TensorShape([])]
    """
    flat = nest.flatten(values)
    if any([v is None for v in flat]):
        raise ValueError(
            "ravel: values must not be None; for the gradient of a source that the "
            "target does not depend on, pass unconnected_gradients='zero'"
        )
    tensors = [convert_to_tensor(_dense(v)) for v in flat]
    for tensor in tensors[1:]:
        if tensor.dtype != tensors[0].dtype:
            raise DTypeError("ravel", "the dtypes must be the same; cast to one of them",
                             first=tensors[0], other=tensor)  # fmt: skip
    shapes = [tuple(t.shape) for t in tensors]
    sizes = [math.prod(shape) for shape in shapes]
    parts = [reshape(t, (-1,)) for t in tensors]

    def unravel(vector):
        vector = convert_to_tensor(vector)
        if tuple(vector.shape) != (sum(sizes),):
            raise ShapeError("unravel", f"vector must have shape ({sum(sizes)},)",
                             vector=vector)  # fmt: skip
        parts = split(vector, sizes) if sizes else []
        return nest.pack(values, [reshape(p, s) for p, s in zip(parts, shapes)])

    return concat(parts, axis=0) if parts else zeros((0,)), unravel


def _pairs(primals, tangents):
    """Check primals and tangents, and return pairs of them."""
    flat = [unwrap_value(x) for x in nest.flatten(primals)]
    if len({id(primal) for primal in flat}) < len(flat):
        raise ValueError(
            "A tensor or variable was specified as a primal multiple times. If that was "
            "intended, give it once, with the sum of its tangents"
        )
    if nest.is_nested(primals):
        nest.assert_same_structure(primals, tangents)
        given = nest.flatten(tangents)
    else:
        given = [tangents]  # a list of numbers is one tangent
    pairs = []
    for primal, tangent in zip(flat, given, strict=True):
        if not isinstance(primal, (Tensor, Variable)):
            raise TypeError(
                f"primals must be a tensor or variable, or a nest of them, got "
                f"{type(primal).__name__}; make one with convert_to_tensor first"
            )
        with on_device_of(primal):
            tangent = convert_to_tensor(_dense(tangent), dtype=primal.dtype)
        if tangent.shape != primal.shape:
            raise ShapeError("tangents", "each must have the shape of its primal",
                             primal=primal, tangent=tangent)  # fmt: skip
        if primal.dtype.is_differentiable:
            pairs.append((primal, tangent))
        else:
            warnings.warn(
                f"primals: only real and complex tensors are differentiable, this one is "
                f"{primal.dtype.name}: it has no tangent",
                stacklevel=user_stacklevel(),
            )
    return pairs


def _dense(value):
    return dense(value) if isinstance(value, IndexedSlices) else value


class Tangents(Interpreter):
    """Interpreter of an accumulator: keeps the tangent of each tensor that has one.

    Tangents are not conjugated: the tangent of ``f(z)`` is ``f'(z)`` times the tangent
    of ``z``.
    """

    __slots__ = ("known", "failed", "variables", "forget", "__weakref__")
    takes_records = True

    def __init__(self):
        self.known = {}  # key of a tensor -> (its tangent, a weak reference to it)
        self.failed = {}  # key of a tensor -> the error of asking for its tangent
        self.variables = {}  # id -> (variable, tangent)
        self.forget = _forgetter(self)

    def watch(self, primal, tangent):
        if isinstance(primal, Variable):
            self.variables[id(primal)] = (primal, tangent)
        else:
            self.put(primal, tangent)

    def put(self, tensor, tangent):
        """Keep a tangent as long as its tensor lives."""
        if tangent is None:
            self.known.pop(tensor.key, None)
            return
        if type(tensor.key) is not int:
            tensor.key = next_key()
        reference = _KeyedRef(tensor, self.forget)
        reference.key = tensor.key
        self.known[tensor.key] = (tangent, reference)

    def tangent_of(self, value):
        if isinstance(value, Variable):
            return self.variables.get(id(value), (None, None))[1]
        if value.key in self.failed:
            raise self.failed[value.key]
        return self.known.get(value.key, (None, None))[0]

    def read_variable(self, variable, tensor):
        watched = self.variables.get(id(variable))
        if watched is not None and kind_of(tensor.array.dtype) in "fc":
            self.put(tensor, watched[1])

    def process(self, op, inputs, attributes, below):
        outputs = process_op(op, inputs, attributes, below)
        tangents = [self.known.get(x.key, (None, None))[0] for x in inputs]
        if op.non_differentiable:
            names = op.names(inputs)
            tangents = [
                None if n in op.non_differentiable else t
                for n, t in zip(names, tangents)
            ]
        each = outputs if type(outputs) is tuple else (outputs,)
        if self.failed:
            self._pass_on(op, inputs, each)
        if tangents.count(None) == len(tangents):
            return outputs
        if not any(kind_of(out.array.dtype) in "fc" for out in each):
            return outputs
        with use_interpreters(below), np.errstate(all="ignore"):
            try:
                jvps = _jvp_of_op(op, inputs, attributes, outputs, tangents, below)
            except (
                GradientLookupError
            ) as error:  # raised by `tangent_of`: it may not matter
                self._fail(each, error)
                return outputs
        for out, tangent in zip(each, jvps):
            if kind_of(out.array.dtype) in "fc":
                self.put(out, tangent)
        return outputs

    def process_record(self, record, outputs, below):
        """Replace the tangents of the outputs of a call that has a custom gradient."""
        _, _, inputs, *_ = record
        tangents = {key: self.known[key][0] for key in inputs}
        with use_interpreters(below), np.errstate(all="ignore"):
            jvps = _transposed_vjp(record, outputs, tangents, below)
        for out, tangent in zip(outputs, jvps):
            self.failed.pop(out.key, None)
            self.put(out, tangent)

    def _fail(self, outputs, error):
        for out in outputs:
            if type(out.key) is not int:
                out.key = next_key()
            self.failed[out.key] = error

    def _pass_on(self, op, inputs, outputs):
        for x, name in zip(inputs, op.names(inputs)):
            if x.key in self.failed and name not in op.non_differentiable:
                self._fail(outputs, self.failed[x.key])


class _KeyedRef(weakref.ref):
    """Weak reference to a tensor, with its key."""

    __slots__ = ("key",)


def _forgetter(tangents):
    """Return a callback that drops the tangent of a dead tensor, and keeps nothing alive."""
    owner = weakref.ref(tangents)

    def forget(reference):
        alive = owner()
        if alive is not None:
            known = alive.known.get(reference.key)
            if known is not None and known[1] is reference:
                del alive.known[reference.key]

    return forget


# ---------------------------------------------------------------------- the JVP of an op


def _jvp_of_op(op, inputs, attributes, outputs, tangents, below):
    """Return the tangents of the outputs of an op from its input tangents (or None)."""
    several = type(outputs) is tuple
    if (
        op.elementwise
        and op.registered is None
        and not (several or op.variadic)
        and _share_real_dtype(inputs, tangents, outputs)
    ):
        return [_elementwise_jvp(op, inputs, attributes, outputs, tangents)]
    # A linear op without rules passes no gradient on purpose.
    if op.linear and op.rules:
        jvps = _linear_jvp(op, inputs, attributes, tangents)
        if jvps is not None:
            return jvps if several else [jvps]
    recorder = op.recorders[tuple([t is not None for t in tangents])]
    record = recorder(attributes, outputs, *inputs)
    by_key = {x.key: t for x, t in zip(inputs, tangents) if t is not None}
    each = outputs if several else (outputs,)
    return _transposed_vjp(record, each, by_key, below)


def _share_real_dtype(inputs, tangents, out):
    """Return whether the output and the inputs with a tangent are real, of one dtype."""
    dtype = out.array.dtype
    given = [
        x.array.dtype for x, tangent in zip(inputs, tangents) if tangent is not None
    ]
    return kind_of(dtype) == "f" and all([each == dtype for each in given])


def _elementwise_jvp(op, inputs, attributes, out, tangents):
    """Compute the JVP by the VJP rules: a diagonal Jacobian is its own transpose."""
    total, shape = None, out.array.shape
    for i, (x, tangent) in enumerate(zip(inputs, tangents)):
        if tangent is None:
            continue
        if tangent.array.shape != shape:
            tangent = broadcast_to(tangent, shape)
        record, parts = op.recorders[str(i)](attributes, out, *inputs), {}
        pullback, *_ = record
        pullback.on_tensors(record, tangent, parts, None)
        part = parts[x.key]
        total = part if total is None else total + part
    return total if total.array.shape == shape else broadcast_to(total, shape)


def _linear_jvp(op, inputs, attributes, tangents):
    """Apply the op to the tangents of each group of inputs in which it is linear; sum.

    Returns None if it is not linear in all inputs that have a tangent.
    """
    left = {i for i, t in enumerate(tangents) if t is not None}
    rows = []
    for group in op.linear_groups(inputs):
        moving, left = left & group, left - group
        if moving:
            row = list(inputs)
            for i in group:
                if i in moving:
                    row[i] = tangents[i]
                elif kind_of(row[i].array.dtype) in "fc":
                    row[i] = _zeros(row[i])
            rows.append(row)
    if left:
        return None
    parts = [op.general(row, attributes) for row in rows]
    if type(parts[0]) is tuple:
        return [sum(each[1:], each[0]) for each in zip(*parts)]
    return sum(parts[1:], parts[0])


def _transposed_vjp(record, outputs, tangents, below):
    """Compute the JVP as the transpose of the VJP, which is linear in the cotangent.

    ``tangents`` holds the tangents of the inputs, by key. Returns one for each output.
    """
    inner = Tape(accessed=False)
    cotangents = [_zeros(out) for out in outputs]
    for cotangent in cotangents:
        inner.watch(cotangent)
    parts, seeds, on_arrays = {}, {}, not below
    with use_interpreters((*below, inner)):
        pullback, output, *_ = record
        g = cotangents if type(output) is tuple else cotangents[0]
        pullback.on_tensors(record, g, parts, None)
        parts = {key: _dense(part) for key, part in parts.items()}
    for key, part in parts.items():
        if part.key in inner.known:
            seed = tangents[key]
            seed = seed.array if on_arrays else seed
            old = seeds.get(part.key)
            seeds[part.key] = seed if old is None else old + seed
    keys = [(c.key,) for c in cotangents]
    with use_interpreters(below or (ARRAY_EVAL,)):
        backward_pass(inner, seeds, keys, on_arrays, release=True)
        results = [_dense(sum_cotangents(seeds, k)) for k in keys]
    return [g if g is None or not on_arrays else new_tensor(g) for g in results]


def _zeros(tensor):
    array = tensor.array
    return new_tensor(module_of(tensor).zeros(array.shape, array.dtype))
