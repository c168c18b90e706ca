"""Save and load models and weights: `save_model`, `load_model`, and others.

``.keras`` is the zip file of Keras 3: ``config.json`` has the model with its
``compile_config`` and ``build_config``, ``model.weights.h5`` the weights by path and
the state of the optimizer. All members are stored without compression; a folder may
contain them as files. ``assets`` has the vocabularies of layers, which ``.h5`` has in
their configs. ``.h5`` is the HDF5 layout of Keras 2: attributes ``model_config`` and
``training_config``, and the weights by layer. Files are interchangeable with Keras.

Besides the groups of Keras, files have a group ``tapewright``, which Keras ignores:
``random`` has the states of the model's random generators, so that training resumes
exactly; ``calls`` the graphs of custom layers, see `custom_layer_graphs`. In ``.h5`` it
also has the build config and the state of the optimizer: with a state in
``optimizer_weights`` Keras 3.15 cannot resume training.
"""

import math
import os
import shutil
import warnings
from contextlib import contextmanager, nullcontext
from datetime import datetime
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import IO, Any

from tapewright.core.errors import SavingError
from tapewright.core.interpreters import check_not_traced
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.messages.suggestions import unknown_arguments
from tapewright.core.state.deferred_initialization import deferred_initialization
from tapewright.core.state.sharded_variable import write_together
from tapewright.core.variable import writing as locked
from tapewright.layers.base.layer import Layer
from tapewright.layers.base.symbolic_tensor import Operation
from tapewright.serialization.assets import assets_in_configs
from tapewright.serialization.load_errors import from_file, load_errors
from tapewright.serialization.object_config import (
    serialize,
)
from tapewright.serialization.registry import (
    custom_object_scope,
    get_registered_object,
    is_known,
)
from tapewright.serialization.shared_layers import (
    numbering_shared,
)
from tapewright.storage.folders import writing_folder
from tapewright.storage.suffixes import foreign_suffix
from tapewright.storage.writer import writing
from tapewright.storage.zips import writing_zip

from ..keras_version import VERSION
from ..legacy import configs
from ..training.compiled import CompiledModel
from .assets import ASSETS, read_assets, write_assets
from .class_names import strip_defaults
from .custom_layer_graphs import (
    random_states,
    using_layer_graphs,
    write_layer_graphs,
)
from .keras_objects import deserialize_keras_object
from .limits import WeightLimit, check_size
from .model_file import (
    CONFIG,
    METADATA,
    OWN_GROUP,
    WEIGHTS_MEMBER,
    opened_model_file,
)
from .operations import is_operation
from .weights.optimizer_state import (
    add_optimizer,
    config_with_loss_scale,
    has_loss_scale,
    restore_optimizer,
    write_optimizer,
)
from .weights.shards import writing_shards
from .weights.weight_assignment import WeightAssignment
from .weights.weights_by_layer import read_layers, read_layers_by_name, write_layers
from .weights.weights_by_name import is_safetensors, read_names, write_names
from .weights.weights_by_path import read_tree, write_tree

_H5_SUFFIXES = (".h5", ".hdf5")
WEIGHTS_SUFFIX, INDEX_SUFFIX = ".weights.h5", ".weights.json"
_MEMBERS = (
    METADATA,
    CONFIG,
    WEIGHTS_MEMBER,
    ASSETS,
)  # of a folder
_OWN_FORMAT = 1


# ---------------------------------------------------------------------------- whole models


