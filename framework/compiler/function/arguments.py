"""Arguments of a traced function: ordered, converted, and turned into keys of traces.

A trace is made for *kinds* of arguments: a tensor's shape and dtype, a Python number's
type and value, the structure around them, and the identity of any other argument. A
replica context is one more argument, with the value of its share. A `Resource` is
identified by its spec, and is passed as a tensor, its handle.
"""

import itertools
import weakref
from copy import copy

import numpy as np

from tapewright.core.composite import CompositeTensor
from tapewright.core.dtypes import kind_of
from tapewright.core.hardware import devices
from tapewright.core.nest import flatten, is_nested, map_structure, pack
from tapewright.core.state.autocast import autocast_dtype
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    has_own_dtype,
    is_tensor,
    new_tensor,
)
from tapewright.core.variable import Variable, VariableValue, unwrap_value
from tapewright.ops.random.generators import is_lent

from ..tracing.handles import Resource

_LITERALS = {int, bool, str, bytes, type(None), type(...)}
_TENSOR = "tensor"


class Arguments:
    """The arguments of a call: ``values``, one for each parameter, and the tensors in them.

    ``static`` is everything but the tensors, in a form that can be a key; ``specs`` has
    a ``(shape, dtype, array module)`` for each tensor, where None is an unknown
    dimension or rank; ``objects`` are weak references to objects that are compared by
    identity. ``constraints`` are the specs that a signature prescribes.
    """

    __slots__ = ("values", "tensors", "static", "specs", "objects", "names", "borrowed")

    def __init__(self, values, constraints=None):
        values = tuple([_with_tensors(x) for x in values])
        self.values, self.tensors, self.objects = values, [], []
        self.borrowed = []  # numbers of the tensors that are arrays of the caller
        self.static = tuple([self._key_of(x) for x in values])
        self.specs = tuple([_spec_of(x) for x in self.tensors])
        if constraints is not None:
            pairs = zip(constraints, self.specs)  # behind them: tensors among defaults
            wanted = [(*_shape_and_dtype(spec), own[2]) for spec, own in pairs]
            self.specs = (*wanted, *self.specs[len(wanted) :])
        pairs = itertools.zip_longest(constraints or (), self.tensors)
        self.names = [_own_name(spec) or _own_name(x) for spec, x in pairs]

    def _key_of(self, x):
        kind = type(x)
        if kind is Tensor:
            self.tensors.append(x)
            return _TENSOR
        if kind in _LITERALS:
            return kind, x
        if kind is float:
            return kind, x.hex()  # 0.0 == -0.0, and nan is not nan
        if kind is complex:
            return kind, x.real.hex(), x.imag.hex()
        if isinstance(x, (Tensor, TensorSpec)):
            self.tensors.append(x)
            return _TENSOR
        if devices.is_array(x):
            self.tensors.append(self._from_array(x))
            return _TENSOR
        if is_nested(x):
            if isinstance(x, dict):
                pairs = [(name, self._key_of(x[name])) for name in _sorted(x)]
                return (kind, *pairs)
            return (kind, *[self._key_of(item) for item in x])
        if isinstance(x, CompositeTensor):
            return (
                x._tw_static_key(),
                *[self._key_of(part) for part in x._tw_components()],
            )
        if isinstance(x, Resource):
            self.tensors.append(x._tw_handle)
            return Resource, x._tw_resource_spec
        if kind in (slice, range):
            return (kind, *[self._key_of(n) for n in (x.start, x.stop, x.step)])
        if kind is set:
            return kind, frozenset(x)
        if kind is bytearray:
            return kind, bytes(x)
        return kind, self._reference(x)

    def _from_array(self, x):
        """Wrap an array in a tensor, without a copy where a replay may borrow it."""
        plain = (
            type(x) is np.ndarray and kind_of(x.dtype) in "biufc" and x.dtype.isnative
        )
        if not plain or not x.flags.c_contiguous or devices.current_module() is not np:
            return convert_to_tensor(x)
        self.borrowed.append(len(self.tensors))
        return new_tensor(x)

    def copy_borrowed(self):
        """Replace arrays borrowed from the caller by copies, which may be kept."""
        for i in self.borrowed:
            self.tensors[i] = new_tensor(self.tensors[i].array.copy())
        self.borrowed = []

    def released(self):
        """Return a copy that keeps no tensor or object alive."""
        twin = copy(self)
        twin.values = tuple([weakened(x) for x in self.values])
        twin.tensors = [TensorSpec(x.shape, x.dtype) for x in self.tensors]
        return twin

    def _reference(self, x):
        """Return a key for an object that does not keep it alive, if possible."""
        by_value = _is_hashable(x) and not isinstance(x, Variable)
        try:
            reference = weakref.ref(x)
        except TypeError:
            return x if by_value else IdentityKey(x)
        self.objects.append(reference)
        return reference if by_value else IdentityKey(reference)


def _with_tensors(x):
    """Replace the ``value`` of variables, and objects that convert to arrays, by tensors."""
    if is_nested(x):
        leaves = flatten(x)
        new = [_with_tensor(leaf) for leaf in leaves]
        is_same = all([a is b for a, b in zip(new, leaves, strict=True)])
        return x if is_same else pack(x, new)
    return _with_tensor(x)


