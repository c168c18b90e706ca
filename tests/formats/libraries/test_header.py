import collections
import shutil
import subprocess

import pytest

import tapewright as tw
from tapewright.compiler.function.outputs import output_names
from tapewright.formats.libraries.header import identifier_of, unique

from .libraries import compiled

Point = collections.namedtuple("Point", "left right")


def test_names_become_identifiers():
    names = "x", "a/b:0", "sequential/dense/kernel", "int", "2nd", "", "über", "index"
    assert [*map(identifier_of, names)] == [
        *("x", "a_b_0", "sequential_dense_kernel", "int_", "_2nd", "value"),
        *("ber", "index_"),
    ]


def test_names_differ_in_upper_case():
    assert unique(["x", "X", "y", "x_2", "x"]) == ["x", "X_2", "y", "x_2_2", "x_3"]


def test_outputs_are_named_after_the_structure():
    assert output_names(0, 1, "y") == ["y"]
    assert output_names([0, 1], 2, "y") == ["y_0", "y_1"]
    assert output_names({"a": 0, "b": [1, {"c": 2}]}, 3, "y") == ["a", "b_0", "b_1_c"]
    assert output_names(Point(0, None), 1, "y") == ["left"]
    assert output_names((), 1, "y") == ["y_0"]
    assert output_names([[0, 1], 2], 3, "y") == ["y_0_0", "y_0_1", "y_1"]
    assert output_names(0, 1, "result") == ["result"]
    assert output_names([0, 1], 2, "result") == ["result_0", "result_1"]


def test_a_result_beside_an_input_y_has_another_name(tmp_path):
    spec = tw.TensorSpec([2])
    tw.export_library(tw.function(lambda x, y: x + y), [spec, spec], tmp_path / "sum.o")
    assert "const float *y, float *result" in (tmp_path / "sum.h").read_text()


def header(folder):
    """Write the header of a training step whose names are hostile; return its path."""
    v = tw.Variable([1.0, 2.0], name="*/ int bad;")

    def step(double, threads):
        v.assign_add(double)
        return {"class": tw.gather(v, threads), "*/": v * 1}

    step.__name__ = "*/ int worse;"
    specs = [tw.TensorSpec([2]), tw.TensorSpec([3], tw.int64)]
    tw.export_library(tw.function(step), specs, folder / "step.o", name="step")
    return folder / "step.h"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize("standard", ["c99", "c11"])
def test_a_header_is_c(standard, tmp_path):
    header(tmp_path)
    calls = "step_init(0); step_free(); return STEP_VARIABLE_INT_BAD + STEP_OK;"
    text = f'#include "step.h"\n#include "step.h"\nint main(void) {{ {calls} }}\n'
    (tmp_path / "main.c").write_text(text)
    program = compiled("main.c", tmp_path, "step.o", standard=standard)
    assert subprocess.run([program]).returncode == 0


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_a_header_is_cpp(tmp_path):
    header(tmp_path)
    call = "double x[1]; return step_get(STEP_VARIABLE_INT_BAD, x) - STEP_NOT_READY;"
    (tmp_path / "main.cpp").write_text(
        f'#include "step.h"\nint main() {{ {call} }}\n', "utf-8"
    )
    program = compiled("main.cpp", tmp_path, "step.o", compiler="g++", standard="c++11")
    assert subprocess.run([program]).returncode == 0


def test_sizes_and_types_are_listed(tmp_path):
    text = header(tmp_path).read_text("utf-8")
    assert "#define STEP_DOUBLE__SIZE 2 /* float double_[2] */" in text
    assert "#define STEP_THREADS__SIZE 3 /* int64_t threads_[3] */" in text
    assert "const float *double_, const int64_t *threads_" in text
    assert "int step_set(int index, const void *from);" in text
