"""`python -m tapewright run`: programs for TensorFlow run unchanged, without TensorFlow."""

import os
import re
import subprocess
import sys

import pytest

import tapewright as tw

from ...forks import Forks

BEFORE = """
import tapewright.keras
from tapewright.api.names.tensorflow_imports import answer_imports
answer_imports()
"""


@pytest.fixture(scope="module")
def forks():
    with Forks(BEFORE) as process:
        yield process


def run(folder, *arguments, **program):
    """Run ``python -m tapewright run`` in a folder with these files."""
    for name, text in program.items():
        (folder / f"{name}.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "tapewright", "run", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": ""},
    )


PROGRAM = """
import sys
import beside
import keras
import tensorflow as tf
from tensorflow.keras import layers

assert tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 4)
assert keras.__version__.startswith("3.") and tf.keras.__version__ == keras.__version__

@tf.function
def double(x):
    for _ in tf.range(2):
        x += x
    return x

print(double(tf.constant(1.0)).numpy(), layers.Dense.__module__)
print(__name__, sys.argv[1:], beside.name, "tensorflow" in __file__)
"""


@pytest.mark.parametrize(
    "arguments", [["tensorflow_program.py"], ["-m", "tensorflow_program"]]
)
def test_a_program_runs_unchanged(tmp_path, arguments):
    done = run(
        tmp_path,
        *arguments,
        "--epochs",
        "-m",
        tensorflow_program=PROGRAM,
        beside="import tensorflow as tf\nname = tf.__name__",
        keras="raise ImportError('the installed Keras is imported')",
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "4.0 tapewright.layers.core",
        "__main__ ['--epochs', '-m'] tensorflow True",
    ]


def test_an_error_is_shown_from_the_line_of_the_program(tmp_path):
    done = run(tmp_path, "wrong.py", wrong="def f():\n    1 / 0\n\nf()\n")
    assert done.returncode == 1
    first, *lines = done.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert lines[0].endswith('wrong.py", line 4, in <module>')
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_a_device_can_be_chosen(tmp_path):
    program = "import tensorflow as tf\nprint(tf.ones(1).device)"
    done = run(tmp_path, "--device", "CPU:0", "where.py", where=program)
    assert done.stdout == "/CPU:0\n"
    done = run(tmp_path, "--device", "XPU", "where.py")
    assert done.returncode == 1 and "XPU" in done.stderr.splitlines()[-1]


def test_the_exit_code_is_the_program_s(tmp_path):
    assert run(tmp_path, "ended.py", ended="raise SystemExit(3)").returncode == 3
    done = run(tmp_path, "nothing.py")
    assert (done.returncode, done.stderr) == (2, "there is no file 'nothing.py'\n")


SAME = """
import tapewright as tw
import tensorflow as tf
import tensorflow.keras.backend as K
from tensorflow.keras.layers import *
{code}
"""