def save_model(
    model: Any,
    filepath: str | os.PathLike | IO[bytes],
    overwrite: bool = True,
    zipped: bool | None = None,
    **kwargs: Any,
) -> None:
    """Save a model to a ``.keras`` or ``.h5`` file: config, weights, optimizer state.

    The file is written completely or not at all, and holds the values of one moment:
    training in another thread waits.

    Args:
        model: Model to save.
        filepath: Path ``name.keras`` or ``name.h5``, or a binary file object, which
            receives the bytes of a ``.keras`` file.
        overwrite: If False, an existing file is an error.
        zipped: If False, write a folder with the members of a ``.keras`` file, which
            replaces an existing folder of this kind.
        **kwargs: ``include_optimizer=False`` omits the compile config and the state of
            the optimizer.

    Raises:
        ValueError: If the suffix or an argument is invalid.
        NotImplementedError: If a layer has no config.
        SavingError: If the file cannot be written.
        FileExistsError: If the file exists and ``overwrite`` is False.

    Example:
        >>> import os, tempfile
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.keras")
        >>> keras.saving.save_model(model, path)
    """
    if hasattr(filepath, "write"):
        return _save_to_file_object(model, filepath, zipped, kwargs)
    path = os.fspath(filepath)
    include_optimizer = kwargs.pop("include_optimizer", True)
    kwargs.pop("save_format", None)  # the suffix of the path decides
    if kwargs:
        known = ("filepath", "overwrite", "zipped", "include_optimizer")
        raise ValueError(unknown_arguments("save_model", kwargs, known))
    in_folder = zipped is not None and not zipped
    suffix = foreign_suffix(path) or next(filter(path.endswith, _H5_SUFFIXES), "")
    if in_folder and suffix:
        raise ValueError(
            f"save_model: filepath must not end in {suffix} with zipped=False, which "
            f"writes a folder, got {path!r}"
        )
    if not in_folder and not path.endswith((".keras", *_H5_SUFFIXES)):
        raise ValueError(
            f"save_model: filepath must end in .keras, or in .h5 for HDF5, got {path!r}"
        )
    _check_is_layer(model, "save_model")
    check_not_traced(path)
    save = _save_zip if path.endswith(".keras") else _save_hdf5
    save = _save_folder if in_folder else save
    optimizer = getattr(model, "optimizer", None) if include_optimizer else None

    def write():
        in_config = assets_in_configs() if save is _save_hdf5 else nullcontext()
        with in_config:
            compiled = optimizer is not None
            config = numbering_shared(lambda: serialize(model, True, compiled))
            config = strip_defaults(config)
        save(path, overwrite, model, config, optimizer)

    with locked(_variables(model)):
        write_together(getattr(optimizer, "variables", ()), write)


def _variables(model):
    optimizer = getattr(model, "optimizer", None)
    return [*model.variables, *getattr(optimizer, "variables", ())]


def _save_zip(path, overwrite, model, config, optimizer):
    with writing_zip(path, overwrite) as members:
        _write_members(members, model, config, optimizer)


def _save_folder(path, overwrite, model, config, optimizer):
    with writing_folder(path, _MEMBERS, overwrite) as members:
        _write_members(members, model, config, optimizer)


def _write_members(members, model, config, optimizer):
    saved = datetime.now().strftime("%Y-%m-%d@%H:%M:%S")
    members.json(METADATA, {"keras_version": VERSION, "date_saved": saved})
    members.json(CONFIG, config)
    with members.hdf5(WEIGHTS_MEMBER) as root:
        write_tree(root, model)
        write_optimizer(root, optimizer)
        _write_own_group(root, model)
    write_assets(members, model)


def _save_to_file_object(model, file, zipped, options):
    """Write the bytes of a ``.keras`` file after all of them are known."""
    if zipped is not None and not zipped:
        raise ValueError("save_model: zipped must be True or None for a file object")

    def write():
        with TemporaryDirectory(prefix="tapewright-") as folder:
            path = os.path.join(folder, "model.keras")
            save_model(model, path, **options)
            with open(path, "rb") as whole:
                shutil.copyfileobj(whole, file, 1 << 20)

    optimizer = getattr(model, "optimizer", None)
    is_kept = options.get("include_optimizer", True)
    write_together(getattr(optimizer, "variables", ()) if is_kept else (), write)


@contextmanager
def _as_path(filepath):
    """Yield the path of a file, or of a temporary copy of a file object."""
    if not hasattr(filepath, "read"):
        yield filepath
        return
    with NamedTemporaryFile(prefix="tapewright-", suffix=".keras") as copy:
        shutil.copyfileobj(filepath, copy, 1 << 20)
        copy.flush()
        yield copy.name


def _save_hdf5(path, overwrite, model, config, optimizer):
    with writing(path, overwrite) as root:
        root.text("keras_version", VERSION)
        root.text("backend", "tapewright")
        root.json("model_config", configs.keras2_config(config))
        if optimizer is not None:
            training = configs.keras2_training_config(config["compile_config"])
            root.json("training_config", training)
        write_layers(root.group("model_weights"), model, VERSION)
        group = _write_own_group(root, model)
        if config.get("build_config"):
            group.json("build_config", config["build_config"])
        write_optimizer(group, optimizer)


