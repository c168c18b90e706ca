"""The examples in the docstrings of the ops give what they show.

A primitive is a closure made elsewhere, so that doctest does not see it as part of the
module that defines it; here each is asked for by name.
"""

import doctest
import importlib
import pkgutil

from tapewright import ops, random


def public():
    """``(module, name)`` of everything that a file of the ops lists."""
    for each in pkgutil.walk_packages(ops.__path__, "tapewright.ops."):
        module = importlib.import_module(each.name)
        yield from ((module, name) for name in getattr(module, "__all__", ()))


def test_every_public_op_is_documented_by_examples_that_are_true():
    report = []
    runner = doctest.DocTestRunner(verbose=False)
    for module, name in public():
        text = getattr(module, name).__doc__
        if not text:
            report.append(f"{module.__name__}.{name} has no docstring\n")
            continue
        example = doctest.DocTestParser().get_doctest(
            text, vars(module).copy(), f"{module.__name__}.{name}", None, 0
        )
        random.set_seed(0)  # whichever examples come before
        runner.run(example, out=report.append)
    assert not report, "".join(report)
