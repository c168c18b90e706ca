"""The examples in the docstrings of the ops give what they show.

A primitive is a closure made elsewhere, so that doctest does not see it as part of the
module that defines it; here each is asked for by name.
"""

import doctest
import inspect

import pytest

from tapewright import ops

PUBLIC = [
    pytest.param(module, name, id=f"{family}.{name}")
    for family, module in inspect.getmembers(ops, inspect.ismodule)
    for name in module.__all__
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
