"""Names of PyTorch, and what to write here: the tables of ``docs/coming_from/pytorch.md``.

Each table maps a name to the text behind "has no attribute ...:". Attributes of tensors,
layers and optimizers are `Elsewhere`, which classes get from `explain_elsewhere`; names of
modules are looked up by `api.names.missing_names`.
"""

from __future__ import annotations

from typing import Any

from .. import hooks
from ..names.reserved_names import Replaceable


def _table(*rows: tuple[str, str]) -> dict[str, str]:
    return {name: f"use {here}" for names, here in rows for name in names.split()}


# Methods of tensors, and of variables.
OF_TENSORS = _table(
    ("item", "float(x)"),
    ("tolist", "x.numpy().tolist()"),
    ("to", "tw.cast(x, dtype), or `with tw.device(name):` around the program"),
    ("type astype", "tw.cast(x, dtype)"),
    ("float half double long int bool", "tw.cast(x, dtype)"),
    ("cuda cpu", "`with tw.device(name):` around the program"),
    ("dim", "x.ndim"),
    ("size", "x.shape, or tw.size(x)"),
    ("numel", "tw.size(x)"),
    ("view reshape flatten", "tw.reshape(x, shape)"),
    ("permute T t", "tw.transpose(x)"),
    ("transpose swapaxes", "tw.keras.ops.swapaxes(x, axis1, axis2)"),
    ("mT", "tw.linalg.matrix_transpose(x)"),
    ("unsqueeze", "tw.expand_dims(x, axis)"),
    ("squeeze", "tw.squeeze(x)"),
    ("split chunk", "tw.split(x, parts)"),
    ("unbind", "tw.unstack(x)"),
    ("expand expand_as", "tw.broadcast_to(x, shape)"),
    ("repeat", "tw.tile(x, multiples)"),
    ("repeat_interleave", "tw.repeat(x, repeats)"),
    ("clone contiguous copy",
     "the tensor itself, which is immutable, or tw.Variable(v) for a copy of a variable"),
    ("sum", "tw.reduce_sum(x)"),
    ("mean", "tw.reduce_mean(x)"),
    ("max amax", "tw.reduce_max(x)"),
    ("min amin", "tw.reduce_min(x)"),
    ("prod", "tw.reduce_prod(x)"),
    ("std", "tw.math.reduce_std(x)"),
    ("var", "tw.math.reduce_variance(x)"),
    ("logsumexp", "tw.reduce_logsumexp(x)"),
    ("any", "tw.reduce_any(x)"),
    ("all", "tw.reduce_all(x)"),
    ("argmax", "tw.argmax(x)"),
    ("argmin", "tw.argmin(x)"),
    ("topk", "tw.math.top_k(x)"),
    ("sort", "tw.sort(x)"),
    ("cumsum", "tw.cumsum(x)"),
    ("clamp clip", "tw.clip_by_value(x, low, high)"),
    ("norm", "tw.norm(x)"),
    ("dot mm bmm matmul", "tw.matmul(a, b), or a @ b"),
    ("abs exp log pow relu round sigmoid softmax sqrt tanh",
     "the function: tw.exp(x), tw.nn.relu(x)"),
    ("index_select", "tw.gather(x, indices)"),
    ("masked_select", "tw.boolean_mask(x, mask)"),
    ("index_add", "tw.tensor_scatter_nd_add"),
    ("scatter_add", "tw.math.unsorted_segment_sum"),
    ("masked_fill", "tw.where(mask, value, x)"),
    ("detach detach_", "tw.stop_gradient(x)"),
    ("backward grad", "tape.gradient(loss, variables) of a tw.GradientTape"),
    ("requires_grad",
     "tw.Variable(data, trainable=False) for a variable, tape.watch(x) for a tensor"),
    ("requires_grad_", "tape.watch(x) of a tw.GradientTape"),
    ("data", "x.numpy(), or v.assign(value) to change a variable"),
    ("add_ copy_ fill_ mul_ sub_ zero_",
     "v.assign(value) of a variable, or v.assign_add(value)"),
)  # fmt: skip

# Methods of modules.
OF_LAYERS = _table(
    ("parameters named_parameters", "layer.trainable_variables"),
    ("buffers named_buffers", "layer.non_trainable_variables"),
    ("modules named_modules children named_children", "layer.submodules, or model.layers"),
    ("train", "model(x, training=True)"),
    ("eval", "model(x, training=False), the default"),
    ("forward", "call(inputs) as the name of the method, and call the layer: layer(inputs)"),
    ("weight", "layer.kernel, or layer.weights for all"),
    ("register_buffer", "layer.add_weight(trainable=False)"),
    ("register_parameter", "layer.add_weight"),
    ("register_module add_module", "an attribute: self.layer = layer"),
    ("requires_grad_", "layer.trainable = False"),
    ("state_dict", "model.save_weights(path), or layer.get_weights()"),
    ("load_state_dict", "model.load_weights(path), or layer.set_weights(arrays)"),
    ("zero_grad", "a new tape for each step: tape.gradient returns the gradients"),
    ("to cuda cpu", "`with tw.device(name):` around the program"),
    ("half double", "tw.keras.config.set_dtype_policy before the model is made"),
)  # fmt: skip

