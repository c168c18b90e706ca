"""The examples in docstrings of ops print the output that they show.

A primitive is a closure made elsewhere, so that doctest does not see it as part of the
module that defines it; this test looks up each one by name.
"""

import doctest
import importlib
import pkgutil

import tapewright as tw
from tapewright import keras, ops, random


def public():
    """``(module, name)`` of everything that a file of the ops lists."""
    for each in pkgutil.walk_packages(ops.__path__, "tapewright.ops."):
        module = importlib.import_module(each.name)
        own = [n for n, x in vars(module).items() if is_function_of(x, module)]
        yield from ((module, name) for name in getattr(module, "__all__", own))


def is_function_of(value, module):
    is_own = getattr(value, "__module__", None) == module.__name__
    return is_own and callable(value) and value.__doc__


def test_every_public_op_is_documented_by_examples_that_are_true():
    report = []
    runner = doctest.DocTestRunner(verbose=False)
    for module, name in public():
        text = getattr(module, name).__doc__
        if not text:
            report.append(f"{module.__name__}.{name} has no docstring\n")
            continue
        imported = {"tw": tw, "keras": keras, "__name__": "__main__"}
        example = doctest.DocTestParser().get_doctest(
            text, imported, f"{module.__name__}.{name}", None, 0
        )
        random.set_seed(0)  # whichever examples come before
        runner.run(example, out=report.append)
    assert not report, "".join(report)
