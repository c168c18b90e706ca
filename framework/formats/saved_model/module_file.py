"""`saved_model`: traced functions, variables and custom gradients of a `Module` in a file.

One sealed HDF5 file, which any reader of HDF5 can show: at the given path, or in the
folder that is there.

    format, version      attributes of the root: "tapewright saved_model", 1
    variables/0, 1...    arrays, with the attributes name and trainable
    functions/0, 1...    traced functions as graphs, see `functions`
    optimizers           attribute of the root, JSON: those that functions run, see
                         `saved_optimizers`
    objects              attribute of the root, JSON: modules, lists and dicts, with
                         functions, variables and optimizers by number

A loaded object needs no Python code of the saved one, except for optimizers of the user's
classes, which must be registered.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from tapewright.core.dtypes import kind_of
from tapewright.core.errors import SavingError
from tapewright.core.interpreters import check_not_traced
from tapewright.core.module import Module
from tapewright.core.source_lines import user_stacklevel
from tapewright.core.variable import Variable
from tapewright.core.variable import writing as held
from tapewright.storage.reader import check_format, is_format, opened
from tapewright.storage.suffixes import check_suffix
from tapewright.storage.writer import write_format, writing

from .functions import read_function, write_function
from .objects import ObjectReader, ObjectWriter
from .saved_optimizers import read_optimizers
from .signature_functions import as_signatures, call_of

__all__ = [
    "LoadOptions",
    "SERVING",
    "SaveOptions",
    "contains_saved_model",
    "load",
    "save",
]

FORMAT, VERSION = "tapewright saved_model", 1
MANY = 1_000_000
SERVING = "serve"
IN_FOLDER = "saved_model.h5"


class _Options:
    """Named settings; an unsupported one is refused."""

    used: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in self.used and value != field.default:
                raise ValueError(
                    f"{type(self).__name__}: {field.name} is not supported, got {value!r}"
                )


@dataclass
class SaveOptions(_Options):
    """Options of `save`.

    Args: ``experimental_custom_gradients``: also write custom gradients, as graphs. The
    others are TensorFlow's: ``save_debug_info`` has no effect, as lines are always
    saved; the rest must keep their defaults.

    Raises: ``ValueError`` for a setting that is not supported.
    """

    used: ClassVar[tuple[str, ...]] = (
        "save_debug_info",
        "experimental_custom_gradients",
    )
    namespace_whitelist: list[str] | None = None
    save_debug_info: bool = False
    function_aliases: dict[str, Any] | None = None
    experimental_debug_stripper: bool = False
    experimental_io_device: str | None = None
    experimental_variable_policy: str | None = None
    experimental_custom_gradients: bool = True
    experimental_image_format: bool = False
    experimental_skip_saver: bool = False
    experimental_sharding_callback: object = None
    extra_tags: list[str] | None = None


@dataclass
class LoadOptions(_Options):
    """Options of `load`: those of TensorFlow, all of which must keep their defaults.

    Raises: ``ValueError`` for another setting.
    """

    allow_partial_checkpoint: bool = False
    experimental_io_device: str | None = None
    experimental_skip_checkpoint: bool = False
    experimental_variable_policy: str | None = None
    experimental_load_function_aliases: bool = False


def save(
    obj: Any,
    export_dir: str | os.PathLike[str],
    signatures: Any = None,
    options: SaveOptions | None = None,
) -> None:
    """Write a module's traced functions and variables into one file at ``export_dir``.

    Of a folder that is there it is the file ``saved_model.h5``.

    Functions are attributes made by `function`: with an ``input_signature`` they are
    traced for all that it allows; others are kept for the kinds of arguments with which
    they were called. Gradients of `custom_gradient` are written as graphs (`SaveOptions`),
    and optimizers that functions run with their state, so that training can continue.
    ``signatures``: a function, or a dict of them by name, for ``loaded.signatures``. Of a
    Keras-style model whose inputs are known the call is written too, for inference.

    The file is written as a whole; after an error it is as before.

    Raises: `SavingError` (a ValueError and OSError) with the line of code that cannot be
    traced or kept, such as Python code that runs in each call; ``TypeError`` if ``obj`` is
    no `Module`; ``ValueError`` for the suffix of another format, such as ``.keras``.

    Example:
        >>> import tempfile, tapewright as tw
        >>> class Square(tw.Module):
        ...     @tw.function(input_signature=[tw.TensorSpec(None)])
        ...     def __call__(self, x):
        ...         return x * x
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tw.saved_model.save(Square(), folder + "/square")
        ...     square = tw.saved_model.load(folder + "/square")
        >>> square(tw.constant([1.0, 3.0])).numpy()
        array([1., 9.], dtype=float32)
    """
    path = _file_at(export_dir)
    check_suffix("saved_model.save", "export_dir", path, "functions in HDF5")
    if not isinstance(obj, Module):
        raise TypeError(
            f"saved_model.save: obj must be a tw.Module, got {type(obj).__name__}"
        )
    options = _checked(options, SaveOptions, "save")
    call = call_of(obj)
    tree = ObjectWriter(obj, as_signatures(obj, signatures, path, call), path, call)
    if tree.untraced:
        warnings.warn(
            f"saved_model.save leaves out functions: {'; '.join(tree.untraced)}",
            stacklevel=user_stacklevel(),
        )
    check_not_traced(path)
    with writing(path) as root:
        write_format(root, FORMAT, VERSION)
        gradients = options.experimental_custom_gradients
        for number, function in enumerate(tree.functions):
            group = root.group(f"functions/{number}")
            write_function(group, function, tree.variables, gradients, tree.optimizers)
        optimizers = tree.optimizers.form(tree.variables)
        with held(tree.variables):  # the values of one moment
            for number, variable in enumerate(tree.variables):
                _write_variable(root, number, variable)
        if optimizers:
            root.json("optimizers", optimizers)
        states = [n for each in optimizers for n in each.get("state", {}).values()]
        root.json("objects", tree.form(states))
        root.json("counts", [len(tree.variables), len(tree.functions)])


def load(
    export_dir: str | os.PathLike[str],
    tags: Any = None,
    options: LoadOptions | None = None,
) -> Any:
    """Load a file of `save`: an object with the same attributes.

    Its functions run the saved graphs, also under tapes and in other traced functions;
    its variables may be trained. No Python code is run or needed; but a call runs the
    saved graphs, whose use of time and memory the author of the file chose.

    Args: ``tags``: None or "serve".

    Raises: `SavingError` for a file that is not as `save` writes it (a
    ``FileNotFoundError`` if there is none); ``ValueError`` for other ``tags``.

    Example:
        >>> import tempfile, tapewright as tw
        >>> module = tw.Module()
        >>> module.weight = tw.Variable(3.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tw.saved_model.save(module, folder + "/module")
        ...     print(tw.saved_model.load(folder + "/module").weight.numpy())
        3.0
    """
    path = _file_at(export_dir)
    _checked(options, LoadOptions, "load")
    if tags is not None and [*([tags] if isinstance(tags, str) else tags)] != [SERVING]:
        raise ValueError(
            f"saved_model.load: tags must be None or 'serve', got {tags!r}"
        )
    with opened(path) as root:
        check_format(root, FORMAT, VERSION, "saved_model.save")
        counts = root.json("counts")
        fits = isinstance(counts, list) and len(counts) == 2
        if not fits or any(type(n) is not int or not 0 <= n < MANY for n in counts):
            root.fail("must be two numbers", "counts")
        variables = [_read_variable(root, n) for n in range(counts[0])]
        optimizers = read_optimizers(root, variables)
        functions = [
            read_function(root.group(f"functions/{n}"), variables, optimizers)
            for n in range(counts[1])
        ]
        return ObjectReader(root, variables, functions, optimizers).made()


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Return True if there is a file that `save` has written."""
    path = _file_at(export_dir)
    if not os.path.isfile(path):
        return False
    try:
        with opened(path, check=False) as root:
            return is_format(root, FORMAT)
    except SavingError:
        return False


def _file_at(export_dir):
    path = os.fspath(export_dir)
    if os.path.isdir(path):
        return os.path.join(path, IN_FOLDER)
    return path.rstrip(os.sep)  # which TensorFlow's folders may end in


def _checked(options, kind, who):
    options = kind() if options is None else options
    if not isinstance(options, kind):
        raise TypeError(
            f"saved_model.{who}: options must be {kind.__name__}, got {options!r}"
        )
    return options


def _write_variable(root, number, variable):
    array = variable._array
    if kind_of(array.dtype) not in "biufc":
        raise SavingError(
            root.path, f"the variable '{variable.path}' is of {array.dtype}, which is not "
            "written",
        )  # fmt: skip
    trainable = int(bool(variable.trainable))
    root.array(f"variables/{number}", array, name=variable.path, trainable=trainable)


def _read_variable(root, number):
    array = root.array(f"variables/{number}")
    variable = Variable(array.read(), bool(array.integer("trainable")))
    path = array.text("name")
    variable.name = path.rpartition("/")[2] or "Variable"
    variable.path = path
    return variable