OF_OPTIMIZERS = _table(
    ("lr", "optimizer.learning_rate"),
    ("step", "optimizer.apply(gradients, variables)"),
    ("zero_grad", "a new tape for each step: tape.gradient returns the gradients"),
    ("param_groups", "optimizer.learning_rate"),
    ("state_dict load_state_dict", "tw.train.Checkpoint(optimizer=optimizer)"),
)

# Names of torch, torch.nn, torch.nn.functional, torch.utils.data and so on.
MODULES = _table(
    ("tensor as_tensor", "tw.constant(data)"),
    ("from_numpy", "tw.convert_to_tensor(a)"),
    ("FloatTensor", 'tw.constant(data, dtype="float32")'),
    ("LongTensor", 'tw.constant(data, dtype="int64")'),
    ("long", "tw.int64"),
    ("Parameter", "tw.Variable(data)"),
    ("full", "tw.fill(shape, value)"),
    ("arange", "tw.range(start, limit)"),
    ("cat concatenate", "tw.concat(tensors, axis)"),
    ("chunk", "tw.split(x, parts)"),
    ("unbind", "tw.unstack(x)"),
    ("unsqueeze", "tw.expand_dims(x, axis)"),
    ("permute", "tw.transpose(x, perm)"),
    ("mean", "tw.reduce_mean(x)"),
    ("sum", "tw.reduce_sum(x)"),
    ("max amax", "tw.reduce_max(x), or tw.maximum(x, y)"),
    ("min amin", "tw.reduce_min(x), or tw.minimum(x, y)"),
    ("prod", "tw.reduce_prod(x)"),
    ("std", "tw.math.reduce_std(x)"),
    ("var", "tw.math.reduce_variance(x)"),
    ("any", "tw.reduce_any(x)"),
    ("all", "tw.reduce_all(x)"),
    ("topk", "tw.math.top_k(x)"),
    ("clamp clip", "tw.clip_by_value(x, low, high)"),
    ("mm bmm", "tw.matmul(a, b)"),
    ("manual_seed", "tw.random.set_seed(seed)"),
    ("randn", "tw.random.normal(shape)"),
    ("rand", "tw.random.uniform(shape)"),
    ("randint", "tw.keras.random.randint(shape, minval, maxval)"),
    ("randperm", "tw.random.shuffle(tw.range(n))"),
    ("no_grad inference_mode", "no tape; tape.stop_recording() inside one"),
    ("autograd grad", "tape.gradient(y, x) of a tw.GradientTape"),
    ("compile jit", "tw.function"),
    ("export", "tw.saved_model.save"),
    ("save", "model.save(path)"),
    ("load", "tw.keras.models.load_model(path)"),
    ("cuda", "`with tw.device(name):` around the program, and "
     'tw.config.list_physical_devices("GPU") for cuda.is_available()'),
    ("Module", "tw.keras.Layer or tw.keras.Model, or tw.Module for plain classes"),
    ("Sequential", "tw.keras.Sequential"),
    ("optim lr_scheduler", "tw.optimizers, and its schedules"),
    ("utils", "tw.data.Dataset for utils.data, tw.keras.utils"),
    ("DataLoader TensorDataset", "tw.data.Dataset.from_tensor_slices"),
    ("functional", "tw.nn, which has functions, and tw.layers for modules"),
    ("Linear", "tw.layers.Dense(units)"),
    ("Conv1d", "tw.layers.Conv1D"),
    ("Conv2d", "tw.layers.Conv2D"),
    ("Conv3d", "tw.layers.Conv3D"),
    ("ConvTranspose2d", "tw.layers.Conv2DTranspose"),
    ("MaxPool2d", "tw.layers.MaxPooling2D"),
    ("AvgPool2d", "tw.layers.AveragePooling2D"),
    ("AdaptiveAvgPool2d", "tw.layers.GlobalAveragePooling2D"),
    ("BatchNorm1d BatchNorm2d", "tw.layers.BatchNormalization"),
    ("LayerNorm", "tw.layers.LayerNormalization"),
    ("GroupNorm", "tw.layers.GroupNormalization"),
    ("RMSNorm", "tw.layers.RMSNormalization"),
    ("RNN", "tw.layers.SimpleRNN"),
    ("MultiheadAttention", "tw.layers.MultiHeadAttention"),
    ("take_along_dim", "tw.keras.ops.take_along_axis(x, indices, axis)"),
    ("index_select", "tw.gather(x, indices)"),
    ("masked_select", "tw.boolean_mask(x, mask)"),
    ("outer", "tw.keras.ops.outer(a, b)"),
    ("isnan", "tw.math.is_nan(x)"),
    ("logaddexp", "tw.keras.ops.logaddexp(x, y)"),
    ("stft", "tw.signal.stft"),
    ("Generator", "tw.random.Generator"),
    ("set_num_threads", "tw.config.set_threads"),
    ("Embedding Dropout Flatten LSTM GRU ReLU", "the layer of this name in tw.layers"),
    ("GELU", 'tw.layers.Activation("gelu")'),
    ("Sigmoid", 'tw.layers.Activation("sigmoid")'),
    ("Tanh", 'tw.layers.Activation("tanh")'),
    ("Upsample", "tw.layers.UpSampling2D"),
    ("ModuleList", "a list as an attribute of a layer or model"),
    ("CrossEntropyLoss cross_entropy nll_loss",
     "tw.losses.SparseCategoricalCrossentropy(from_logits=True)"),
    ("BCEWithLogitsLoss", "tw.losses.BinaryCrossentropy(from_logits=True)"),
    ("BCELoss", "tw.losses.BinaryCrossentropy()"),
    ("MSELoss mse_loss", "tw.losses.MeanSquaredError()"),
    ("L1Loss", "tw.losses.MeanAbsoluteError()"),
    ("HuberLoss SmoothL1Loss", "tw.losses.Huber()"),
    ("CTCLoss", "tw.losses.CTC()"),
    ("kaiming_normal_", "tw.initializers.HeNormal()"),
    ("xavier_uniform_", "tw.initializers.GlorotUniform()"),
    ("clip_grad_norm_", "global_clipnorm= of an optimizer, or tw.clip_by_global_norm"),
    ("vmap", "tw.vectorized_map"),
)  # fmt: skip


