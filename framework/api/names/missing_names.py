"""Names that TensorFlow or Keras have and tapewright lacks, and what to use instead.

`ADVICE` covers commonly used names. The others are in ``known_names.txt``, a line for
each namespace, written by ``tests/reference/record_names.py``. The module is imported
when a lookup fails; see `explain_missing`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from difflib import get_close_matches
from collections.abc import Iterable

from tapewright.core.messages.names_of_pytorch import MODULES
from tapewright.core.messages.suggestions import did_you_mean

# Namespaces of `tapewright.keras` that are also in `tapewright`.
_OF_KERAS = ("callbacks", "initializers", "layers", "losses", "metrics", "optimizers")
# (namespaces, names, replacement, or "" if not planned)
ADVICE: tuple[tuple[str, str, str], ...] = (
    ("tf", "feature_column", "tw.keras.utils.FeatureSpace, or layers for its columns:"
     " tw.keras.layers.Normalization (numeric_column), Discretization"
     " (bucketized_column), StringLookup and IntegerLookup (categorical_column_with_"
     "vocabulary_list), Hashing (categorical_column_with_hash_bucket), CategoryEncoding"
     " (indicator_column), Embedding (embedding_column), HashedCrossing (crossed_column)"),
    ("tf.io", "encode_proto", "the classes that protoc generates"),
    ("tf.lookup", "experimental", "tw.lookup.StaticHashTable, or a Python dict"),
    ("tf.strings", "unicode_script", "unicodedata.name, whose first word is the script"),
    ("tf.ragged tf.sparse", "cross cross_hashed", "tw.strings.join, to combine the columns"),
    ("tf.sparse", "sampled_addmm", "tw.gather on the rows, and tw.SparseTensor.with_values"),
    ("tf", "Graph Operation", "get_concrete_function(...).graph of a tw.function, which"
     " has get_operations()"),
    ("tf", "import_graph_def graph_util", "tw.function"),
    ("tf", "quantization qint8 qint16 qint32 quint8 quint16", "tw.bfloat16 or tw.float16"),
    ("tf.experimental", "ExtensionType BatchableExtensionType", "a NamedTuple with"
     " tw.nest, or tw.Module"),
    ("tf.experimental", "DynamicRaggedShape RowPartition StructuredTensor",
     "tw.RaggedTensor"),
    ("tf.experimental", "Optional", "None for a missing value"),
    ("tf.experimental", "dlpack", "numpy.from_dlpack and tw.convert_to_tensor"),
    ("tf.experimental", "dtensor tensorrt", ""),
    ("tf", "lite tpu mlir xla dtensor types", ""),
    ("tf.autodiff", "GradientTape", "tw.GradientTape"),
    ("tf.data", "DatasetSpec IteratorSpec", "element_spec of a tw.data.Dataset"),
    ("tf.data.experimental", "copy_to_device prefetch_to_device",
     "tw.device around the loop and Dataset.prefetch"),
    ("tf.data.experimental", "SqlDataset", "sqlite3 in tw.data.Dataset.from_generator"),
    ("tf.data.experimental", "make_batched_features_dataset parse_example_dataset",
     "tw.data.TFRecordDataset and tw.io.parse_example"),
    ("tf.data.experimental", "TFRecordWriter", "tw.io.TFRecordWriter"),
    ("tf.data.experimental", "dense_to_sparse_batch", "Dataset.sparse_batch"),
    ("tf.data.experimental", "enable_debug_mode",
     "tw.config.run_functions_eagerly(True)"),
    ("tf.distribute", "TPUStrategy ParameterServerStrategy",
     "tw.distribute.MultiWorkerMirroredStrategy"),
    ("tf.distribute.cluster_resolver", "ClusterResolver SimpleClusterResolver"
     " SlurmClusterResolver TFConfigClusterResolver",
     "mpiexec, with tw.distribute.rank and tw.distribute.size"),
    ("tf.image", "generate_bounding_box_proposals",
     "tw.image.combined_non_max_suppression on decoded boxes"),
    ("tf.linalg", "LinearOperator LinearOperatorDiag LinearOperatorFullMatrix"
     " LinearOperatorIdentity LinearOperatorLowerTriangular", "a matrix and tw.linalg.matmul"),
    ("tf.nn", "fractional_max_pool", "tw.nn.max_pool2d"),
    ("tf.nn", "fractional_avg_pool", "tw.nn.avg_pool2d"),
    ("keras", "export", "Model.export, tw.saved_model.save"),
    ("keras", "wrappers", "a custom class with fit and predict"),
    ("keras", "visualization", "tw.plot"),
    ("keras", "quantizers Quantizer distillation SymbolicScope", ""),
    ("keras", "legacy", "tw.keras.saving"),
    ("keras.backend", "gradients", "tw.GradientTape"),
    ("keras.backend", "ctc_label_dense_to_sparse", "dense labels with tw.keras.ops.ctc_loss"),
    ("keras.callbacks", "OrbaxCheckpoint", "tw.keras.callbacks.BackupAndRestore"),
    ("keras.distribution", "ModelParallel LayoutMap DeviceMesh TensorLayout",
     "tw.keras.distribution.DataParallel"),
    ("keras.dtype_policies", "AWQDTypePolicy GPTQDTypePolicy Int4DTypePolicy"
     " QuantizedDTypePolicy QuantizedFloat8DTypePolicy", ""),
    ("keras.layers", "JaxLayer FlaxLayer TFSMLayer TorchModuleWrapper",
     "tw.numpy_function (no gradient)"),
    ("keras.optimizers", "legacy", "tw.keras.optimizers"),
    ("keras.ops", "numpy", "tw.keras.ops"),
)  # fmt: skip


def reason(module: str, name: str, present: Iterable[str]) -> str:
    """Return the end of an error about a name that a namespace lacks, or "".

    The name may belong to TensorFlow, Keras or PyTorch, or be misspelt.

    Args:
        module: Public name of the namespace, "tapewright.image".
        name: Name that is missing.
        present: Existing names, of which a similar one is suggested.

    Example:
        >>> from tapewright.api.names.missing_names import reason
        >>> reason("tapewright.lookup", "experimental", ())
        ': instead of tf.lookup.experimental, use tw.lookup.StaticHashTable, or a Python dict'
        >>> reason("tapewright.math", "reduce_maen", ["reduce_mean"])
        ". Did you mean 'reduce_mean'?"
    """
    space = _space_of(module)
    theirs = f"{space}.{name}"
    advice = _advice_on_v1(name) if space == "tf.compat.v1" else advice_of(space, name)
    if advice:
        return f": instead of {theirs}, use {advice}"
    if advice is not None:
        return f": {theirs} is not planned"
    if name in known_names().get(space, ()):
        library = "Keras" if space.startswith("keras") else "TensorFlow"
        return f": {library} has {theirs}; tapewright does not"
    if name in MODULES:
        return f": {MODULES[name]}"
    hint = did_you_mean(name, [n for n in present if n[0] != "_"], 0.75)
    near = [] if hint else get_close_matches(name, MODULES, 1, 0.9)
    return f". Did you mean {near[0]!r}? Here, {MODULES[near[0]]}" if near else hint


def _space_of(module):
    """Return the namespace of TensorFlow or Keras to which a module corresponds."""
    path = module.partition(".")[2]
    first = path.partition(".")[0]
    if first == "keras":
        return path
    if first in _OF_KERAS:
        return f"keras.{path}"
    return f"tf.{path}" if path else "tf"


def _advice_on_v1(name):
    """Return advice on a name of TensorFlow 1: its name in TensorFlow 2."""
    here = name in importlib.import_module("tapewright").__all__
    return f"tw.{name}" if here else "the TensorFlow 2 API, which has no sessions"


def advice_of(namespace: str, name: str) -> str | None:
    """Return the replacement for a name; "" if it is not planned, None if unknown."""
    return _advice().get(f"{namespace}.{name}")


@functools.cache
def _advice():
    return {
        f"{namespace}.{name}": text
        for namespaces, names, text in ADVICE
        for namespace in namespaces.split()
        for name in names.split()
    }


@functools.cache
def known_names() -> dict[str, list[str]]:
    """Return the public names of each namespace of TensorFlow 2.21 and Keras 3.15."""
    text = pkgutil.get_data(__package__, "known_names.txt").decode()  # also from a zip
    lines = [line.partition(": ") for line in text.splitlines()]
    return {namespace: names.split() for namespace, _, names in lines}
