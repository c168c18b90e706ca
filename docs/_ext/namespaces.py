"""The public names: which namespaces there are, and what each of them describes.

An object with several names (`tw.exp`, `tw.math.exp`) is described in the first of the
`NAMESPACES` that has it.
"""

import importlib
import inspect
import types
from dataclasses import dataclass, field

__all__ = [
    "FOLDERS",
    "NAMESPACES",
    "SAME",
    "Entry",
    "find_entries",
    "full_name",
    "is_ours",
    "members",
    "public_names",
]

# In the order in which they claim objects: a subject comes before the top level.
NAMESPACES = """
    keras.layers keras.models keras.losses keras.metrics keras.callbacks keras.optimizers
    keras.optimizers.schedules keras.initializers keras.regularizers keras.constraints
    keras.saving keras.utils keras.utils.bounding_boxes keras.utils.legacy
    keras.preprocessing.image keras.preprocessing.sequence keras.preprocessing.text
    keras.random keras.config keras.distribution keras.dtype_policies
    keras.applications keras.applications.imagenet_utils keras.tree
    keras.applications.convnext keras.applications.densenet
    keras.applications.efficientnet keras.applications.efficientnet_v2
    keras.applications.inception_resnet_v2 keras.applications.inception_v3
    keras.applications.mobilenet keras.applications.mobilenet_v2
    keras.applications.mobilenet_v3 keras.applications.nasnet keras.applications.resnet
    keras.applications.resnet50 keras.applications.resnet_v2 keras.applications.vgg16
    keras.applications.vgg19 keras.applications.xception
    autodiff autograph bitwise linalg signal strings lookup sparse ragged sets
    image audio random nn queue raw_ops
    math math.special nest dtypes errors config data data.experimental datasets
    datasets.digits datasets.mnist datasets.fashion_mnist datasets.cifar10
    datasets.cifar100 datasets.imdb datasets.reuters
    datasets.boston_housing datasets.california_housing saved_model onnx io io.gfile train
    distribute distribute.cluster_resolver debugging profiler plot summary test version
    compat
    compat.v1 compat.v1.logging config.optimizer config.threading
    tapewright experimental.numpy experimental.numpy.random
    keras.activations keras.ops keras.ops.image keras.backend keras.mixed_precision keras
""".split()
# Namespaces whose names are all described in another one: they have no page.
SAME = {
    name: f"keras.{name}"
    for name in "layers losses metrics callbacks optimizers initializers".split()
}
SAME |= {f"keras.{name}": name for name in NAMESPACES if name.startswith("datasets.")}
SAME |= {"keras.ops.linalg": "keras.ops", "keras.ops.nn": "keras.ops"}
SAME |= {"optimizers.schedules": "keras.optimizers.schedules", "testing": "test"}
# Namespaces of namespaces.
FOLDERS = {"experimental", "keras.datasets", "keras.preprocessing"}
# The headings of long namespaces, by the folders or files that define their names; other
# names are listed under the name of their file.
FAMILIES = {
    "core layers": "layers.core layers.embedding layers.lambda_layer layers.base "
    "layers.preprocessing.pipeline serialization",
    "convolution layers": "layers.convolution",
    "pooling layers": "layers.pooling",
    "recurrent layers": "layers.rnn",
    "attention layers": "layers.attention",
    "normalization layers": "layers.normalization",
    "regularization layers": "layers.noise",
    "activation layers": "layers.activation_layers",
    "reshaping layers": "layers.reshaping",
    "merging layers": "layers.merging",
    "wrappers": "layers.wrappers",
    "preprocessing layers": "layers.preprocessing",
    "image augmentation layers": "layers.augmentation",
    "image files": "io.images",
    "boxes": "ops.image.boxes ops.image.box_sampling ops.image.suppression",
    "colors": "ops.image.color ops.image.adjusting ops.image.quality ops.image.pixels",
    "resizing, cropping and flipping": "ops.image.resizing ops.image.cropping "
    "ops.image.flipping",
    "random images": "ops.image.random_images",
    "convolution and pooling": "ops.convolution",
    "activations and dropout": "ops.nn.activation ops.nn.dropout ops.nn.bias "
    "layers.activations",
    "normalization": "ops.nn.normalization ops.nn.moments",
    "losses": "ops.nn.cross_entropy ops.nn.sampled_loss api.ctc",
    "special functions": "ops.math.special ops.math.bessel ops.math.beta ops.math.gamma "
    "ops.math.xlogy",
    "reductions and scans": "ops.math.reduction ops.math.scan ops.array.segment",
    "arrays": "ops.array ops.ragged ops.sparse",
    "gradients": "autodiff",
    "functions and control flow": "compiler",
    "tensors and variables": "core io.tensor_messages",
}
FAMILY_OF = {
    start: name for name, starts in FAMILIES.items() for start in starts.split()
}