def _with_tensor(x):
    kind = type(x)
    if kind is Tensor or kind is np.ndarray or kind in _LITERALS:
        return x
    if kind is VariableValue:
        return unwrap_value(x)
    is_known = is_tensor(x) or devices.is_array(x) or not has_own_dtype(x)
    return x if is_known else np.asarray(x)


class IdentityKey:
    """A key that compares objects by identity; ``reference`` may be a weak one."""

    __slots__ = ("reference", "number")

    def __init__(self, reference):
        self.reference = reference
        self.number = id(self.get())

    def get(self):
        reference = self.reference
        return reference() if type(reference) is weakref.ref else reference

    def __eq__(self, other):
        if type(other) is not IdentityKey or self.number != other.number:
            return False
        own = self.get()  # None: another object may live in its place
        return self is other or (own is not None and own is other.get())

    def __hash__(self):
        return self.number


class _Weak:
    """A weak reference, distinct from those that are arguments themselves."""

    __slots__ = ("get",)

    def __init__(self, x):
        self.get = weakref.ref(x)


def weakened(value):
    """Replace tensors by their specs, and other objects by weak references."""
    if is_nested(value):
        return map_structure(weakened, value)
    if isinstance(value, TensorSpec):
        return value
    if isinstance(value, Tensor) or devices.is_array(value):
        dtype = getattr(value.dtype, "dtype", value.dtype)
        return TensorSpec(value.shape, dtype, getattr(value, "name", None))
    if isinstance(value, CompositeTensor):
        return value._tw_with_components([weakened(x) for x in value._tw_components()])
    if isinstance(value, Resource):
        return value._tw_stand_in(None)
    try:
        return _Weak(value)
    except TypeError:
        return value


def revived(value):
    """Undo `weakened`, except for tensors."""
    if is_nested(value):
        return map_structure(revived, value)
    return value.get() if type(value) is _Weak else value


def _own_name(x):
    return x.name if isinstance(x, TensorSpec) else None


def _is_hashable(x):
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _sorted(mapping):
    try:
        return sorted(mapping)
    except TypeError:  # keys of several types keep their order, as in `nest`
        return list(mapping)


def _spec_of(x):
    """Return the shape, dtype and array module of a tensor or spec."""
    array = getattr(x, "array", None)
    if devices.is_array(array):
        return array.shape, array.dtype, devices.array_module(type(array))
    return (*_shape_and_dtype(x), devices.current_module())


def _shape_and_dtype(spec):
    shape, dtype = spec.shape, spec.dtype.dtype
    if shape.rank is None:
        return None, dtype
    return tuple([n if type(n) is int else None for n in shape]), dtype


def named_leaves(x, name):
    """Return pairs of a name and a leaf of ``x`` in `flatten` order: ``name_0_key``."""
    if isinstance(x, dict) and is_nested(x):
        for key in _sorted(x):
            yield from named_leaves(x[key], f"{name}_{key}")
    elif is_nested(x):
        for i, item in enumerate(x):
            yield from named_leaves(item, f"{name}_{i}")
    else:
        yield name, x


def map_tensors(make, values, names):
    """Replace each tensor in ``values`` by ``make(tensor, name)``.

    Arrays and `TensorSpec` objects count as tensors.
    """

    def mapped(name, leaf):
        if isinstance(leaf, (Tensor, TensorSpec)) or devices.is_array(leaf):
            return make(leaf, name)
        if isinstance(leaf, CompositeTensor):
            parts = enumerate(leaf._tw_components())
            return leaf._tw_with_components(
                [mapped(f"{name}_{i}", x) for i, x in parts]
            )
        if isinstance(leaf, Resource):
            return leaf._tw_with_handle(make(leaf._tw_handle, name))
        return leaf

    made = []
    for x, name in zip(values, names, strict=True):
        leaves = [mapped(*pair) for pair in named_leaves(x, name)]
        made.append(pack(x, leaves) if is_nested(x) else leaves[0])
    return tuple(made)


def trace_context():
    """Return the context that a trace depends on besides its arguments."""
    context = replica_context()
    if context is not None:
        context = context._replace(share=float(context.share))
    return devices.current_module(), is_lent(), autocast_dtype(), context


def quick_key(args):
    """Return a key for plain tensors and values, or tuples of them, and the tensors.

    The key is None if there are other arguments.
    """
    key, tensors = [*trace_context()], []
    for x in args:
        if type(x) is Tensor:  # without a call: most are
            array = x.array
            key += (array.shape, array.dtype, type(array))
            tensors.append(x)
        elif not _extend_key((x,), key, tensors):
            return None, None
    return tuple(key), tensors


def _extend_key(args, key, tensors):
    for x in args:
        kind = type(x)
        if kind is Tensor:
            array = x.array
            key += (array.shape, array.dtype, type(array))
            tensors.append(x)
        elif kind in _LITERALS or (kind is float and x and x == x):  # 0.0 == -0.0
            key += (kind, x)
        elif kind is tuple:
            key += (kind, len(x))
            if not _extend_key(x, key, tensors):
                return False
        else:
            return False
    return True
