"""Attributes that an op does not know: its kernel and its shape rule agree on them.

Graphs in files have any attributes. What `infer` accepts the kernel computes, in just that
spec; what one of the two refuses the other refuses, too.
"""

import numpy as np
import pytest

from tapewright import TensorSpec
from tapewright.core.tensor import new_tensor

from .test_traits import calls_of_kernels

NUMBERS = (0, -1, -2, 1, 2, 3, 7, 40)
FLOATS = (0.0, -1.0, 2.5, np.nan, np.inf)
TEXTS = (
    "nonsense SAME VALID same valid float32 int64 bool left right reflect symmetric "
    "bilinear nearest"
).split()
REFUSALS = (TypeError, ValueError, LookupError, NotImplementedError)


def mutants(value):
    """Other values of the type of an attribute."""
    if value is None:
        found = [0, -1]
    elif isinstance(value, bool):
        found = [not value]
    elif isinstance(value, int):
        found = [*NUMBERS, -value, value + 1, value - 1]
    elif isinstance(value, float):
        found = [*FLOATS, -value]
    elif isinstance(value, str):
        found = TEXTS
    elif isinstance(value, tuple):
        found = [
            value[::-1],
            value[:-1],
            value[1:],
            value + value[-1:],
            (),
            (*value, 1),
        ]
        for i in {0, 1, len(value) - 1} & set(range(len(value))):
            found += [(*value[:i], m, *value[i + 1 :]) for m in mutants(value[i])]
    else:
        found = []
    return list({repr(m): m for m in found if repr(m) != repr(value)}.values())


def outcome(function, *args):
    """What a call returns, as a list, and what it raises."""
    try:
        with np.errstate(all="ignore"):
            found = function(*args)
    except Exception as error:
        return None, error
    return list(found) if isinstance(found, tuple) else [found], None


def refuses_every_value(op, arrays, attributes):
    """Return whether the kernel refuses zeros and ones, too: not the values, then."""
    tries = [[new_tensor(np.full_like(a, n)) for a in arrays] for n in (0, 1)]
    return all([outcome(op.run, each, attributes)[1] is not None for each in tries])


def disagreement(op, arrays, attributes):
    """What kernel and shape rule say about a call, if it is not the same; else None."""
    results, error = outcome(op.run, [new_tensor(a.copy()) for a in arrays], attributes)
    specs = [TensorSpec(a.shape, a.dtype) for a in arrays]
    inferred, refusal = outcome(op.output_specs, specs, attributes)
    if refusal is not None:
        fits = error is not None and isinstance(refusal, REFUSALS)
        return None if fits else f"{refusal!r}, the kernel {error or results!r}"
    if error is not None:
        # a wrong index, say, which no shape tells
        of_values = op.may_raise and (
            "must" in str(error) or not refuses_every_value(op, arrays, attributes)
        )
        return None if of_values else f"{inferred}, the kernel {error!r}"
    fits = len(inferred) == len(results) and all(
        [s.is_compatible_with(r) for s, r in zip(inferred, results)]
    )
    return None if fits else f"{inferred}, the kernel {results!r}"


@pytest.mark.filterwarnings("ignore")
def test_kernels_and_shape_rules_agree_on_attributes_of_any_value(table, device):
    if device != "cpu":
        pytest.skip("tries the kernels of NumPy")
    wrong, tried = [], 0
    for op, calls in calls_of_kernels(table).items():
        if not op.is_own:
            continue
        for arrays, attributes in calls:
            for name, value in attributes.items():
                for mutant in mutants(value):
                    tried += 1
                    found = disagreement(op, arrays, {**attributes, name: mutant})
                    if found is not None:
                        shapes = [a.shape for a in arrays]
                        wrong.append(f"{op.name}{shapes} {name}={mutant!r}: {found}")
    assert tried > 10000
    assert not wrong, f"{len(wrong)} calls, such as\n" + "\n".join(wrong[:20])
