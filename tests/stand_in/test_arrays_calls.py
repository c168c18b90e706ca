"""Each call ``xp.f(...)`` in the source is one that CuPy takes: the name, the arguments.

Kernels for NumPy alone (``kernel_for("numpy")``, ``kernel_for("formulas")``) are passed over.
"""

import ast
import re
from pathlib import Path

import pytest

cupy = pytest.importorskip("cupy")

from .arrays import AVOIDED, signature_of  # noqa: E402

ROOT = Path(__file__).parents[2]
FOLDERS = ("framework", "layers", "optimizers")
UFUNC_KEYWORDS = {"out", "dtype", "casting"}


def calls_of(tree):
    """The calls of attributes of ``xp``, and their dotted names."""
    if isinstance(tree, ast.FunctionDef) and any(
        map(_is_for_numpy, tree.decorator_list)
    ):
        return
    if isinstance(tree, ast.Call) and (name := _name_below_xp(tree.func)):
        yield name, tree
    for child in ast.iter_child_nodes(tree):
        yield from calls_of(child)


def _is_for_numpy(decorator):
    text = ast.unparse(decorator)
    return text.endswith(("kernel_for('numpy')", "kernel_for('formulas')"))


def _name_below_xp(function):
    names = []
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    is_xp = isinstance(function, ast.Name) and function.id == "xp"
    return ".".join(reversed(names)) if is_xp else ""


def found():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not re.search(r"\bxp\b", text):
                continue
            for name, call in calls_of(ast.parse(text)):
                yield f"{path.relative_to(ROOT)}:{call.lineno}: xp.{name}", name, call


def why_rejected(name, call):
    """Why CuPy rejects a call, or an empty string."""
    if name.partition(".")[0] in AVOIDED:
        return "is for no op"
    function = cupy
    for part in name.split("."):
        if not hasattr(function, part):
            return "does not exist"
        function = getattr(function, part)
    named = {k.arg for k in call.keywords} - {None}
    if isinstance(function, cupy.ufunc):
        return f"takes no {named - UFUNC_KEYWORDS}" if named - UFUNC_KEYWORDS else ""
    if any([isinstance(a, ast.Starred) for a in call.args]) or None in [
        k.arg for k in call.keywords
    ]:
        return ""  # known when it is called
    if isinstance(function, type) or name.startswith("cuda."):
        return ""
    try:
        signature_of(function).bind(*call.args, **dict.fromkeys(named))
    except TypeError as error:
        return str(error)
    return ""


def test_every_call_in_the_source_is_one_that_cupy_takes():
    calls = list(found())
    assert len(calls) > 500
    rejected = [(at, why_rejected(name, call)) for at, name, call in calls]
    assert not [f"{at} {why}" for at, why in rejected if why]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("xp.block([x])", "does not exist"),
        ("xp.linalg.svd(x, hermitian=True)", "hermitian"),
        ("xp.clip(x, 0)", "a_max"),
        ("xp.add(x, y, where=m)", "where"),
        ("xp.random.normal(x)", "no op"),
    ],
)
def test_a_call_that_cupy_does_not_take_is_found(text, why):
    ((name, call),) = calls_of(ast.parse(text))
    assert why in why_rejected(name, call)


def test_kernels_for_numpy_are_passed_over():
    assert not list(
        calls_of(ast.parse("@f.kernel_for('numpy')\ndef _(xp): xp.block()"))
    )
