"""Results that are kept on disk are those that would be computed again."""

import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.compiler.fuzzing import checking, generating

import tapewright as tw
from tapewright import config
from tapewright.compiler.loops.statements import (
    Access,
    Axis,
    Compute,
    Loop,
    Scalar,
    Span,
    Store,
    structure_of,
)
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.targets.native import segments
from tapewright.compiler.targets.native.jit import recall
from tapewright.compiler.targets.native.products import contractions

pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def native(monkeypatch, tmp_path):
    monkeypatch.setenv("TAPEWRIGHT_CACHE", str(tmp_path))
    with config.use_target("native"):
        yield


def counted():
    """A function that returns how often it was called."""
    calls = []

    def made():
        calls.append(None)
        return len(calls), -0.0

    return made


def test_a_result_is_made_once():
    make = counted()
    assert [recall.recall(make, "x", 1) for _ in range(3)] == [(1, 0.0)] * 3


@pytest.mark.parametrize("other", [("x", 2), ("x", 1.0), ("x", True), ("y", 1), ("x",)])
def test_another_key_is_another_result(other):
    make = counted()
    assert recall.recall(make, "x", 1)[0] == 1
    assert recall.recall(make, *other)[0] == 2


def test_another_cpu_or_source_is_another_result(monkeypatch):
    make, found = counted(), []
    found.append(recall.recall(make, "x"))
    monkeypatch.setattr(recall.engine, "vector_registers", lambda: (16, 7))
    found.append(recall.recall(make, "x"))
    monkeypatch.setattr(recall, "SOURCE", "changed")
    found.append(recall.recall(make, "x"))
    assert [n for n, _ in found] == [1, 2, 3]


def test_a_damaged_file_is_made_again(tmp_path):
    make = counted()
    recall.recall(make, "x")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert recall.recall(make, "x")[0] == 2


def test_without_a_cache_results_are_made_each_time(monkeypatch):
    monkeypatch.setenv("TAPEWRIGHT_CACHE", "0")
    make = counted()
    assert [recall.recall(make, "x")[0] for _ in range(2)] == [1, 2]


# --- kernels


@pytest.fixture
def seen(monkeypatch):
    """The results by key, each of which is made, and compared, each time."""
    found = {}

    def checked(make, *key):
        result = make()
        known = found.setdefault(repr(key), [])
        known.append(result)
        assert known[0] == result
        return result

    monkeypatch.setattr(segments, "recall", checked)
    monkeypatch.setattr(contractions, "recall", checked)
    contractions.recalled_schedules.cache_clear()
    yield found
    contractions.recalled_schedules.cache_clear()


def images(*shape):
    size = int(np.prod(shape))
    return tw.constant(np.linspace(-1, 1, size, dtype=np.float32).reshape(shape))


def step(x, k, y, stride=1):
    """A convolution, a sum, a view and the gradients."""
    with tw.GradientTape() as tape:
        tape.watch([x, k])
        z = tw.nn.relu(tw.nn.conv2d(x, k, stride, "SAME") + y)
        z = tw.nn.max_pool2d(z[:, 1:], 2, 2, "SAME")
        loss = tw.reduce_sum(z * tw.nn.softmax(z))
    return loss, tape.gradient(loss, [x, k])


ALIKE = [(np.nan, -np.nan), (0.0, -0.0), (1000.00006, 1000.00012)]


@pytest.mark.parametrize("values", ALIKE, ids=str)
def test_constants_that_print_alike_are_not_one(values):
    x = tw.constant([1.0, -1.0])
    with np.printoptions(legacy="1.13"):
        for value in np.array(values, np.float32):
            constant = tw.constant(value)
            choose = tw.function(lambda x, c=constant: tw.where(x > 0, x, c))
            assert choose(x).numpy()[1].tobytes() == value.tobytes()


ARRAY = object()


def described(extent=4, dtype="f4", value=1.0, offset=0, about="@0", name="i"):
    axis, x = Axis(name, extent), Scalar(name, np.dtype(dtype))
    access = Access(ARRAY, offset, ((axis, 1),))
    body = [Compute(x, "add", (x, Scalar(None, x.dtype, value))), Store(access, x)]
    return structure_of([Loop(axis, Span.WHOLE, 0, body)], {ARRAY: about})


def test_a_structure_shows_all_but_names():
    changes = {"extent": 5, "dtype": "f8", "value": 2.0, "offset": 1, "about": "@1"}
    texts = [described(), *[described(**{k: v}) for k, v in changes.items()]]
    assert len({*texts}) == 6 and described(name="j") == texts[0]


def test_programs_that_differ_in_one_respect_have_different_kernels(seen):
    k, x = images(3, 3, 4, 4), images(4, 6, 6, 4)
    for run in (
        lambda: tw.function(lambda x: tw.nn.conv2d(x[:3], k, 1, "SAME"))(x),
        lambda: tw.function(lambda x: tw.nn.conv2d(x[1:], k, 1, "SAME"))(x),
    ):
        run()


def test_kernels_for_other_limits_have_other_keys(seen):
    x, k, y = images(2, 16, 16, 4), images(3, 3, 4, 8), images(2, 16, 16, 8)
    for entries in (64, 128):
        with use_limits(summed_entries=entries, contraction_work=1 << 8):
            tw.function(step)(x, k, y)


def test_kernels_of_one_key_have_one_text(seen):
    for channels in (3, 8):
        for size in (7, 8, 8):
            for stride in (1, 2):
                x = images(2, size, size, channels)
                k = images(3, 3, channels, channels)
                tw.function(step)(x, k, images(channels), stride)
    assert any([len(each) > 1 for each in seen.values()])


@pytest.mark.parametrize("first", range(0, 45, 15))
def test_kernels_of_random_programs_of_one_key_have_one_text(seen, first):
    for number in range(first, first + 15):
        with contextlib.suppress(checking.Refusal):
            checking.check(generating.generate(2026, number).source())
    assert any([len(each) > 1 for each in seen.values()])


def test_another_process_writes_no_text_again(tmp_path):
    code = """
import tapewright as tw
from tapewright.compiler.targets.native import segments
written, kernel = [], segments._kernel
def noted(code, *args):
    written.append(type(code).__name__)
    return kernel(code, *args)
segments._kernel = noted
x, k = tw.ones([2, 8, 8, 4]), tw.ones([3, 3, 4, 4])
tw.function(lambda x, k: tw.reduce_sum(tw.nn.conv2d(x, k, 1, "SAME")))(x, k)
print(len(written))
"""
    env = os.environ | {"TAPEWRIGHT_TARGET": "native"}
    run = [sys.executable, "-c", code]
    counts = [int(subprocess.check_output(run, env=env)) for _ in range(2)]
    assert counts[0] > 0 == counts[1]
