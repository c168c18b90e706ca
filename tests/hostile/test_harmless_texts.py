"""No text of a file becomes code, reaches a terminal as it is, or fills a page."""

import ast
import builtins
import json
import re

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.core.errors import printable
from tapewright.storage.checksum import seal

STEERING = "\x1b]0;title\x07\x1b[2J"
NAMES = [
    "class",
    '"); import os #',
    "__import__('os').system('x')",
    "\\",
    "{0.__class__}",
    "\N{LATIN SMALL LIGATURE FI}",
    "np",
    "b0",
    "",
]


class Program(tw.Module):
    """Branches, loops, a gradient of its own, constants, a variable that changes."""

    def __init__(self):
        self.v = tw.Variable([[1.0, 2.0], [3.0, 4.0]])

    @tw.function(input_signature=[tw.TensorSpec([None, 2])])
    def __call__(self, x):
        @tw.custom_gradient
        def clip(x):
            return tw.identity(x), lambda g: tw.clip_by_norm(g, 0.5)

        y = tw.transpose(clip(x) @ self.v)[:, ::-1]
        y = tw.cond(tw.reduce_sum(y) > 0, lambda: y + 1.0, lambda: y)
        y = tw.while_loop(lambda y: tw.reduce_max(y) < 50.0, lambda y: [y * 2.0], [y])[
            0
        ]
        self.v.assign_add(self.v * 0.5)
        return tw.concat([y, tw.nn.softmax(y, axis=0)], axis=0)


def changed(path, change):
    """Changes every JSON text of a file, and seals it."""
    with h5py.File(path, "r+") as file:

        def visit(item):
            for key, value in item.attrs.items():
                if isinstance(value, str) and value[:1] in "[{":
                    item.attrs[key] = json.dumps(change(key, json.loads(value)))

        visit(file)
        file.visititems(lambda _, item: visit(item))
    seal(path)


def renamed(form, name):
    """A graph with another name wherever a file may choose it."""
    if isinstance(form, list):
        return [renamed(each, name) for each in form]
    if not isinstance(form, dict):
        return form
    form = {key: renamed(each, name) for key, each in form.items()}
    for key in {"name", "custom", "line"} & form.keys():
        form[key] = name
    if "inputs" in form:
        form["inputs"] = [[*each[:2], name] for each in form["inputs"]]
    for key in {"cond", "loop"} & form.keys():
        form[key] = "lambda"  # an identifier, as `str.isidentifier` has it
    return form


def sources_of_calls(path, monkeypatch):
    """The sources of executables that loading, calling and differentiating compile."""
    found, real = [], builtins.compile

    def compile(source, filename, *args, **kwargs):
        if str(filename)[:1] == "<":  # else it is the rules of an op, which no file has
            found.append(source)
        return real(source, filename, *args, **kwargs)

    monkeypatch.setattr(builtins, "compile", compile)
    program = tw.saved_model.load(path)
    x = tw.constant([[1.0, 2.0]])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = program(x)
    gradient = tape.gradient(y, x)
    program(x)
    monkeypatch.undo()
    return found, [y.numpy(), gradient.numpy()]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_a_file_change_nothing_in_the_source_of_executables(
    name, tmp_path, monkeypatch
):
    path = str(tmp_path / "program")
    tw.saved_model.save(Program(), path)
    plain, values = sources_of_calls(path, monkeypatch)
    changed(path, lambda key, x: renamed(x, name) if key == "graph" else x)
    sources, others = sources_of_calls(path, monkeypatch)

    def bodies(sources):
        return [re.sub(r"^def \w+\(", "def f(", each) for each in sources]

    assert len(plain) > 5
    assert bodies(sources) == bodies(plain)
    for value, other in zip(values, others, strict=True):
        np.testing.assert_array_equal(value, other)


def test_the_source_of_executables_has_no_texts_and_imports_nothing(
    tmp_path, monkeypatch
):
    path = str(tmp_path / "program")
    tw.saved_model.save(Program(), path)
    for source in sources_of_calls(path, monkeypatch)[0]:
        for node in ast.walk(ast.parse(source)):
            assert not isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr))
            if isinstance(node, ast.Constant):
                assert not isinstance(node.value, (str, bytes))


@pytest.mark.parametrize(
    "name", ["class", "None", "a b", "", "\N{GREEK SMALL LETTER PI}"]
)
def test_a_function_of_any_name_can_be_compiled(name):
    def double(x):
        return x * 2.0

    double.__name__ = name
    assert float(tw.function(double)(tw.constant(2.0))) == 4.0


def test_what_a_file_prints_cannot_steer_the_terminal(tmp_path, capsys):
    class Printing(tw.Module):
        @tw.function(input_signature=[tw.TensorSpec([])])
        def __call__(self, x):
            tw.print(f"{STEERING}\n", {"a": (STEERING,)}, x)
            return x

    tw.saved_model.save(Printing(), tmp_path / "printing")
    loaded = tw.saved_model.load(tmp_path / "printing")
    loaded(tw.constant(1.0))
    written = capsys.readouterr().err
    assert "\x1b" not in written and "\x07" not in written
    assert "\\x1b]0;title\\x07" in written and written.count("\n") == 2


def test_what_a_file_asserts_cannot_steer_the_terminal(tmp_path):
    class Asserting(tw.Module):
        @tw.function(input_signature=[tw.TensorSpec([])])
        def __call__(self, x):
            tw.debugging.Assert(x > 0, [STEERING, x])
            return x

    tw.saved_model.save(Asserting(), tmp_path / "asserting")
    loaded = tw.saved_model.load(tmp_path / "asserting")
    with pytest.raises(ValueError) as caught:
        loaded(tw.constant(-1.0))
    assert "\x1b" not in str(caught.value) and "title" in str(caught.value)


def test_a_variable_of_any_name_is_shown_in_one_harmless_line():
    shown = repr(tw.Variable(1.0, name=f"{STEERING}\n"))
    assert printable(shown) == shown


def test_an_error_cannot_steer_the_terminal():
    error = tw.errors.SavingError(
        "a.h5", f"is not {STEERING}\nas it was", f"/{STEERING}"
    )
    assert "\x1b" not in str(error)
    assert "\nas it was" in str(error)
    assert error.dataset == f"/{STEERING}"


def test_an_error_has_a_page_at_most():
    error = tw.errors.SavingError("a.h5", "x" * 10**6, "/" + "y" * 10**6)
    assert len(str(error)) < 6000
    assert len(error.reason) == 10**6
