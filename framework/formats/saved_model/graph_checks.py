"""Checks of a graph from a file: names, shapes, inputs and outputs of nodes.

All raise ``ValueError``; `graph_reader` adds the file and the location.
"""

import re

import numpy as np

from tapewright.compiler.tracing.graph import spec_of
from tapewright.compiler.tracing.graph_verifier import check_fits
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.shapes.symbolic_shape import SymbolicShape, has_symbolic_shape
from tapewright.core.shapes.tensor_shape import UnrankedShape
from tapewright.core.tensor import TensorSpec

# Texts that generated source and messages may contain as they are: they cannot be code.
WORD = re.compile(r"[\w.,<>*+ -]{0,400}", re.ASCII)


def message_of(error):
    """Return the text of an error; a `KeyError` has only a name."""
    text = str(error) or type(error).__name__
    return f"has no {text}" if isinstance(error, KeyError) else text


def short_text(text):
    """Return a name that messages may show: short, in one line."""
    if not isinstance(text, str) or len(text) > 400 or not text.isprintable():
        raise ValueError("a name must be a short string")
    return text


def identifier(text):
    """Return a text that is an identifier of Python."""
    if not isinstance(text, str) or len(text) > 400 or not text.isidentifier():
        raise ValueError(f"{text!r} is not an identifier")
    return text


def name_or_none(text):
    """Return a `short_text`, or None for None."""
    return None if text is None else short_text(text)


def dims_of(dims):
    """Return a shape that a rule has inferred, in the type of graphs."""
    if isinstance(dims, UnrankedShape):
        return dims
    if getattr(dims, "rank", 0) is None or any(d is None for d in dims):
        raise ValueError("returns an unknown shape")
    return SymbolicShape(dims) if has_symbolic_shape(tuple(dims)) else tuple(dims)


def rule_spec(x):
    """Return the spec of an input, for the shape rule of an op."""
    return TensorSpec(*spec_of(x))


def check_plain(value, depth=0):
    """Check that an attribute consists of numbers, words and shapes."""
    if isinstance(value, str):
        fits = WORD.fullmatch(value) if not depth else value in ("newaxis", "...")
        if not fits or depth > 1:
            raise ValueError(f"{value[:80]!r} is not an attribute of an op")
    elif isinstance(value, (list, tuple)):
        if isinstance(value, UnrankedShape):
            return
        for item in value:
            check_plain(item, depth + 1)
    elif not (value is None or isinstance(value, (bool, int, float, complex, np.generic))
              or is_symbolic(value)):  # fmt: skip
        raise ValueError(f"{type(value).__name__} is not a type of op attributes")


def check_gradients(kinds, variables, inputs):
    """Check that these are gradients of the variables, as an optimizer expects them.

    ``kinds`` has an entry per variable: "dense", "sparse" for rows and their indices,
    or "gathered" for the rows of all replicas.
    """
    given = iter(inputs)
    if len(inputs) != len(kinds) + sum(k in ("sparse", "gathered") for k in kinds):
        raise ValueError(
            f"an update needs a different number of gradients than {len(inputs)}"
        )
    for kind, variable in zip(kinds, variables, strict=True):
        if kind == "dense":
            check_fits(variable, next(given))
        elif kind in ("sparse", "gathered"):
            (rows, dtype), (indices, whole) = spec_of(next(given)), spec_of(next(given))
            own = tuple(variable._array.shape)
            known = not any(
                isinstance(shape, UnrankedShape) for shape in (rows, indices)
            )
            fits = known and dtype == variable._array.dtype and whole.kind in "iu"
            if not fits or not own or (len(indices), tuple(rows[1:])) != (1, own[1:]):
                raise ValueError(f"has no sparse gradient of {variable.path!r}")
        else:
            raise ValueError(f"{kind!r:.80} is not a kind of gradient")


def check_settings(settings):
    """Check the settings of a loop: counts, flags and sizes."""
    counts = {"carried", "sliced", "summed", "stacked"}
    flags, sizes = {"counted", "reverse"}, {"length", "capacity", "maximum"}
    if set(settings) != counts | flags | sizes:
        raise ValueError(
            f"a loop must have the settings {sorted(counts | flags | sizes)}"
        )
    for name, x in settings.items():
        whole = type(x) is int and x >= 0
        fits = whole or (
            name in sizes and (x is None or (name != "maximum" and is_symbolic(x)))
        )
        if name in flags:
            fits = type(x) is bool
        if not fits:
            raise ValueError(f"the setting {name} of a loop cannot be {x!r}")
