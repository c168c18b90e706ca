"""Redirect imports of TensorFlow and Keras to tapewright, for ``python -m tapewright run``.

`answer_imports` puts a finder in front of Python's. For each ``tensorflow....`` and
``keras....`` that a program imports it creates a module with the names of one or more
namespaces of tapewright. Neither library is imported, whether it is installed or not.
"""

import re
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from itertools import product
from types import ModuleType

from tapewright.compiler.control_flow.cond import cond
from tapewright.core.tensor import Tensor
from tapewright.ops.array.sizes import get_static_value

from .. import config

TENSORFLOW_VERSION = "2.21.0"  # of the TensorFlow whose names these are


class _EagerTensors(type):
    def __instancecheck__(cls, x):
        return type(x) is Tensor  # those of a trace are of another class


class _EagerTensor(metaclass=_EagerTensors):
    """Type of TensorFlow's tensors that have a value, for ``isinstance``."""


def _itself(x):
    return x


def _smart_cond(pred, true_fn=None, false_fn=None, name=None):
    """Call one of two functions, by `cond` if the condition is a tensor without a value."""
    known = get_static_value(pred)
    if known is None:
        return cond(pred, true_fn, false_fn)
    return true_fn() if known else false_fn()


def _enable_numpy_behavior(*args, **kwargs):
    numpy = import_module("tapewright.experimental.numpy")
    numpy.experimental_enable_numpy_behavior(*args, **kwargs)


# names with another value than in tapewright
_OWN = {
    "tensorflow": {"__version__": TENSORFLOW_VERSION},
    "tensorflow.version": {"VERSION": TENSORFLOW_VERSION},
    "tensorflow.python.client.device_lib": {
        "list_local_devices": config.list_logical_devices
    },
    "tensorflow.python.framework.ops": {"EagerTensor": _EagerTensor},
    "tensorflow.python.framework.smart_cond": {"smart_cond": _smart_cond},
    "tensorflow.python.framework.tensor_shape": {"dimension_value": _itself},
    "tensorflow.python.ops.numpy_ops.np_config": {
        "enable_numpy_behavior": _enable_numpy_behavior
    },
    "tensorflow.python.util.deprecation": {"_PRINT_DEPRECATION_WARNINGS": True},
    "keras.backend": {"backend": lambda: "tensorflow"},  # code for it runs here
    "keras.config": {"backend": lambda: "tensorflow"},
}
# module of TensorFlow -> private name: the path of the public one; all others are public
# names, or those with "_v2" or "V2" behind them
_PUBLIC = {
    "framework.ops": {"name_scope": "compat.v1.name_scope"},
    "framework.tensor_shape": {"as_shape": "TensorShape"},
    "framework.tensor_util": {
        "MakeNdarray": "make_ndarray",
        "constant_value": "get_static_value",
        "is_tf_type": "is_tensor",
    },
    "ops.array_ops": {
        "check_numerics": "debugging.check_numerics",
        "depth_to_space": "nn.depth_to_space",
        "matrix_diag": "linalg.diag",
        "matrix_transpose": "linalg.matrix_transpose",
        "space_to_depth": "nn.space_to_depth",
    },
    "ops.math_ops": {"div_no_nan": "math.divide_no_nan", "mat_mul": "linalg.matmul"},
}
_SYNONYMS = (
    ("tensorflow.compat.v2", "tensorflow"),
    ("tensorflow.keras", "keras"),
    ("tensorflow.python.keras", "keras.src"),
    ("keras.api", "keras"),
    ("keras._tf_keras", "tensorflow"),  # editors import from keras._tf_keras.keras
)
# (namespace, private modules of TensorFlow whose public names are there or at the top)
_PRIVATE = (
    ("", "client.device_lib eager.backprop eager.context eager.def_function"),
    (
        "",
        "framework.constant_op framework.dtypes framework.indexed_slices framework.ops",
    ),
    ("", "framework.sparse_tensor framework.tensor framework.tensor_conversion"),
    ("", "framework.smart_cond framework.tensor_shape framework.tensor_spec"),
    ("", "framework.tensor_util util.deprecation"),
    ("", "module.module ops.array_ops ops.array_ops_stack ops.clip_ops ops.cond"),
    (
        "",
        "ops.control_flow_ops ops.custom_gradient ops.functional_ops ops.gen_array_ops",
    ),
    ("", "ops.gradients ops.gradients_impl ops.init_ops_v2 ops.logging_ops ops.map_fn"),
    ("", "ops.script_ops ops.standard_ops ops.state_ops ops.tensor_array_ops"),
    ("", "ops.unconnected_gradients ops.variables ops.while_loop"),
    ("autograph", "autograph.autograph autograph.impl.api"),
    ("bitwise", "ops.bitwise_ops"),
    ("compat", "util.compat"),
    ("compat.v1", "client.session"),
    ("compat.v1.logging", "platform.tf_logging"),
    ("config", "framework.config"),
    ("data", "data.ops.dataset_ops data.ops.iterator_ops data.ops.readers"),
    ("debugging", "ops.check_ops ops.numerics"),
    ("distribute", "distribute.distribute_lib distribute.mirrored_strategy"),
    ("errors", "framework.errors framework.errors_impl"),
    ("experimental.numpy", "ops.numpy_ops ops.numpy_ops.np_config"),
    ("image", "ops.gen_image_ops ops.image_ops ops.image_ops_impl"),
    ("io", "lib.io.tf_record ops.io_ops ops.parsing_ops"),
    ("io.gfile", "lib.io.file_io platform.gfile"),
    ("linalg", "ops.linalg.linalg ops.linalg.linalg_impl ops.linalg_ops"),
    ("lookup", "ops.lookup_ops"),
    ("math", "ops.confusion_matrix ops.gen_math_ops ops.math_ops ops.special_math_ops"),
    ("nest", "data.util.nest util.nest"),
    (
        "nn",
        "ops.ctc_ops ops.embedding_ops ops.gen_nn_ops ops.nn ops.nn_impl ops.nn_ops",
    ),
    ("ragged", "ops.ragged.ragged_factory_ops ops.ragged.ragged_tensor"),
    ("random", "framework.random_seed ops.random_ops ops.stateless_random_ops"),
    ("saved_model", "saved_model.load saved_model.save saved_model.saved_model"),
    ("saved_model", "saved_model.signature_constants saved_model.tag_constants"),
    ("signal", "ops.signal.fft_ops ops.signal.signal ops.signal.window_ops"),
    ("sparse", "ops.sparse_ops"),
    ("strings", "ops.gen_string_ops ops.string_ops"),
    ("summary", "ops.summary_ops_v2 summary.summary"),
    ("test", "platform.test"),
    ("train", "checkpoint.checkpoint checkpoint.checkpoint_management"),
    (
        "train",
        "training.checkpoint_management training.tracking.util training.training",
    ),
)
# folders of private Keras whose classes are public in another namespace
_PRIVATE_KERAS = {
    "engine": ("keras", "keras.layers"),
    "optimizer_v2": ("keras.optimizers", "keras.optimizers.schedules"),
}