@pytest.mark.parametrize(
    "code",
    [
        "import keras; assert tf.keras is keras and keras.backend is K",
        "import tensorflow.keras.layers as same; assert tf.keras.layers is same",
        "assert Dense is tw.keras.layers.Dense and 'Dense' in dir(tf.keras.layers)",
        "import tensorflow.compat.v2 as tf2; assert tf2.__version__ == '2.21.0'",
        "from tensorflow import keras; assert keras.Model is tw.keras.Model",
        "assert tf.version.VERSION == '2.21.0' and tw.version.VERSION != '2.21.0'",
        "import inspect; assert dict(inspect.getmembers(tf.keras.layers))['Dense'] is Dense",
        "import importlib.util as u; assert u.find_spec('tensorflow').name == 'tensorflow'",
        "assert K.backend() == tf.keras.config.backend() == 'tensorflow'",
        "from keras.api.models import Model; assert Model is tw.keras.Model",
        "from keras._tf_keras.keras.layers import Dense as D; assert D is Dense",
        "import keras._tf_keras; assert keras._tf_keras.keras is keras",
        "from keras.src.layers.core.dense import Dense as D; assert D is Dense",
        "from keras.src import Model; assert Model is tw.keras.Model",
        "from keras.src.applications.resnet import ResNet50",
        "from tensorflow.python.keras.engine.base_layer import Layer as L; assert L is Layer",
        "from tensorflow.python.keras.optimizer_v2.adam import Adam",
        "from tensorflow.python.keras import backend; backend.epsilon()",
        "from tensorflow.python.framework import dtypes, ops; ops.convert_to_tensor(1)",
        "from tensorflow.python.ops import math_ops as m; m.reduce_sum(m.cast([1], 'int64'))",
        "from tensorflow.python.ops import nn; assert nn.relu is tw.nn.relu",
        "from tensorflow.python.eager import context; assert context.executing_eagerly()",
        "from tensorflow.python.client import device_lib as d;"
        " assert d.list_local_devices()[0].device_type == 'CPU'",
        "from tensorflow.python.ops.numpy_ops import np_config as c;"
        " c.enable_numpy_behavior(); assert tw.ones([2, 3]).T.shape == [3, 2]",
        "from tensorflow.python.platform import gfile; assert gfile.GFile is tw.io.gfile.GFile",
        "from tensorflow.python.keras.optimizer_v2.learning_rate_schedule import"
        " LearningRateSchedule",
        "from tensorflow.python.keras.engine.input_layer import InputLayer",
        "from tensorflow.python.ops.array_ops import where_v2; assert where_v2 is tw.where",
        "from tensorflow.python.data.ops.dataset_ops import DatasetV2",
        "from tensorflow.python.framework.ops import disable_eager_execution",
        "from tensorflow.python.framework.ops import EagerTensor as T;"
        " assert isinstance(tf.constant(1), T) and not isinstance(tf.Variable(1), T);"
        " f = tf.function(lambda x: [isinstance(x, T)]); assert not f(tf.constant(1))[0]",
        "from tensorflow.python.framework import ops; x = ops.name_scope(None, 'a', [1]);"
        " assert x.__enter__() == 'a/'",
        "from tensorflow.python.framework.smart_cond import smart_cond;"
        " assert smart_cond(tf.constant(0), None, lambda: 'no') == 'no'",
        "from tensorflow.python.framework import tensor_shape as s, tensor_util as u;"
        " assert s.dimension_value(3) == u.constant_value(tf.constant(3)) == 3",
        "from tensorflow.python.ops import math_ops as m; m.div_no_nan(1.0, 0.0)",
        "from tensorflow.python.platform import tf_logging as v; v.set_verbosity(v.ERROR)",
        "from tensorflow.python.saved_model import tag_constants; tag_constants.SERVING",
        "from tensorflow.python.util import deprecation;"
        " deprecation._PRINT_DEPRECATION_WARNINGS = False",
    ],
)
def test_names_are_those_of_tapewright(forks, code):
    forks.output(SAME.format(code=code))


def test_all_private_modules_have_names(forks):
    forks.output(
        """
from importlib import import_module
from tapewright.api.names.tensorflow_imports import _PRIVATE
for _, names in _PRIVATE:
    for name in names.split():
        assert dir(import_module(f"tensorflow.python.{name}"))
"""
    )


@pytest.mark.parametrize(
    "code, text",
    [
        (
            "import tensorflow.contrib",
            "cannot import 'tensorflow.contrib': .*no attribute",
        ),
        ("from tensorflow.keras import layer", "Did you mean 'layers'"),
        ("from tensorflow.keras.layers import JaxLayer", "use tw.numpy_function"),
        ("from tensorflow.keras.layers import Dence", "Did you mean 'Dense'"),
        ("from keras.src.layers.core import Dence", "Did you mean 'Dense'"),
        ("import keras.src.trainers", "no attribute 'trainers'"),
        (
            "import keras.layers.Dense",
            "'Dense' of module 'tapewright.keras.layers' is no",
        ),
        ("from tensorflow.python.ops import no_ops", "it is private to TensorFlow"),
        ("import tensorflow as tf; tf.tpu", "tf.tpu is not planned"),
        (
            "import tensorflow as tf; tf.__file__",
            "'tensorflow' has no attribute '__file__'",
        ),
    ],
)
def test_a_missing_name_says_what_to_use_instead(forks, code, text):
    status, _, errors = forks.run(code)
    kind, _, message = errors.splitlines()[-1].partition(": ")
    assert (status, kind) in [(1, "ModuleNotFoundError"), (1, "AttributeError")]
    assert re.search(text, message)


def test_nothing_is_answered_without_it():
    assert not any(
        name.split(".")[0] in ("tensorflow", "keras") for name in sys.modules
    )
    assert tw.__version__ != "2.21.0"