def numpy_function_here(name: str) -> str:
    """Return what to use here for a function of NumPy on a tensor, or "".

    >>> from tapewright.core.messages.names_of_pytorch import numpy_function_here
    >>> numpy_function_here("mean"), numpy_function_here("sin")
    ('use tw.reduce_mean(x)', 'use tw.sin')
    """
    if name in hooks.public_names.call():
        return f"use tw.{name}"
    return OF_TENSORS.get(name) or MODULES.get(name, "")


class Elsewhere(Replaceable[Any]):
    """An attribute that another library has: reading it tells what to use here.

    It is as if the attribute did not exist: `hasattr` is False, `dir` of an object leaves it
    out, and attributes and methods of users replace it. Other attributes cost nothing,
    unlike with ``__getattr__``.
    """

    def __init__(self, name: str, here: str):
        super().__init__(self.refuse)
        self.name, self.here = name, here

    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        return self.refuse(cls if owner is None else owner)

    def refuse(self, owner: Any) -> Any:
        """Raise the ``AttributeError``."""
        is_class = isinstance(owner, type)
        title = f"type object {owner.__name__!r}" if is_class else ""
        raise AttributeError(
            f"{title or f'{type(owner).__name__!r} object'} has no attribute "
            f"{self.name!r}: {self.here}",
            name=self.name,
            obj=None,  # no second guess in tracebacks
        )

    def __repr__(self) -> str:
        return f"<{self.here}>"


class _Fixed(Elsewhere):
    """One whose assignment is refused, too: it would have no effect."""

    def __set__(self, owner: Any, value: Any) -> None:
        self.refuse(owner)


def explain_elsewhere(
    cls: type, names: dict[str, str], fixed: tuple[str, ...] = ()
) -> None:
    """Let a class tell what to use instead of the attributes that another library has.

    Args:
        cls: The class.
        names: For each name what to use.
        fixed: Names that no object of the class can have as an attribute either.
    """
    for name, here in names.items():
        if not hasattr(cls, name):
            kind = _Fixed if name in fixed else Elsewhere
            type.__setattr__(cls, name, kind(name, here))
    type.__setattr__(cls, "__dir__", _present)


def _present(owner):
    """List the attributes of an object without those that are `Elsewhere`."""
    absent = set()
    for cls in reversed(type(owner).__mro__):
        for name, value in vars(cls).items():
            (absent.add if isinstance(value, Elsewhere) else absent.discard)(name)
    absent -= getattr(owner, "__dict__", {}).keys()
    return [name for name in object.__dir__(owner) if name not in absent]