def _write_own_group(root, model):
    group = root.group(OWN_GROUP)
    group.integer("format", _OWN_FORMAT)
    for i, state in enumerate(random_states(model)):
        group.array(f"random/{i}", state._array)
    write_layer_graphs(group, model)
    return group


def load_model(
    filepath: str | os.PathLike | IO[bytes],
    custom_objects: dict[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
) -> Any:
    """Load a model or layer, with its weights, from a file of `save_model` or Keras.

    A custom layer whose class is not registered runs the graph of its computation that
    `save_model` stored in the file, including custom gradients.

    Args:
        filepath: Path of a file, folder of ``zipped=False``, or binary file object.
        custom_objects: Dict ``{name in the file: class or function}`` of objects that
            are not registered, see `register_keras_serializable`.
        compile: If True, compile the model as it was, and restore the state of the
            optimizer.
        safe_mode: Ignored: code in a file is never run.

    Raises:
        SavingError: If the file is invalid; a ``ValueError`` that names the fault and
            its location.
        FileNotFoundError: If there is no file at ``filepath``; also a `SavingError`.

    Example:
        >>> import os, tempfile
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.keras")
        >>> keras.models.save_model(model, path)
        >>> keras.models.load_model(path).count_params()
        8
    """
    with (
        custom_object_scope(custom_objects),
        _as_path(filepath) as path,
        opened_model_file(path) as file,
    ):
        if not file.is_model:
            raise SavingError(
                file.path,
                "has no model, there is no attribute 'model_config'; if it has "
                "weights, create the model, then call its load_weights",
                file.root.location,
            )
        model = _model_with_weights(file)
        compiles = compile and hasattr(model, "compile") and file.compile_config
        if compiles and _compile_as_saved(model, file):
            restore_optimizer(file.root, model)
    return model


def _model_with_weights(file):
    """Return the model of a file.

    Only as much memory is allocated as the weights in the file need, and no random
    numbers are drawn for them.
    """
    path, location = file.path, file.config_location
    check_size(file.config, path, location)
    config = configs.keras3_config(file.config)
    if file.by_layer:
        _check_layer_count(file, config)
    graphs = using_layer_graphs(file.own_group)
    limit = WeightLimit(path, _count_numbers(file), location)
    with graphs, deferred_initialization(limit) as new_weights:
        with from_file(path, location):
            model = deserialize_keras_object(config, kind="layer")
        if not isinstance(model, Layer):
            name = type(model).__name__
            raise SavingError(
                path, f"the config describes a {name}, not a model or layer", location
            )
        assignment = WeightAssignment(path)
        read = read_layers if file.by_layer else read_tree
        read(file.weights, model, assignment)
        _add_random_states(file, model, assignment)
        if file.members is not None:
            read_assets(file.members, model, assignment)
        assignment.apply()
        new_weights.initialize()
    return model


def _check_layer_count(file, config):
    """Check that the file lists the layers of the config.

    Raises:
        SavingError: If the numbers differ.
    """
    inner = config.get("config")
    layers = inner.get("layers") if isinstance(inner, dict) else None
    if not isinstance(layers, list):
        return
    layers = [each for each in layers if isinstance(each, dict)]
    layers = [each for each in layers if each.get("class_name") != "InputLayer"]
    # The list of a `Sequential` may have a layer several times.
    count = len({str(each.get("config")) for each in layers if _is_layer(each)})
    listed = len(file.weights.texts("layer_names"))
    if count > listed:
        file.root.fail(
            f"the config has {count} layers, {listed} are listed in {file.weights.location}",
            "model_config",
        )


def _is_layer(entry):
    """Return whether an entry of a config is a layer, not an operation.

    The result is False for an unknown class, for which another error says more.
    """
    if is_operation(entry):
        return False
    names = [entry.get("registered_name"), entry.get("class_name")]
    names = [name for name in names if isinstance(name, str)]
    known = [get_registered_object(name) for name in names]
    known = [each for each in known if isinstance(each, type)]
    if known:
        return issubclass(known[0], Layer) or not issubclass(known[0], Operation)
    return any([is_known("layer", name) for name in names])


def _count_numbers(file):
    """Return the number of entries of all weights in a file."""
    groups = [file.weights]
    if not file.by_layer:
        groups = [file.root.find(key) for key in file.root.keys() if key != "optimizer"]
    return sum(math.prod(a.check().shape) for each in groups for a in each.arrays())


def _add_random_states(file, model, assignment):
    group = file.root.find_group(f"{OWN_GROUP}/random")
    if group is None:
        return
    arrays, states = group.numbered(), random_states(model)
    if len(arrays) == len(states):
        for state, array in zip(states, arrays):
            assignment.add(state, array)
        return
    warnings.warn(
        f"{file.path}: the states of {len(arrays)} random generators are stored, but "
        f"the model has {len(states)}: they are not restored",
        stacklevel=user_stacklevel(),
    )


def _compile_as_saved(model, file):
    """Compile by the ``compile_config`` of a file; return whether it has an optimizer.

    A custom ``compile_from_config`` determines the content of its config.
    """
    config, location = file.compile_config, file.compile_location
    is_own = type(model).compile_from_config is not CompiledModel.compile_from_config
    if not (is_own or config.get("optimizer")):
        warnings.warn(
            f"{file.path}: the model was saved with a compile config that lacks an "
            "optimizer; it is not compiled, call compile()",
            stacklevel=user_stacklevel(),
        )
        return False
    what = "the model cannot be compiled as it was"
    try:
        with from_file(file.path, location), load_errors(what):
            config = configs.keras3_config(config)
            if has_loss_scale(file.root):
                config = config_with_loss_scale(config)
            model.compile_from_config(config)
    except SavingError as error:
        error.add_note("compile=False loads the model without it")
        raise
    return model.optimizer is not None


# --------------------------------------------------------------------------- weights alone


def save_weights(model, filepath, overwrite=True, max_shard_size=None):
    """Save the weights of a model, and the state of its optimizer if it is compiled.

    The file is written completely or not at all. A safetensors file has the weights
    alone, without the optimizer. Their names are the path of the layer, as in
    ``.weights.h5``, and the name of the weight: ``layers/dense/kernel``,
    ``layers/dense_1/kernel`` for the layers of a sequential or functional model, by
    class and in order; ``encoder/kernel`` for a layer that is an attribute. They need
    the extra ``safetensors``.

    Args:
        model: Model whose weights are saved.
        filepath: Path ``name.weights.h5`` or ``name.safetensors``; with
            ``max_shard_size`` the path ``name.weights.json`` of an index, or
            ``name.safetensors``.
        overwrite: If False, an existing file is an error.
        max_shard_size: Largest size of a file in GB (2^30 bytes): the weights are split
            into the files ``name_00000.weights.h5`` and so on, or into
            ``name-00001-of-00002.safetensors`` and so on, with the index
            ``name.safetensors.index.json``. All are written before the first replaces an
            older file. None for a single file.

    Raises:
        ValueError: If the suffix is invalid, the model has no weights yet, or a weight
            is larger than ``max_shard_size``.
        SavingError: If the file cannot be written.
        FileExistsError: If the file exists and ``overwrite`` is False.
        ImportError: If the package safetensors is needed and not installed.

    Example:
        >>> import os, tempfile
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.weights.h5")
        >>> keras.saving.save_weights(model, path)
        >>> keras.saving.load_weights(model, path)
    """
    path = os.fspath(filepath)
    if is_safetensors(path):
        _check_has_weights(model, "save_weights")
        check_not_traced(path)
        with locked(model.variables):
            write_names(path, model, overwrite, max_shard_size)
        return
    suffix = WEIGHTS_SUFFIX if max_shard_size is None else INDEX_SUFFIX
    if max_shard_size is not None:
        path = path.removesuffix(WEIGHTS_SUFFIX) + suffix * path.endswith(
            WEIGHTS_SUFFIX
        )
        if not max_shard_size > 0:
            raise ValueError(
                f"save_weights: max_shard_size must be positive, got {max_shard_size!r}"
            )
    if not path.endswith(suffix):
        raise ValueError(
            f"save_weights: filepath must end in {suffix} or .safetensors, got {path!r}"
        )
    _check_has_weights(model, "save_weights")
    check_not_traced(path)

    def write():
        opened = (
            writing(path, overwrite)
            if max_shard_size is None
            else writing_shards(path, max_shard_size * 2**30, overwrite)
        )
        with opened as root:
            write_tree(root, model)
            write_optimizer(root, getattr(model, "optimizer", None))

    variables = _variables(model)
    with locked(variables):
        write_together(variables, write)


def load_weights(
    model,
    filepath,
    skip_mismatch=False,
    by_name=False,
    objects_to_skip=None,
    name_map=None,
    transpose=None,
):
    """Load weights from a file of `save_weights`, Keras or PyTorch into a model.

    The model must have the same layers. The file may also contain a whole model. If the
    optimizer is built, its state is loaded as well, except from safetensors files.

    Args:
        model: Model whose weights are assigned.
        filepath: Path of the file; for safetensors, ``name.safetensors`` or the index
            ``name.safetensors.index.json`` of several files.
        skip_mismatch: If True, skip weights that do not fit, with a warning that lists
            them.
        by_name: If True, match layers by name, and skip other layers; only for files of
            the older ``.h5`` format.
        objects_to_skip: Layers to leave unchanged.
        name_map: For safetensors files with other keys. A function from the name of a
            weight, as `save_weights` writes it, to the key in the file, or to None to
            leave the weight unchanged; a dict from names to keys or None, other names
            being kept; or a list of pairs of a regular expression and its replacement,
            applied to the name one after the other.
        transpose: "torch" for a safetensors file of a ``state_dict``: weights are
            converted from the layouts of PyTorch's modules to those of the layers that
            own them. If what ``name_map`` returns ends in our name of the weight, that
            becomes PyTorch's: ``fc/kernel`` is ``fc.weight``. Without ``name_map`` the
            modules must have the names of the layers, or be numbered as in
            ``nn.Sequential`` for a model that is a chain of layers. None to load weights
            as they are.

    Raises:
        SavingError: If weights are missing or have another shape or dtype, which the
            message names, or the file is invalid. No weight changes after an error.
        ValueError: If there is no rule to convert a weight of more than one axis.
        ImportError: If the package safetensors is needed and not installed.
    """
    _check_has_weights(model, "load_weights")
    if transpose not in (None, "torch"):
        raise ValueError(
            f"load_weights: transpose must be 'torch' or None, got {transpose!r}"
        )
    path = os.fspath(filepath)
    if is_safetensors(path):
        if by_name:
            raise ValueError(
                f"load_weights: by_name=True needs an older .h5 file, got {path!r}"
            )
        assignment = WeightAssignment(path, skip_mismatch)
        skipped = objects_to_skip or ()
        read_names(path, model, assignment, skipped, name_map, transpose)
        assignment.apply(model.weights)
        return
    if name_map is not None or transpose is not None:
        raise ValueError(
            "load_weights: name_map and transpose are for .safetensors files, got "
            f"{path!r}"
        )
    with opened_model_file(path) as file:
        assignment = WeightAssignment(file.path, skip_mismatch)
        if file.by_layer:
            if objects_to_skip:
                raise ValueError(
                    f"load_weights: {file.path} has weights by layer; objects_to_skip is "
                    f"for {WEIGHTS_SUFFIX} files"
                )
            read = read_layers_by_name if by_name else read_layers
            read(file.weights, model, assignment)
        else:
            if by_name:
                raise ValueError(
                    f"load_weights: {file.path} has weights by path; by_name=True needs "
                    "an older .h5 file, with weights by layer"
                )
            read_tree(file.weights, model, assignment, objects_to_skip or ())
            add_optimizer(file.root, model, assignment)
        assignment.apply(model.weights)


def _check_is_layer(model, caller):
    if not isinstance(model, Layer):
        raise ValueError(f"{caller}: model must be a Model or Layer, got {model!r}")


def _check_has_weights(model, caller):
    _check_is_layer(model, caller)
    if not model.built and not model.weights:
        raise ValueError(
            f"{caller}: model '{model.name}' has no weights yet; call it, or "
            "build(input_shape)"
        )
