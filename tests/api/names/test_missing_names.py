"""A name that is not here says what to use instead, or that it is not planned."""

import re
from types import ModuleType

import pytest

import tapewright as tw
from tapewright.api.names.missing_names import ADVICE, known_names

from ...reference import count_names


def found(path, start=tw):
    for part in path.split("."):
        start = getattr(start, part)
    return start


@pytest.mark.parametrize(
    "path, end",
    [
        ("lite", "'tapewright' has no attribute 'lite': tf.lite is not planned"),
        ("raw_ops.MatMul", "'tapewright.raw_ops' has no attribute 'MatMul': instead of "
         "tf.raw_ops.MatMul, use the public function"),
        ("lookup.experimental", ": instead of tf.lookup.experimental, use "
         "tw.lookup.StaticHashTable, or a Python dict"),
        ("keras.optimizers.legacy", ": instead of keras.optimizers.legacy, use "
         "tw.keras.optimizers"),
        ("linalg.LinearOperatorToeplitz", ": TensorFlow has "
         "tf.linalg.LinearOperatorToeplitz; tapewright does not"),
        ("trian", "'tapewright' has no attribute 'trian'. Did you mean 'train'?"),
        ("keras.ops.resape", ". Did you mean 'reshape'?"),
        ("losses.quibble", "'tapewright.keras.losses' has no attribute 'quibble'"),
    ],
)  # fmt: skip
def test_the_error_gives_the_reason_in_one_line(path, end):
    with pytest.raises(AttributeError) as error:
        found(path)
    assert str(error.value).endswith(end) and "\n" not in str(error.value)
    assert error.value.obj is None  # Python adds no guess of its own


def test_every_namespace_gives_reasons():
    silent = []
    for space in known_names():
        try:
            module = found(space.removeprefix("tf").removeprefix(".") or "math", tw)
        except AttributeError:
            continue
        longest = max([n for n in dir(module) if n[0] != "_"], key=len)
        with pytest.raises(AttributeError) as error:
            getattr(module, f"{longest}s")
        if isinstance(module, ModuleType) and f"Did you mean '{longest}'" not in str(
            error.value
        ):
            silent.append(space)
    assert silent == []


def test_what_is_advised_is_there():
    for _, names, advice in ADVICE:
        for path in re.findall(r"\btw((?:\.\w+)+)", advice):
            assert found(path[1:]) is not None, names


def test_advice_is_about_names_of_tensorflow_and_keras_that_are_lacking():
    known = known_names()
    for namespaces, names, _ in ADVICE:
        for namespace in namespaces.split():
            assert set(names.split()) <= set(known[namespace]), (namespace, names)
            place = namespace.removeprefix("tf").removeprefix(".")
            for name in names.split():
                with pytest.raises(AttributeError):
                    found(f"{place}.{name}".removeprefix("."), tw)


def test_an_import_statement_stays_an_import_error():
    with pytest.raises(ImportError, match="cannot import name 'lite'"):
        from tapewright import lite  # noqa: F401


def test_the_counts_of_the_page_are_those_of_the_names():
    page = count_names.PAGE.read_text(encoding="utf-8")
    assert count_names.with_counts(page) == page, "run tests/reference/count_names.py"
    assert count_names.count(["tf.data.Dataset"]) == (48, 49)
