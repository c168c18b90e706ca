"""Branches that depend on data: `cond`, `switch_case`, `case`.

Outside of traced functions Python chooses the branch. Inside, it does so if the condition
is not traced; else they become a `Cond` node, which chooses in each replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tapewright.core.nest import (
    assert_same_structure,
    flatten,
    map_structure,
    pack,
)
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.typing import R, TensorLike
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.joining import stack
from tapewright.ops.array.shape import reshape
from tapewright.ops.math.elementwise import add_n
from tapewright.ops.math.reduction import reduce_any

from ..tracing.graph import spec_of
from .cond_node import branch
from .printing import assert_true
from .regions import any_traced, describe_tensor
from .tensor_array import with_common_elements


def cond(
    pred: TensorLike,
    true_fn: Callable[[], R] | None = None,
    false_fn: Callable[[], R] | None = None,
    name: str | None = None,
) -> R:
    """Return ``true_fn()`` if ``pred`` is true, else ``false_fn()``.

    Only the selected function runs. In a traced function with a traced ``pred``, both
    functions are traced and each replay runs one of them, including its gradients and
    variable assignments.

    Args:
        pred: Boolean scalar.
        true_fn: Function without arguments, called if ``pred`` is true.
        false_fn: Function without arguments, called if ``pred`` is false. Both return
            the same structure with the same shapes and dtypes: a nest of tensors, or
            None.

    Returns:
        The result of the function that is called.

    Raises:
        TypeError: If a function is not callable, or if the traced results differ in
            structure, shape or dtype.
        ValueError: If ``pred`` is not a single value.

    Example:
        >>> x = tw.convert_to_tensor(3.0)
        >>> tw.cond(x > 2.0, lambda: x * x, lambda: x).numpy()
        np.float32(9.0)
    """
    for argument, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(
                f"cond: {argument} must be callable, got {type(function).__name__}"
            )
    if not is_tensor(pred) and not isinstance(pred, (list, tuple)):
        return true_fn() if pred else false_fn()
    pred = convert_to_tensor(pred)
    if not any_traced([pred]):
        return true_fn() if pred else false_fn()
    _check_scalar("cond", "pred", pred)
    return _traced("cond", pred != 0 if pred.dtype.dtype.kind != "b" else pred,
                   {"true_fn": true_fn, "false_fn": false_fn})  # fmt: skip


def switch_case(
    branch_index: TensorLike,
    branch_fns: (
        Sequence[Callable[[], R]]
        | Sequence[tuple[int, Callable[[], R]]]
        | Mapping[int, Callable[[], R]]
    ),
    default: Callable[[], R] | None = None,
    name: str | None = "switch_case",
) -> R:
    """Call the branch function at position ``branch_index``.

    Any other index selects ``default`` or, without one, the last function.

    Args:
        branch_index: Integer scalar.
        branch_fns: List of functions without arguments, list of pairs
            ``(index, function)``, or dict from index to function. All return the same
            structure, as in `tw.cond`.
        default: Function for all other indices, or None for the one with the largest
            index.

    Returns:
        The result of the function that is called.

    Raises:
        TypeError: If ``branch_index`` is not an integer.
        ValueError: If the indices are not 0, 1, ..., each exactly once.

    Example:
        >>> tw.switch_case(1, [lambda: 10, lambda: 20, lambda: 30])
        20
    """
    functions = _numbered(branch_fns)
    index = convert_to_tensor(branch_index)
    if index.dtype.dtype.kind not in "iu":
        raise TypeError(
            f"switch_case: branch_index must be an integer, got {index.dtype.name}"
        )
    last = default if default is not None else functions[-1]
    _check_scalar("switch_case", "branch_index", index)
    if not any_traced([index]):
        number = int(index)
        return functions[number]() if 0 <= number < len(functions) else last()
    named = {f"branch {i}": function for i, function in enumerate(functions)}
    if default is not None:
        named["default"] = default
    return _traced("switch_case", reshape(index, ()), named)


def _numbered(branch_fns):
    """Check and sort pairs of a number and a function."""
    if isinstance(branch_fns, dict):
        pairs = list(branch_fns.items())
    elif all(callable(f) for f in branch_fns):
        pairs = list(enumerate(branch_fns))
    else:
        pairs = list(branch_fns)
    if not pairs:
        raise ValueError("switch_case: branch_fns must hold at least one function")
    for number, function in pairs:
        if not isinstance(number, int) or not callable(function):
            raise TypeError(
                "switch_case: branch_fns must hold functions, or pairs of an integer from "
                f"0 and a function, got {number!r}: {function!r}"
            )
    pairs.sort(key=lambda pair: pair[0])
    numbers = [number for number, _ in pairs]
    if numbers != list(range(len(pairs))):
        raise ValueError(
            f"switch_case: the numbers of branch_fns must be 0 to {len(pairs) - 1}, each "
            f"once, got {numbers}"
        )
    return [function for _, function in pairs]


def case(
    pred_fn_pairs: (
        Sequence[tuple[TensorLike, Callable[[], R]]] | Mapping[Any, Callable[[], R]]
    ),
    default: Callable[[], R] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = "case",
) -> R:
    """Call the function of the first pair whose condition is true, or else ``default``.

    Args:
        pred_fn_pairs: List of pairs ``(boolean scalar, function)``, or a dict with
            ``tensor.ref()`` as keys.
        default: Function called if no condition is true, or None to raise an error
            then.
        exclusive: If True, raise an error if more than one condition is true.
        strict: Ignored; the result always has the structure that the function returns.

    Returns:
        The result of the function that is called.

    Raises:
        InvalidArgumentError: If no condition is true and there is no ``default``, or if
            several are true and ``exclusive`` is True (a ValueError).
        ValueError: If ``pred_fn_pairs`` is empty.

    Example:
        >>> x = tw.convert_to_tensor(3)
        >>> tw.case([(x > 5, lambda: "large"), (x > 2, lambda: "middle")], lambda: "small")
        'middle'
    """
    pairs = _pairs(pred_fn_pairs)
    preds = [convert_to_tensor(pred) for pred, _ in pairs]
    if exclusive:
        count = add_n([cast(pred, "int32") for pred in preds])
        assert_true(count <= 1, "case: exclusive=True: more than one condition is true")
    if default is None:
        assert_true(reduce_any(stack(preds)), "case: none of the conditions is true")
        *pairs, (_, default) = pairs
    elif not callable(default):
        raise TypeError(f"case: default must be callable, got {type(default).__name__}")
    chosen = default
    for pred, function in reversed(pairs):
        chosen = _otherwise(pred, function, chosen)
    return chosen()


def _otherwise(pred, function, other):
    return lambda: cond(pred, function, other)


def _pairs(pred_fn_pairs):
    if isinstance(pred_fn_pairs, dict):
        pred_fn_pairs = [
            (k.deref() if hasattr(k, "deref") else k, f)
            for k, f in pred_fn_pairs.items()
        ]
    pairs = list(pred_fn_pairs)
    if not pairs:
        raise ValueError("case: pred_fn_pairs must hold at least one pair")
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and callable(pair[1])):
            raise TypeError(
                "case: pred_fn_pairs must hold pairs (pred, fn) with a callable fn, got "
                f"{pair!r}"
            )
    return pairs


def _check_scalar(who, argument, tensor):
    if tensor.shape.num_elements() != 1:
        raise ValueError(
            f"{who}: {argument} must be a single value, got shape {tensor.shape}"
        )


def _traced(who, choice, functions):
    """Emit a `Cond` of functions without arguments; return a nest like theirs."""
    structures = {}

    def flat(name, function):
        def traced():
            result = map_structure(_as_tensor, function())
            leaves = flatten(result, expand_composites=True)
            # A `TensorArray` makes a tensor of its elements, which belongs to this trace.
            structures[name] = pack(result, leaves, expand_composites=True)
            return leaves

        return traced

    def check(_):
        return _agreeing(who, list(functions), structures)

    parts = [flat(name, function) for name, function in functions.items()]
    outputs = branch(who, choice, parts, check=check)
    return pack(next(iter(structures.values())), outputs, expand_composites=True)


def _as_tensor(x):
    """Convert to a tensor; a variable becomes its value."""
    return x.__tensor__() if hasattr(type(x), "__tensor__") else x


def _agreeing(who, names, structures):
    """Convert results to tensors; raise if the results of two branches differ."""
    first, *others = names
    for name in others:
        try:
            assert_same_structure(structures[first], structures[name], True)
        except ValueError:
            _refuse(who, first, name, structures)
    columns = zip(*[flatten(structures[name]) for name in names], strict=True)
    columns = [with_common_elements(who, column) for column in columns]
    for name, leaves in zip(names, zip(*columns)):
        structures[name] = pack(structures[name], leaves)
    results = [flatten(structures[name], expand_composites=True) for name in names]
    for name, result in zip(names, results):
        if len(result) != len(results[0]):
            _refuse(who, first, name, structures)
    columns = [_column(who, names, i, column) for i, column in enumerate(zip(*results))]
    return [list(row) for row in zip(*columns)] if columns else [[] for _ in names]


def _refuse(who, first, name, structures):
    raise TypeError(
        f"{who}: {first} and {name} must return the same structure, got\n"
        f"  {first}: {structures[first]!r}\n  {name}: {structures[name]!r}"
    ) from None


def _column(who, names, i, column):
    """Convert the results of all branches at one position to tensors."""
    if all(x is None for x in column):
        return column
    hint = next((x.dtype for x in column if isinstance(x, Tensor)), None)
    for name, x in zip(names, column):
        if x is None:
            raise TypeError(
                f"{who}: {name} returns None at position {i}, where {names[0]} or "
                "another branch returns a tensor: return a tensor from every branch"
            )
    column = [convert_to_tensor(x, dtype_hint=hint) for x in column]
    for name, x in zip(names[1:], column[1:]):
        if spec_of(x) != spec_of(column[0]):
            raise TypeError(
                f"{who}: {names[0]} and {name} must return the same shapes and "
                f"dtypes; at position {i} {names[0]} returns {describe_tensor(column[0])}, "
                f"{name} returns {describe_tensor(x)}"
            )
    return column
