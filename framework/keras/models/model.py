"""`Model`: a layer with a training loop, made from `Input`s and outputs or subclassed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.compiler.tracing.tracer import EagerFallback
from tapewright.core.errors import ShapeError
from tapewright.core.messages.suggestions import suggesting_arguments, suggestion
from tapewright.core.names.naming import unique_name
from tapewright.core.names.reserved_names import Replaceable
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.shapes.symbolic_shape import static_shapes
from tapewright.core.tensor import convert_to_tensor, is_composite
from tapewright.core.trackable import Opaque
from tapewright.distribute.strategy import Strategy, get_strategy
from tapewright.layers.base.layer import Layer, call_context
from tapewright.layers.base.masks import attach, in_use, mask_of, masked
from tapewright.layers.base.symbolic_tensor import KerasTensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import expand_dims, squeeze
from tapewright.serialization.configured import from_constructor
from tapewright.serialization.constructor_arguments import constructor_arguments
from tapewright.serialization.load_errors import load_errors
from tapewright.serialization.object_config import (
    plain,
)
from tapewright.serialization.registry import custom_object_scope, register
from tapewright.serialization.shared_layers import (
    numbering_shared,
    reading_shared,
)
from tapewright.storage import strict_json

from ..files.functional_config import graph_config, graph_from_config
from ..files.keras_objects import deserialize_keras_object, serialize_keras_object
from ..training.state_tree import assign_state_tree, state_tree
from ..training.summary import print_summary, summary_html
from ..training.trainer import Trainer
from .functional import FunctionalGraph, sole, standardized

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from typing import IO, Any, Literal, Self

    from tapewright.core.tensor import Tensor


class Model(Trainer, Layer):
    """Network of layers that can be trained with `fit`, saved and called.

    A functional model, ``Model(inputs, outputs)``, is the graph of layers between
    symbolic tensors: see `Input`. A subclass defines ``call``, keeps its layers, and
    each ``keras.Variable`` that is a weight, as attributes, and may override
    `train_step`. A ``tw.Variable`` is not a weight, see `Layer`.

    Args:
        *args: ``inputs``, ``outputs`` and ``name`` as positional arguments.
        inputs: Symbolic input tensor, or a list or dict of them.
        outputs: Symbolic output tensor, or a list or dict of them.
        **kwargs: Base class arguments such as ``name``, ``trainable`` and ``dtype``;
            see `keras.layers.Layer`.

    Attributes:
        history: The `keras.callbacks.History` of the last `fit`.

    Raises:
        ValueError: If an output does not depend on the inputs, a tensor is not
            symbolic, or two layers have the same name.
        TypeError: If only one of ``inputs`` and ``outputs`` is given.

    Example:
        >>> from tapewright.layers import Dense, Input
        >>> x = Input((3,))
        >>> model = keras.models.Model(inputs=x, outputs=Dense(2)(x))
        >>> model.compile("sgd", "mse")
        >>> model.output_shape, model.count_params()
        ((None, 2), 8)

        A subclass with its own ``call``:

        >>> class MLP(keras.models.Model):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden, self.top = Dense(4, activation="relu"), Dense(2)
        ...
        ...     def call(self, inputs):
        ...         return self.top(self.hidden(inputs))
        >>> MLP()([[1.0, 2.0, 3.0]]).shape
        TensorShape([1, 2])
    """

    _tw_functional = None
    _tw_strategy = Strategy()
    _tw_makes_masks = False  # its layers do
    _tw_config_exclude: tuple[str, str] = ("inputs", "outputs")
    _tw_child_names = Layer._tw_child_names | {
        "_tw_functional_layers": "_network_layers",  # the name in files
        "_tw_compiled": "compiled",
    }

    def __children__(self) -> Any:
        """Return layers of a graph first, then the state of `compile`, then attributes."""
        children = super().__children__()
        first = {"layers": self.layers} if self._tw_lists_layers else {}
        if "compiled" in children:
            first["compiled"] = children.pop("compiled")
        return first | children

    def __init__(
        self, *args: Any, inputs: Any = None, outputs: Any = None, **kwargs: Any
    ):
        if args and outputs is None and inputs is None and len(args) > 1:
            inputs, outputs, *args = args
        elif args and inputs is None:
            inputs, *args = args
        if args and "name" not in kwargs:
            kwargs["name"], *args = args
        if args:
            raise TypeError(f"{type(self).__name__}: too many arguments, {args!r}")
        if inputs is not None and type(self) is Model and kwargs.get("name") is None:
            kwargs["name"] = unique_name("functional")
        super().__init__(**kwargs)
        self._tw_strategy = get_strategy()
        if (inputs is None) != (outputs is None):
            raise TypeError(
                f"{type(self).__name__}: inputs and outputs must be given together"
            )
        if inputs is not None:
            self._tw_set_graph(FunctionalGraph(inputs, outputs))

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy in whose scope the model was created; `fit` trains by it."""
        return self._tw_strategy

    def _tw_set_graph(self, graph):
        self._tw_functional = graph
        self._tw_functional_layers = graph.layers
        self.built = True
        self._tw_output_shape = sole(
            map_structure(lambda x: tuple(x.shape), self.output)
        )

    # --- calling

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Compute the outputs; a subclass without inputs and outputs must override it.

        Args:
            inputs: Tensor, or a list or dict of tensors in the structure of the model's
                inputs.
            training: True in training, False in inference; None for the mode of the
                caller.
            mask: Mask of the inputs, or None.
        """
        if self._tw_functional is None:
            raise NotImplementedError(
                f"{type(self).__name__} must define call(inputs), or be created "
                "from inputs and outputs"
            )
        graph = self._tw_functional
        flat = standardized(graph, inputs, self._tw_title)
        if mask is not None:
            flat = [masked(x, m) for x, m in zip(flat, flatten(mask))]
        pairs = zip(flat, graph.inputs)
        inputs = [self._tw_as_input(x, expected) for x, expected in pairs]
        with call_context(training):
            return graph.run(inputs)

    def _tw_as_input(self, x, expected):
        """Convert to a tensor with the rank and dtype of an input."""
        if x is None:
            if not expected._keras_history.operation.optional:
                raise ValueError(
                    f"{self._tw_title}: the input '{expected.name}' is None, but not optional; "
                    "see optional= of Input"
                )
            return None
        if is_composite(x):
            return self._tw_as_sparse_input(x, expected)
        tensor = convert_to_tensor(x)
        mask = mask_of(tensor) if in_use() else None
        tensor = in_rank_of(expected, tensor, self._tw_title)
        if not _fits(tuple(tensor.shape), tuple(expected.shape)):
            raise _wrong_shape(expected, tensor, self._tw_title)
        if tensor.dtype != expected.dtype:
            tensor = cast(tensor, expected.dtype)
        if mask is not None:
            attach(tensor, mask)
        return tensor

    def _tw_as_sparse_input(self, x, expected):
        if not expected.sparse:
            raise TypeError(
                f"{self._tw_title}: the input '{expected.name}' must be a tensor, got a "
                f"{type(x).__name__}; see sparse= of Input"
            )
        if not x.shape.is_compatible_with(expected.shape):
            raise _wrong_shape(expected, x, self._tw_title)
        return x if x.dtype == expected.dtype else cast(x, expected.dtype)

    def _tw_output_spec(self, args, kwargs):
        """Replace unknown sizes of the inputs by the sizes in the graph."""
        if args and self._tw_functional is not None and type(self).call is Model.call:
            given = standardized(self._tw_functional, args[0], self._tw_title)
            pairs = zip(given, self._tw_functional.inputs)
            inputs = [_with_known_sizes(x, expected) for x, expected in pairs]
            if any([x is not y for x, y in zip(inputs, given)]):
                args = (inputs, *args[1:])
        try:
            return super()._tw_output_spec(args, kwargs)
        except EagerFallback as error:
            try:  # sizes follow from values: the graph has them as None
                outputs = self._tw_need_graph("outputs").output_nest
            except AttributeError:
                raise error from None
            return sole(map_structure(lambda x: KerasTensor(x.shape, x.dtype), outputs))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return None: the outputs carry the masks of their layers.

        Args:
            inputs: Inputs of the model; not used.
            mask: Mask of the inputs; not used.
        """
        return None

    def _tw_converted(self, inputs):
        if self._tw_functional is not None:  # each input has a dtype of its own
            return map_structure(
                lambda x: x if x is None or is_composite(x) else convert_to_tensor(x),
                inputs,
            )
        return super()._tw_converted(inputs)

    def build(self, input_shape: Any) -> None:
        """Create the weights by tracing ``call`` for inputs of this shape.

        Args:
            input_shape: Shape of the inputs with the batch, which may be None, or a
                list or dict of shapes.
        """
        if self._tw_functional is None and not self.built:
            locked = self._tw_locked
            self.built = self._tw_locked = True  # the trace need not build once more
            try:
                self.compute_output_shape(input_shape)
            finally:
                self.built, self._tw_locked = False, locked
        self.built: bool = True

    def _tw_build_for(self, args, kwargs):
        """Record the input shapes; layers get real inputs in a call and build themselves."""
        if type(self).build is not Model.build:
            super()._tw_build_for(args, kwargs)
        else:
            shapes = map_structure(of_any_batch, args[0])
            self._tw_build_shapes = Opaque({"input_shape": shapes})

    # --- layers, inputs and outputs

    @property
    def layers(self) -> list[Layer]:
        """The layers as a new list, from inputs to outputs, or in order of assignment."""
        layers = (
            list(self._tw_functional.layers) if self._tw_functional is not None else []
        )
        layers += [part for part in self._tw_parts() if isinstance(part, Layer)]
        return list({id(layer): layer for layer in layers}.values())

    @layers.setter
    def layers(self, value: Any) -> None:
        raise AttributeError("Model.layers is computed; use another name")

    @Replaceable
    def operations(self) -> list[Any]:
        """The layers and ops, in order from inputs to outputs."""
        return self._tw_operations()

    def _tw_operations(self):
        graph = self._tw_functional
        return list(graph.operations) if graph else self.layers

    @suggesting_arguments
    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """Return a layer by its name or its index in `layers`.

        Args:
            name: Name of the layer.
            index: Index in `layers`; may be negative.

        Raises:
            ValueError: If there is no such layer, or unless exactly one argument is
                given.
        """
        layers = self.layers
        if (name is None) == (index is None):
            raise ValueError("get_layer: pass either name or index")
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(
                    f"get_layer: index must be below {len(layers)}, got {index}"
                )
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        hint = suggestion(name, [layer.name for layer in layers], "there are")
        raise ValueError(f"get_layer: there is no layer {name!r}{hint}")

    def _tw_need_graph(self, what):
        if self._tw_functional is None:
            raise AttributeError(
                f"{self._tw_title}: there are no symbolic {what}, because it was "
                "not created from inputs and outputs"
            )
        return self._tw_functional

    @Replaceable
    def inputs(self) -> list[Tensor]:
        """The symbolic inputs, as a list.

        Raises:
            AttributeError: For a subclass with its own ``call``; likewise for the
                properties below.
        """
        return self._tw_need_graph("inputs").inputs

    @Replaceable
    def outputs(self) -> list[Tensor]:
        """The symbolic outputs, as a list."""
        return self._tw_need_graph("outputs").outputs

    @property
    def input(self) -> Any:
        """The symbolic inputs, in the structure passed to the constructor."""
        return self._tw_need_graph("inputs").input_nest

    @property
    def output(self) -> Any:
        """The symbolic outputs, in the structure passed to the constructor."""
        return self._tw_need_graph("outputs").output_nest

    @Replaceable
    def input_shape(self) -> Any:
        """Shape of the input with None for the batch, or the nest of shapes of several."""
        return _single(map_structure(lambda x: tuple(x.shape), self.input))

    @Replaceable
    def output_shape(self) -> Any:
        """Shape of the output with None for the batch, or the nest of shapes of several."""
        if self._tw_functional is None and self._tw_output_shape is not None:
            return self._tw_output_shape
        return _single(map_structure(lambda x: tuple(x.shape), self.output))

    @Replaceable
    def input_names(self) -> list[str]:
        """Names of the inputs, which are the keys if the inputs are a dict."""
        return [x.name for x in self._tw_need_graph("inputs").inputs]

    @Replaceable
    def output_names(self) -> list[str] | None:
        """Names of the outputs: the keys of a dict, else the names of their layers.

        None for a subclass, whose outputs have no names.
        """
        return self._tw_output_names()

    def _tw_output_names(self):
        if self._tw_functional is None:
            return None
        nest = self._tw_functional.output_nest
        if isinstance(nest, dict) and len(nest) == len(self._tw_functional.outputs):
            return sorted(nest)
        names = []
        for x in self._tw_functional.outputs:
            name = x._keras_history.operation.name
            names.append(f"{name}_{names.count(name)}" if name in names else name)
        return names

    @suggesting_arguments
    def summary(
        self,
        line_length: int | None = None,
        positions: Sequence[float] | None = None,
        print_fn: Callable[[str], object] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: Sequence[str] | None = None,
    ) -> None:
        """Print a table of the layers with their output shapes and numbers of weights.

        Args:
            line_length: Width of the table in characters, 80 by default.
            positions: Right edges of the columns, as fractions of ``line_length``.
            print_fn: Function called with the whole text instead of ``print``.
            expand_nested: If True, list the layers of inner models as well.
            show_trainable: If True, add a column that shows which layers are trainable.
            layer_range: Names of the first and the last layer to list.

        Example:
            >>> top = keras.layers.Dense(2, name="top")
            >>> model = keras.Sequential([keras.Input((3,)), top], name="net")
            >>> model.summary(line_length=60)
            Model: "net"
            ┏━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
            ┃ Layer (type)    ┃ Output Shape           ┃       Param # ┃
            ┡━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
            │ top (Dense)     │ (None, 2)              │             8 │
            └─────────────────┴────────────────────────┴───────────────┘
             Total params: 8 (32.00 B)
             Trainable params: 8 (32.00 B)
             Non-trainable params: 0 (0.00 B)
        """
        print_summary(
            self,
            line_length,
            positions,
            print_fn,
            expand_nested,
            show_trainable,
            layer_range,
        )

    def _repr_html_(self):
        return summary_html(self)

    def get_state_tree(
        self, value_format: Literal["backend_tensor", "numpy_array"] = "backend_tensor"
    ) -> dict[str, Any]:
        """Return the values of all variables as dicts nested by the variables' paths.

        Args:
            value_format: "backend_tensor" for tensors at the leaves, "numpy_array" for
                NumPy arrays.

        Returns:
            Dict with the keys "trainable_variables", "non_trainable_variables",
            "optimizer_variables" and "metrics_variables".

        Raises:
            ValueError: If ``value_format`` is unknown, or two variables have the same
                path.

        Example:
            >>> from tapewright.layers import Dense, Input
            >>> x = Input((1,))
            >>> y = Dense(1, name="top", kernel_initializer="ones")(x)
            >>> tree = keras.models.Model(x, y).get_state_tree("numpy_array")
            >>> tree["trainable_variables"]["top"]["kernel"]
            array([[1.]], dtype=float32)
        """
        return state_tree(self, value_format)

    def set_state_tree(self, state_tree: dict[str, Any]) -> None:
        """Assign the values of a tree from `get_state_tree`, or of a part of such a tree.

        Args:
            state_tree: Nested dict of values.

        Raises:
            ValueError: If no variable has a path, or a value has the wrong shape; then
                nothing is assigned.
        """
        assign_state_tree(self, state_tree)

    # --- files: readers and writers are loaded at first use

    @property
    def _tw_lists_layers(self) -> bool:
        """True if the layers are a list or a graph, rather than attributes."""
        return self._tw_functional is not None

    @property
    def _tw_is_functional(self) -> bool:
        """True if the model was created from inputs and outputs."""
        return self._tw_functional is not None

    def save(
        self,
        filepath: str | PathLike[str] | IO[bytes],
        overwrite: bool = True,
        zipped: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Save the model to a file ``name.keras`` or ``name.h5``: see `models.save_model`.

        Args:
            filepath: Path that ends in ``.keras`` or ``.h5``, or a binary file object.
            overwrite: If False, raise an error if the file exists.
            zipped: If False, write a folder instead of a ``.keras`` file.
            **kwargs: Further arguments of `models.save_model`, such as
                ``include_optimizer``.

        Example:
            >>> import os, tempfile
            >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
            >>> path = os.path.join(tempfile.mkdtemp(), "model.keras")
            >>> model.save(path)
            >>> keras.models.load_model(path).count_params()
            8
        """
        from ..files.save_and_load import save_model

        save_model(self, filepath, overwrite, zipped, **kwargs)

    @suggesting_arguments
    def export(
        self,
        filepath: str | PathLike[str],
        format: str | None = None,  # noqa: A002
        verbose: bool | None = None,
        input_signature: Sequence[Any] | None = None,
    ) -> None:
        """Export the model for inference in other runtimes, as an ONNX file.

        Inputs and outputs have the names of the model's; open sizes stay open. Custom
        layers become the ops they consist of: see `tw.onnx.save`.

        Args:
            filepath: Path of the file.
            format: "onnx", the default for a path that ends in ``.onnx``. Other formats
                of Keras are not supported: `save` writes a ``.keras`` file, which Keras
                loads and exports.
            verbose: If True, print the path, the inputs and the outputs.
            input_signature: The arguments of the call, with a `TensorSpec` for each
                tensor; only a model whose inputs are unknown needs it.

        Raises:
            NotImplementedError: If the format is another one.
            SavingError: If an op has no equivalent in ONNX (a ValueError and OSError).
            ImportError: If the package onnx is not installed.

        Example:
            >>> import os, tempfile
            >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
            >>> path = os.path.join(tempfile.mkdtemp(), "model.onnx")
            >>> model.export(path)
            >>> os.path.getsize(path) > 0
            True
        """
        from ..files.export import export_model

        export_model(self, filepath, format, verbose, input_signature)

    @suggesting_arguments
    def save_weights(
        self,
        filepath: str | PathLike[str],
        overwrite: bool = True,
        max_shard_size: float | None = None,
    ) -> None:
        """Save the weights to a file, ``name.weights.h5`` or ``name.safetensors``.

        The first is Keras' format, with the state of the optimizer of a compiled model.
        A safetensors file has only the weights, with names such as
        ``layers/dense/kernel``: see `keras.saving.save_weights`. The file is replaced
        atomically: after an error the old file is intact.

        Args:
            filepath: Path that ends in ``.weights.h5`` or ``.safetensors``.
            overwrite: If False, raise an error if the file exists.
            max_shard_size: Maximum size of a file in GB: split the weights into several
                files, with the index ``name.weights.json`` or
                ``name.safetensors.index.json``. None for a single file.

        Raises:
            ValueError: If the path has another ending, or the model has no weights yet.
            FileExistsError: If the file exists and ``overwrite`` is False.
            ImportError: If the package safetensors is needed and not installed.
        """
        from ..files.save_and_load import save_weights

        save_weights(self, filepath, overwrite, max_shard_size)

    @suggesting_arguments
    def load_weights(
        self,
        filepath: str | PathLike[str],
        skip_mismatch: bool = False,
        *,
        name_map: Callable[[str], str | None]
        | Mapping[str, str | None]
        | Sequence[tuple[str, str]]
        | None = None,
        transpose: Literal["torch"] | None = None,
        **kwargs: Any,
    ) -> None:
        """Load weights from a file of weights or of a whole model, including Keras files.

        Args:
            filepath: Path of the file.
            skip_mismatch: If True, skip weights that do not fit, with a warning that
                lists them.
            name_map: Keys in a safetensors file for our names of weights: a function
                (None leaves a weight unchanged), a dict, or a list of pairs of a regular
                expression and a replacement. See `keras.saving.load_weights`.
            transpose: "torch" to convert weights from PyTorch's layouts, in a
                safetensors file.
            **kwargs: ``objects_to_skip``: list of layers to leave unchanged;
                ``by_name=True``, for older ``.h5`` files: match layers by name.

        Raises:
            SavingError: If the file is damaged or contains the weights of other layers;
                then nothing is assigned. It is a ``ValueError``, and for a missing file
                also a ``FileNotFoundError``.
            ValueError: If a weight of more than one axis cannot be converted.
            ImportError: If the package safetensors is needed and not installed.

        Example:
            >>> import os, tempfile
            >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
            >>> path = os.path.join(tempfile.mkdtemp(), "model.weights.h5")
            >>> model.save_weights(path)
            >>> model.load_weights(path)
        """
        from ..files.save_and_load import load_weights

        load_weights(
            self,
            filepath,
            skip_mismatch,
            name_map=name_map,
            transpose=transpose,
            **kwargs,
        )

    # --- config

    @from_constructor
    def get_config(self) -> dict[str, Any]:
        """Return the config: name and layers of a functional model, else the arguments."""
        if self._tw_functional is None or not _takes_ends(type(self)):
            return super().get_config()
        config = {"name": self.name, "trainable": self.trainable}
        if self.compute_dtype != self.variable_dtype:
            config["dtype"] = self._tw_dtype_config()  # Keras has no such key
        own = set(constructor_arguments(type(self))) - set(constructor_arguments(Model))
        config |= {key: plain(getattr(self, key)) for key in own if hasattr(self, key)}
        return numbering_shared(lambda: config | graph_config(self._tw_functional))

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        """Create a model from its config, with new weights.

        Args:
            config: Result of `get_config`.
            custom_objects: Dict from name to class or function, searched first.
        """
        with custom_object_scope(custom_objects), reading_shared():
            if not set(_ENDS) <= set(config) or not _takes_ends(cls):
                return super().from_config(config)
            inputs, outputs = graph_from_config(config)
            rest = {key: value for key, value in config.items() if key not in _ENDS}
            trainable = rest.pop("trainable", True)
            model = cls(inputs=inputs, outputs=outputs, **rest)
            if not trainable:
                model.trainable = False
            return model

    def to_json(self, **kwargs: Any) -> str:
        """Return the config of the model as JSON, with its build and compile configs.

        `model_from_json` creates a model from it, with new weights.

        Args:
            **kwargs: Arguments of ``json.dumps``.

        Example:
            >>> text = keras.Sequential([keras.layers.Dense(2)]).to_json()
            >>> keras.models.model_from_json(text).layers[0].units
            2
        """
        import json  # takes a few milliseconds

        return json.dumps(serialize_keras_object(self), **kwargs)


_ENDS = ("layers", "input_layers", "output_layers")


def _takes_ends(cls):
    """Return whether the constructor accepts inputs and outputs, like `Model`."""
    code = cls.__init__.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if {"inputs", "outputs"} <= set(names):
        return True
    return bool(code.co_flags & 0x04 and code.co_flags & 0x08)  # *args and **kwargs


def model_from_json(
    json_string: str | bytes, custom_objects: dict[str, Any] | None = None
) -> Model:
    """Create a model, with new weights, from JSON written by `Model.to_json` or Keras.

    Args:
        json_string: Text returned by `Model.to_json`.
        custom_objects: Dict from name to class or function, searched before the
            registered ones.

    Raises:
        ValueError: If the text is not JSON or not a model, or names an unknown class.
        TypeError: If ``json_string`` is not a string.
    """
    import json

    if not isinstance(json_string, (str, bytes)):
        raise TypeError(
            f"model_from_json: json_string must be a string, got {json_string!r}"
        )
    if isinstance(json_string, bytes):
        json_string = json_string.decode(json.detect_encoding(json_string))
    config = strict_json.loads(json_string, finite=False)
    with load_errors("model_from_json", Exception):
        model = deserialize_keras_object(config, custom_objects, kind="layer")
    if not isinstance(model, Model):
        raise ValueError(
            f"model_from_json: json_string must describe a model, got {model!r:.80}"
        )
    return model


register("layer", "Functional", Model)  # as Keras names models with inputs and outputs


def of_any_batch(tensor):
    """Return the shape of a tensor with None for the batch; None if it has no shape."""
    shape = getattr(tensor, "shape", None)
    return None if shape is None else (None, *static_shapes(tuple(shape)[1:]))


def in_rank_of(expected, tensor, title):
    """Return the tensor in the rank of an input; a last axis of size 1 is added or removed.

    Raises:
        ShapeError: If the rank differs otherwise.
    """
    rank, shape = len(tensor.shape), expected.shape
    if rank == len(shape):
        return tensor
    if rank == len(shape) + 1 and tensor.shape[-1] == 1:
        return squeeze(tensor, -1)
    if rank == len(shape) - 1 and shape[-1] == 1:
        return expand_dims(tensor, -1)
    raise _wrong_shape(expected, tensor, title)


def _fits(shape, expected):
    """Return whether the known sizes agree; like Keras, a last axis of 1 accepts any size."""
    if expected[-1:] == (1,):
        shape, expected = shape[:-1], expected[:-1]
    return all([n is None or m is None or m == n for m, n in zip(shape, expected)])


def _wrong_shape(expected, tensor, title):
    sizes = tuple(expected.shape)
    what = f"the input '{expected.name}' must have shape {sizes}"
    if tuple(tensor.shape) == sizes[1:]:
        what += "; one sample needs a batch axis: x[None]"
    return ShapeError(title, what, given=tensor)


def _single(shapes):
    """Return the only shape of a list of length 1, else the argument."""
    if is_nested(shapes) and len(shapes) == 1 and not isinstance(shapes, dict):
        inner = shapes[0]
        return inner if isinstance(inner, tuple) else shapes
    return shapes


def _with_known_sizes(x, expected):
    """Return a symbolic tensor, its unknown sizes taken from ``expected``."""
    shape, known = (x.shape, expected.shape) if x is not None else ((), ())
    if len(shape) != len(known) or not any(
        [n is None and m is not None for n, m in zip(shape, known)]
    ):
        return x
    sizes = [m if n is None else n for n, m in zip(shape, known)]
    narrowed = KerasTensor(sizes, x.dtype)
    narrowed.mask_spec = x.mask_spec
    return narrowed