@dataclass(eq=False)  # values may compare as arrays do
class Entry:
    """A public object: the name of its entry, and its other names."""

    value: object
    name: str
    others: list[str] = field(default_factory=list)

    @property
    def short(self):
        return self.name.rpartition(".")[2]

    @property
    def family(self):
        module = getattr(self.value, "__module__", None) or "tapewright.core"
        path = module.split(".")[1:]
        for end in range(len(path), 0, -1):
            if ".".join(path[:end]) in FAMILY_OF:
                return FAMILY_OF[".".join(path[:end])]
        return module.rpartition(".")[2].replace("_", " ")

    @property
    def summary(self):
        if not (inspect.isroutine(self.value) or inspect.isclass(self.value)):
            return f"``{self.value!r}``"
        return (inspect.getdoc(self.value) or "").partition("\n")[0]


def public_names(module):
    """The names of a namespace that are no modules, those of definitions first."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    names = [n for n in names if not isinstance(getattr(module, n), types.ModuleType)]
    return sorted(names, key=lambda n: own_name(getattr(module, n), n) != n)


def own_name(value, name):
    """The name under which a function, a class or a dtype was defined."""
    return getattr(value, "__name__", None) or getattr(value, "name", name)


def full_name(namespace):
    return namespace if namespace == "tapewright" else f"tapewright.{namespace}"


def find_entries():
    """``{namespace: its entries}``, and all entries."""
    pages, entries = {}, {}
    for namespace in NAMESPACES:
        full = full_name(namespace)
        module, pages[namespace] = importlib.import_module(full), []
        for name in public_names(module):
            value = getattr(module, name)
            is_number = value is None or isinstance(value, int)
            key = f"{full}.{name}" if is_number else id(value)
            if key in entries:
                entries[key].others.append(f"{full}.{name}")
            else:
                entries[key] = Entry(value, f"{full}.{name}")
                pages[namespace].append(entries[key])
        pages[namespace].sort(key=lambda entry: entry.name.lower())
    for namespace in SAME:
        module = importlib.import_module(full_name(namespace))
        for name in public_names(module):
            if id(getattr(module, name)) in entries:
                found = entries[id(getattr(module, name))]
                found.others.append(f"{full_name(namespace)}.{name}")
    return pages, list(entries.values())


def members(cls, public):
    """Yield name and member of what a class defines, as `vars` has it.

    A base without an entry of its own counts as part of the class.

    Args:
        cls: The class.
        public: Classes with entries.
    """
    above = {
        each for base in cls.__mro__[1:] if base in public for each in base.__mro__
    }
    found = {}
    for base in reversed(cls.__mro__):
        if is_ours(base) and base not in above:
            found |= vars(base)
    for name, member in found.items():
        if hasattr(cls, name):
            yield name, member


def is_ours(value):
    """Return whether the package defines a class or a function."""
    return str(getattr(value, "__module__", "")).startswith("tapewright")
