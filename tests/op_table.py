"""The op table: the lines of ``CASES`` in the test modules of ``ops``, and their gradients.

The modules are imported under the names that pytest gives them: each is executed once,
whether its own tests or those of the whole table come first.
"""

import functools
import importlib
from pathlib import Path

import numpy as np

import tapewright as tw

HERE = Path(__file__).parent


@functools.cache
def op_table():
    """All cases, in the order of the files."""
    found = []
    for path in sorted((HERE / "ops").rglob("test_*.py")):
        name = ".".join(path.relative_to(HERE).with_suffix("").parts)
        module = importlib.import_module(f".{name}", __package__)
        found.extend(getattr(module, "CASES", ()))
    return found


def floating(x):
    return x.dtype.is_differentiable


def with_gradients(case, seed=1):
    """The case as a function of its inputs and, where it has gradients, of cotangents."""
    flat = () if case.primitive is None else case.primitive.non_differentiable
    names = case.primitive.names(case.inputs) if case.primitive else case.inputs
    steep = [i for i, n in enumerate(names) if not isinstance(n, str) or n not in flat]

    def run(*inputs):
        rng = np.random.default_rng(seed)
        sources = [inputs[i] for i in steep if floating(inputs[i])]
        with tw.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            outputs = case(*inputs)
            outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        targets = [out for out in outputs if floating(out)]
        if not (case.order and sources and targets):
            return outputs
        seeds = [
            tw.constant(rng.uniform(0.5, 1.5, out.shape), out.dtype) for out in targets
        ]
        found = tape.gradient(targets, sources, output_gradients=seeds)
        return outputs + [tw.convert_to_tensor(g) for g in found if g is not None]

    return run
