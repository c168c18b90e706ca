"""The examples in the docstrings of the ops give what they show.

A primitive is a closure made elsewhere, so that doctest does not see it as part of the
module that defines it; here each is asked for by name.
"""

import doctest
import importlib
import pkgutil

import pytest

from tapewright import ops

PUBLIC = [
    pytest.param(module, name, id=f"{each.name.removeprefix(ops.__name__)[1:]}.{name}")
    for each in pkgutil.walk_packages(ops.__path__, "tapewright.ops.")
    for module in [importlib.import_module(each.name)]
    for name in getattr(module, "__all__", ())
]


@pytest.mark.parametrize("module, name", PUBLIC)
def test_every_public_op_is_documented_by_examples_that_are_true(module, name):
    text = getattr(module, name).__doc__
    assert text, "no docstring"
    example = doctest.DocTestParser().get_doctest(
        text, vars(module).copy(), name, None, 0
    )
    report = []
    doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert not report, "".join(report)
