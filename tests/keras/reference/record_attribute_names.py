"""Writes ``attribute_names.json``: the names of all attributes of Keras' classes.

Run with Keras 3 and TensorFlow installed:

    KERAS_BACKEND=tensorflow python tests/keras/reference/record_attribute_names.py

For each public class: the nearest base that is recorded as well, and the names that it has
beside those of that base, also of attributes that its methods set. `tf.Module` is recorded
as "Module", the class of functional models as "Functional". Of TensorFlow's classes, which
users rarely extend, the public names alone are recorded.
"""

import ast
import inspect
import json
import textwrap
from pathlib import Path

MODULES = (
    "callbacks", "constraints", "dtype_policies", "initializers", "layers", "losses",
    "metrics", "models", "optimizers", "optimizers.schedules", "regularizers",
)  # fmt: skip
OTHERS = """
    Function KerasTensor Operation Variable distribution.DataParallel random.SeedGenerator
    utils.FeatureSpace utils.Progbar utils.PyDataset
""".split()
TENSORFLOW = """
    GradientTape IndexedSlices RaggedTensor RaggedTensorSpec SparseTensor SparseTensorSpec
    Tensor TensorArray TensorShape TensorSpec Variable data.Dataset data.Options
    distribute.MultiWorkerMirroredStrategy distribute.Strategy dtypes.DType errors.OpError
    lookup.StaticHashTable queue.QueueBase random.Generator saved_model.LoadOptions
    saved_model.SaveOptions summary.SummaryWriter train.Checkpoint train.CheckpointManager
""".split()


def find(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module


def attribute_names(cls):
    """Names in the class, its bases, and on ``self`` in their methods."""
    names = set(dir(cls))
    for base in cls.__mro__:
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except (OSError, TypeError):  # of C
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if isinstance(node.value, ast.Name) and node.value.id == "self":
                    names.add(node.attr)
    return names - set(dir(object))


def main():
    import tensorflow as tf
    from keras.src.models.functional import Functional

    import keras

    classes = {tf.Module: "Module", Functional: "Functional"}
    for path in MODULES:
        for name, cls in sorted(vars(find(keras, path)).items()):
            if inspect.isclass(cls) and name[0].isupper():
                classes.setdefault(cls, f"{path}.{cls.__name__}")
    recorded = {}
    for cls, name in classes.items():
        base = next((b for b in cls.__mro__[1:] if b in classes), None)
        names = attribute_names(cls) - (attribute_names(base) if base else set())
        recorded[name] = [base and classes[base], " ".join(sorted(names))]
    for path in OTHERS:
        recorded[path] = [None, " ".join(sorted(attribute_names(find(keras, path))))]
    dataset = tf.data.Dataset.range(1)
    theirs = {path: [find(tf, path)] for path in TENSORFLOW}
    theirs["Tensor"] += [type(tf.constant(1.0))]
    theirs["Variable"] += [type(tf.Variable(1.0))]
    theirs["data.DatasetIterator"] = [type(iter(dataset))]
    theirs["data.NumpyIterator"] = [type(dataset.as_numpy_iterator())]
    theirs["data.Optional"] = [tf.experimental.Optional]
    for path, types in theirs.items():
        names = {n for cls in types for n in attribute_names(cls) if n[0] != "_"}
        recorded[f"tf.{path}"] = [None, " ".join(sorted(names))]
    lines = [f"{json.dumps(k)}: {json.dumps(x)}" for k, x in sorted(recorded.items())]
    text = "{" + f'"keras": "{keras.__version__}",\n' + ",\n".join(lines) + "}\n"
    Path(__file__).with_name("attribute_names.json").write_text(text)


if __name__ == "__main__":
    main()