def answer_imports() -> None:
    """Redirect ``import tensorflow``, ``import keras`` and their submodules from now on.

    Private modules of TensorFlow and Keras have the names that are public elsewhere. A
    missing module or name raises an `ImportError` that names the replacement.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finder and loader of these modules; without base classes, which import slowly."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in ("tensorflow", "keras"):
            return None
        spec = ModuleSpec(fullname, self, origin="tapewright", is_package=True)
        try:
            spec.loader_state = _namespaces(_resolve(fullname))
        except AttributeError as error:
            raise ModuleNotFoundError(f"cannot import {fullname!r}: {error}") from None
        return spec

    def create_module(self, spec):
        return _Answer(spec.name, spec.loader_state)

    def exec_module(self, module):
        name = _resolve(module.__name__)
        if name != module.__name__:  # both names give one module
            sys.modules[module.__name__] = import_module(name)
        vars(module).update(_OWN.get(name, {}))


class _Answer(ModuleType):
    """Module with the names of namespaces of tapewright; the first has precedence."""

    def __init__(self, name, spaces):
        super().__init__(name)
        self._spaces = spaces

    def __getattr__(self, name):
        value = self._find(name)
        if isinstance(value, ModuleType):  # the same as by an import statement
            value = import_module(f"{self.__name__}.{name}")
        vars(self)[name] = value  # found at once the next time
        return value

    def _find(self, name):
        spaces = self._spaces if _is_public(name) else ()
        private = self.__name__.partition("tensorflow.python.")[2]
        if private:
            path = _PUBLIC.get(private, {}).get(name)
            if path is not None:
                space, _, public = path.rpartition(".")
                return getattr(_namespace(space), public)
        names = name, re.sub("_?[vV]2$", "", name) if private else name
        for space, public in product(spaces, dict.fromkeys(names)):
            if hasattr(space, public):
                return getattr(space, public)
        if spaces:
            return getattr(spaces[0], name)  # the error says what to use instead
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self):
        theirs = (name for space in self._spaces for name in dir(space))
        return sorted({*vars(self), *filter(_is_public, theirs)})


def _is_public(name):
    return name[:2] != "__" or name in ("__all__", "__version__")


def _resolve(fullname):
    """Return the first name of a module that has several."""
    for second, first in _SYNONYMS:
        if f"{fullname}.".startswith(f"{second}."):
            return _resolve(first + fullname.removeprefix(second))
    return fullname


def _namespaces(fullname):
    """Return the namespaces of tapewright that have the names of a module."""
    for library, find in (
        ("tensorflow.python", _private),
        ("keras.src", _private_keras),
    ):
        if f"{fullname}.".startswith(f"{library}."):
            path = fullname.removeprefix(library)[1:]
            return tuple(map(_namespace, find(path)))
    return (_namespace(fullname.removeprefix("tensorflow").lstrip(".")),)


def _namespace(path):
    """Return a namespace of tapewright by its path, "" for the top level."""
    namespace = import_module("tapewright")
    for name in filter(None, path.split(".")):
        value = getattr(namespace, name)
        if not isinstance(value, ModuleType):
            raise AttributeError(
                f"{name!r} of module {namespace.__name__!r} is not a module"
            )
        namespace = value
    return namespace


def _private(path):
    """Return the paths of namespaces with the public names of ``tensorflow.python.PATH``."""
    listed = {name: space for space, names in _PRIVATE for name in names.split()}
    if path in listed:
        return dict.fromkeys((listed[path], "", "compat.v1"))
    if not path or any(name.startswith(f"{path}.") for name in listed):
        return ()  # a folder
    raise AttributeError(
        "it is private to TensorFlow; use a public module of tensorflow"
    )


def _private_keras(path):
    """Return the paths of namespaces with the public names of ``keras.src.PATH``.

    The names of ``layers.core.dense``, for example, are in ``keras.layers``. File names
    are lower-case, and ignored.
    """
    folder, *files = path.split(".")
    space, *more = _PRIVATE_KERAS.get(folder, (f"keras.{folder}".rstrip("."),))
    for name in files:
        try:
            _namespace(f"{space}.{name}")
        except AttributeError:
            if not name.islower():
                raise
        else:
            space = f"{space}.{name}"
    return dict.fromkeys((space, *more, "keras"))
