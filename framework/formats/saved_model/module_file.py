"""`saved_model`: save traced functions, variables and custom gradients of a `Module`.

The format is one sealed HDF5 file, which any HDF5 reader can show, at the given path or
inside an existing folder.

    format, version      attributes of the root: "tapewright saved_model", 1
    variables/0, 1...    arrays, with the attributes name and trainable
    functions/0, 1...    traced functions as graphs, see `functions`
    optimizers           attribute of the root, JSON: optimizers that functions run, see
                         `saved_optimizers`
    objects              attribute of the root, JSON: modules, lists and dicts, with
                         functions, variables and optimizers by number

A loaded object needs no Python code of the saved object, except for user-defined
optimizers, which must be registered.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from tapewright.core.dtypes import kind_of
from tapewright.core.errors import SavingError
from tapewright.core.interpreters import check_not_traced
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.module import Module
from tapewright.core.variable import Variable
from tapewright.core.variable import writing as held
from tapewright.storage.reader import check_format, is_format, opened
from tapewright.storage.suffixes import check_suffix
from tapewright.storage.writer import write_format, writing

from .functions import read_function, write_function
from .objects import ObjectReader, ObjectWriter
from .saved_optimizers import read_optimizers
from .signature_functions import as_signatures, call_of

FORMAT, VERSION = "tapewright saved_model", 1
MANY = 1_000_000
SERVING = "serve"
IN_FOLDER = "saved_model.h5"


class _Options:
    """Named settings; unsupported settings are rejected."""

    _used: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in self._used and value != field.default:
                raise ValueError(
                    f"{type(self).__name__}: {field.name} is not supported, got {value!r}"
                )


@dataclass
class SaveOptions(_Options):
    """Options of `tw.saved_model.save`.

    All options except ``save_debug_info`` and ``experimental_custom_gradients`` must
    keep their defaults.

    Args:
        namespace_whitelist: Must be None.
        save_debug_info: No effect; source lines are always saved.
        function_aliases: Must be None.
        experimental_debug_stripper: Must be False.
        experimental_io_device: Must be None.
        experimental_variable_policy: Must be None.
        experimental_custom_gradients: If True, also write custom gradients, as graphs.
        experimental_image_format: Must be False.
        experimental_skip_saver: Must be False.
        experimental_sharding_callback: Must be None.
        extra_tags: Must be None.

    Raises:
        ValueError: If an unsupported option is set.
    """

    _used: ClassVar[tuple[str, ...]] = (
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
    """Options of `tw.saved_model.load`; all must keep their defaults.

    Args:
        allow_partial_checkpoint: Must be False.
        experimental_io_device: Must be None.
        experimental_skip_checkpoint: Must be False.
        experimental_variable_policy: Must be None.
        experimental_load_function_aliases: Must be False.

    Raises:
        ValueError: If an option is set.
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
    """Save a module's traced functions and variables to one file (SavedModel).

    Functions are attributes created by `tw.function`: with an ``input_signature`` they
    are traced for all inputs that it allows; others are saved for the kinds of
    arguments with which they were called. Gradients of `tw.custom_gradient` are saved
    as graphs (see `tw.saved_model.SaveOptions`), and optimizers that functions run with
    their state, so that training can continue. For a Keras model with known inputs, the
    call is saved too, for inference.

    The file is written atomically: after an error, an older file is unchanged.

    Args:
        obj: A `tw.Module`, such as a layer or model.
        export_dir: Path of the file; for an existing folder, the file is
            ``saved_model.h5`` in it.
        signatures: Function, or dict of functions by name, for ``loaded.signatures``.
        options: A `tw.saved_model.SaveOptions`, or None for the defaults.

    Raises:
        SavingError: If something cannot be traced or saved, such as Python code that
            runs in each call; it names the line of code (a ValueError and OSError).
        TypeError: If ``obj`` is not a `tw.Module`.
        ValueError: If the path has the suffix of another format, such as ``.keras``.

    Example:
        >>> import tempfile
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
            f"saved_model.save skips functions: {'; '.join(tree.untraced)}",
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
    """Load a file of `tw.saved_model.save` as an object with the same attributes.

    Its functions run the saved graphs, also under tapes and in other traced functions;
    its variables can be trained. No Python code is run or needed, but calls run the
    saved graphs, so the author of the file determines how much time and memory they
    use.

    Args:
        export_dir: Path of the file, or of the folder that contains it.
        tags: None or "serve".
        options: A `tw.saved_model.LoadOptions`, or None for the defaults.

    Returns:
        A `tw.Module` with the saved attributes.

    Raises:
        SavingError: If the file is invalid; also a FileNotFoundError if it does not
            exist.
        ValueError: For other ``tags``.

    Example:
        >>> import tempfile
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
        return ObjectReader(root, variables, functions, optimizers).read()


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Return whether a path contains a file of `tw.saved_model.save`.

    Args:
        export_dir: Path of a file or folder.
    """
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
            root.path, f"the variable '{variable.path}' has dtype {array.dtype}, "
                       "which cannot be saved",
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
