"""Record what TensorFlow's sparse and ragged tensors give, in ``sparse.json`` beside this file.

Run it with a Python that has TensorFlow 2.21: ``python record.py``. A case is an expression
of ``tf`` and of the values below; its gradient is by what `SOURCES` names, at a sum with
weights 1, 2, 3, ... of all entries.
"""

import json
import math
import pathlib
import re

S = """
    sp=([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])
    un=([[2, 0], [0, 1]], [2.0, 1.0], [3, 2])
    dup=([[0, 1], [0, 1]], [2.0, 1.0], [3, 2])
    out=([[0, 1], [3, 1]], [2.0, 1.0], [3, 2])
    other=([[0, 1], [1, 1]], [-1.0, 5.0], [3, 2])
    neg=([[0, 0], [1, 0], [1, 1]], [-7.0, 4.0, 3.0], [3, 2])
    cube=([[0, 0, 2], [0, 1, 0], [1, 2, 1]], [1.0, 2.0, 3.0], [2, 3, 4])
    wide=([[0, 1]], [9.0], [4, 2])
    ids=([[0, 0], [0, 1], [2, 0]], [1, 0, 2], [4, 2])
    ids3=([[0, 0, 0], [0, 1, 1], [1, 0, 0]], [1, 0, 2], [2, 2, 2])
    bad=([[0, 0], [0, 1], [2, 0]], [1, -1, 2], [4, 2])
    w=([[0, 0], [0, 1], [2, 0]], [0.5, 2.0, 3.0], [4, 2])
    w0=([[0, 0], [0, 1], [2, 0]], [0.5, 0.0, -3.0], [4, 2])
"""
SPARSE = {
    name: eval(parts)  # noqa: S307
    for name, parts in [line.strip().split("=") for line in S.strip().splitlines()]
}
RAGGED = {
    "r": [[1.0, 2.0], [], [3.0]],
    "q": [[4.0, -5.0], [], [6.0]],
    "t": [[1.0], [2.0, 3.0]],
    "nested": [[[1.0, 2.0]], [[], [3.0]]],
}
DENSE = {
    "d": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "b": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    "row": [10.0, 20.0],
    "col": [[10.0], [20.0], [30.0]],
    "z": 3.0,
}
# What a gradient is by: of sparse and ragged ones the values, in float64.
SOURCES = {*SPARSE, *RAGGED, *DENSE} - {"ids", "bad", "ids3"}

SP = "tf.sparse."
CASES = [
    "tf.SparseTensor([0, 1], [1.0, 2.0], [3])",
    "tf.SparseTensor([[0]], [1.0, 2.0], [3])",
    "tf.SparseTensor([[0]], [1.0], [3, 2])",
    *[f"{SP}to_dense({x})" for x in ("sp", "un", "dup", "out", "cube", "ids")],
    f"{SP}to_dense(sp, z)",
    f"{SP}to_dense(un, validate_indices=False)",
    f"{SP}to_dense(tf.SparseTensor([[1]], ['a'], [3]))",
    f"{SP}from_dense([[0, 3], [1, 0]])",
    f"{SP}from_dense(['', 'a'])",
    f"{SP}from_dense(d)",
    f"{SP}add(sp, other)",
    f"{SP}add(sp, other, threshold=2.0)",
    f"{SP}add(sp, other, threshold=3.0)",
    f"{SP}add(sp, d)",
    f"{SP}add(d, sp)",
    f"{SP}add(sp, wide)",
    f"{SP}maximum(sp, other)",
    f"{SP}minimum(sp, other)",
    *[f"{SP}concat({axis}, [sp, neg, sp])" for axis in (0, 1, -1)],
    f"{SP}concat(1, [sp, wide], expand_nonconcat_dims=True)",
    f"{SP}concat(1, [sp, wide])",
    *[f"{SP}expand_dims(sp, {a})" for a in (None, 0, 1, -1, -2, 2, 4)],
    f"{SP}eye(2, 3)",
    f"{SP}eye(2, dtype='int64')",
    f"{SP}fill_empty_rows(sp, z)",
    *[f"{SP}reduce_sum(cube, {a})" for a in (None, 0, 1, -1, [0, 2])],
    f"{SP}reduce_sum(cube, 1, keepdims=True)",
    f"{SP}reduce_sum(cube, 1, output_is_sparse=True)",
    f"{SP}reduce_sum(cube, [0, 1], keepdims=True, output_is_sparse=True)",
    f"{SP}reduce_sum(sp, output_is_sparse=True)",
    *[f"{SP}reduce_max(neg, {a})" for a in (None, 0, 1)],
    f"{SP}reduce_max(neg, 1, output_is_sparse=True)",
    f"{SP}reorder(un)",
    f"{SP}reshape(cube, [4, -1])",
    f"{SP}reshape(sp, [4, 2])",
    f"{SP}reset_shape(cube)",
    f"{SP}reset_shape(sp, [5, 5])",
    f"{SP}reset_shape(sp, [2, 5])",
    f"{SP}retain(sp, [True, False])",
    f"{SP}retain(sp, [True])",
    f"{SP}slice(sp, [0, 0], [1, 2])",
    f"{SP}slice(cube, [0, 1, 0], [9, 2, 2])",
    f"{SP}slice(sp, [5, 0], [9, 2])",
    f"{SP}softmax(neg)",
    f"{SP}softmax(cube)",
    f"{SP}softmax(tf.SparseTensor([[0]], [1.0], [2]))",
    f"{SP}split(sp_input=cube, num_split=3, axis=2)",
    f"{SP}split(sp_input=sp, num_split=5, axis=0)",
    f"{SP}to_indicator(ids, 4)",
    f"{SP}to_indicator(ids, 2)",
    f"{SP}transpose(cube)",
    f"{SP}transpose(cube, [1, 0, 2])",
    f"{SP}map_values(tf.add, sp, sp)",
    f"{SP}map_values(tf.add, sp, 1.0)",
    f"{SP}map_values(tf.add, sp, un)",
    f"{SP}map_values(tf.add, 1.0, 2.0)",
    f"{SP}map_values(tf.reduce_sum, sp)",
    *[f"{SP}sparse_dense_matmul({x}, b)" for x in ("sp", "un", "dup", "out", "cube")],
    f"{SP}sparse_dense_matmul(sp, d, adjoint_a=True)",
    f"{SP}sparse_dense_matmul(b, sp)",
    f"{SP}sparse_dense_matmul(d, sp, adjoint_a=True)",
    f"{SP}sparse_dense_matmul(sp, d, adjoint_b=True)",
    f"{SP}sparse_dense_matmul(sp, d)",
    *[
        f"{SP}bincount({x}{more})"
        for x in ("[1, 2, 1, 4]", "[[1, 2], [1, 4]]")
        for more in ("", ", minlength=6", ", maxlength=3", ", binary_output=True",
                     ", axis=-1")
    ],
    f"{SP}bincount([1, 2, 1], weights=[1.0, 2.0, 3.0])",
    f"{SP}bincount([1, 2, 1], minlength=7, maxlength=2)",
    f"{SP}bincount(ids, axis=-1)",
    f"{SP}bincount([-1, 2])",
    *[
        f"{SP}segment_{f}(d, [0, 2, 1], [0, 0, 2]{more})"
        for f in ("sum", "mean", "sqrt_n") for more in ("", ", num_segments=4")
    ],
    f"{SP}segment_sum(d, [0, 2, 1], [0, 2, 0])",
    *[
        f"tf.nn.embedding_lookup_sparse(d, ids, {w}, combiner={c!r})"
        for w in (None, "w") for c in (None, "sum", "mean", "sqrtn")
    ],
    "tf.nn.embedding_lookup_sparse(d, ids, None, combiner='x')",
    "tf.nn.embedding_lookup_sparse(d, ids, None, combiner='sum', max_norm=1.0)",
    *[
        f"tf.nn.safe_embedding_lookup_sparse(d, {more})"
        for more in ("ids", "bad, combiner='sum'", "ids, w, default_id=2",
                     "ids, w0, combiner='sum'", "ids, w0", "ids3", "bad, default_id=1")
    ],
    "sp * 2.0", "sp / 2.0", "sp * d", "d * sp", "sp / d", "sp * row", "sp / col", "sp * b",
    "d / sp", "sp + d", "sp + sp", "sp * sp",
    "tf.abs(neg)", "tf.square(neg)", "tf.cast(neg, 'int32')", "tf.exp(neg)", "tf.sign(neg)",
    # ragged tensors
    "tf.ragged.constant([[1, 2], [], [3]])",
    "tf.ragged.constant([['a'], ['b', 'c']])",
    "tf.ragged.constant([[[1], [2, 3]], []])",
    "tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1)",
    "tf.ragged.constant([])",
    "tf.ragged.constant([1, 2])",
    "tf.ragged.constant([[], []])",
    "tf.ragged.constant([1, [2]])",
    *[
        f"tf.RaggedTensor.{f}"
        for f in (
            "from_row_splits([1, 2, 3], [0, 2, 2, 3])",
            "from_row_splits([1, 2, 3], [0, 2, 2, 4])",
            "from_row_splits([1, 2, 3], [0, 2, 1, 3])",
            "from_row_lengths([1, 2, 3], [2, 0, 1])",
            "from_row_lengths([1, 2, 3], [2, 0, 2])",
            "from_value_rowids([1, 2, 3], [0, 0, 2])",
            "from_value_rowids([1, 2, 3], [0, 0, 2], nrows=5)",
            "from_value_rowids([1, 2, 3], [0, 2, 0])",
            "from_row_starts([1, 2, 3], [0, 2, 2])",
            "from_row_limits([1, 2, 3], [2, 2, 3])",
            "from_uniform_row_length([1, 2, 3, 4], 2)",
            "from_nested_row_lengths([1, 2, 3], [[1, 2], [2, 0, 1]])",
            "from_nested_row_splits([1, 2, 3], [[0, 1, 3], [0, 2, 2, 3]])",
            "from_nested_value_rowids([1, 2, 3], [[0, 1, 1], [0, 0, 2]])",
            "from_tensor(d)", "from_tensor(d, lengths=[1, 0, 2])",
            "from_tensor([[1, 0, 2, 0], [0, 0, 0, 0]], padding=0)",
            "from_tensor([[1, 2]], lengths=[1], padding=0)",
            "from_sparse(neg)", "from_sparse(sp)",
        )
    ],
    "r.to_tensor()", "r.to_tensor(z)", "r.to_tensor(shape=(None, 1))",
    "r.to_tensor(shape=(4, 3))", "nested.to_tensor()", "nested.to_tensor(9.0)",
    "r.to_sparse()", "r.values", "r.row_splits", "r.row_lengths()", "r.value_rowids()",
    "r.nrows()", "r.row_starts()", "r.row_limits()", "r.bounding_shape()",
    "nested.bounding_shape()", "nested.flat_values", "nested.values",
    "nested.row_lengths(axis=2)", "nested.merge_dims(0, 1)", "nested.merge_dims(1, 2)",
    "r.with_values([1, 2, 3])", "r.with_flat_values([1, 2])",
    *[
        f"r[{k}]"
        for k in ("0", "-1", "5", "0:2", "::2", "::-1", ":, :1", ":, -1:", ":, 1:2",
                  "0:2, ::-1", "0, 1", ":, 0", "...")
    ],
    "nested[1]", "nested[:, :1]", "nested[:, :, :1]", "nested[1, 1]", "nested[::-1]",
    "r + 2.0", "2.0 - r", "r * q", "r / q", "r + col", "col - r", "r + d", "r + t", "-r",
    "abs(q)", "r ** 2.0", "nested * 2.0", "r > 1.0", "r == q", "r // 2.0",
    "tf.where(r > 1.0, r, -q)", "tf.square(r)", "tf.exp(nested)", "tf.cast(r, 'int32')",
    "tf.clip_by_value(r, 1.5, 2.5)", "tf.maximum(r, q)",
    *[
        f"tf.reduce_{f}({x}, {a})"
        for f, x in (("sum", "r"), ("max", "r"), ("min", "q"), ("prod", "r"))
        for a in (0, 1, -1, None)
    ],
    *[f"tf.reduce_mean(t, {a})" for a in (0, 1, None)],
    "tf.reduce_mean(tf.ragged.constant([[1, 2], [4]]))",
    "tf.reduce_mean(r, 1)", "tf.reduce_sum(r, axis=1, keepdims=True)",
    "tf.reduce_sum(nested, axis=2)", "tf.reduce_any(r > 1.0, axis=1)",
    "tf.reduce_all(r > 1.0, axis=1)",
    "tf.math.reduce_variance(t, 1)", "tf.math.reduce_variance(r)", "tf.math.reduce_std(t, -1)",
    "tf.reverse(r, [1])", "tf.reverse(r, [0])", "tf.reverse(nested, [-1])",
    *[f"tf.expand_dims(r, axis={a})" for a in (0, 1, 2, -1, -3, 3)],
    "tf.tile(r, [1, 2])", "tf.tile(t, [2, 1])", "tf.tile(nested, [1, 1, 3])",
    "tf.tile(r, [2])", "tf.nn.softmax(t)", "tf.nn.softmax(nested)", "tf.nn.dropout(r, 0.0)",
    "tf.one_hot(tf.cast(r, 'int32'), 3)", "tf.size(nested)", "tf.rank(nested)",
    "tf.zeros_like(r)", "tf.ones_like(nested)", "tf.ones_like(r, 'int32')",
    "tf.nn.embedding_lookup(d, tf.cast(r, 'int32') - 1)", "tf.map_fn(tf.square, r)",
    "tf.map_fn(tf.reduce_sum, r, fn_output_signature=tf.float32)",
    "tf.map_fn(tf.range, tf.constant([2, 0]), "
    "fn_output_signature=tf.RaggedTensorSpec([None], tf.int32))",
    "tf.strings.reduce_join(tf.ragged.constant([['a', 'b'], []]), -1, separator='+')",
    "tf.strings.reduce_join(tf.ragged.constant([[['a'], ['b', 'c']]]), axis=2)",
    "tf.strings.unicode_encode(tf.ragged.constant([[97, 233], []]), 'UTF-8')",
    "tf.concat([r, t], 0)", "tf.concat([r, q, r], 1)", "tf.concat([r, t], 1)",
    "tf.concat([r, col], 1)", "tf.concat([nested, nested], 0)",
    "tf.stack([r, t])", "tf.ragged.stack([tf.constant([1, 2]), tf.constant([3])])",
    "tf.ragged.stack([r, t])",
    "tf.gather(r, [2, 0])", "tf.gather(row, tf.ragged.constant([[1, 0], [], [1]]))",
    "tf.ragged.range([2, 0, 3])", "tf.ragged.range([0, 5], [3, 1], [1, -2])",
    "tf.ragged.range(3.0)", "tf.ragged.range([1.0, 2.0], 3.0, 0.5)",
    "tf.ragged.range([2], deltas=0)",
    "tf.ragged.map_flat_values(tf.multiply, r, q)",
    "tf.ragged.map_flat_values(tf.reduce_sum, r)",
    "tf.ragged.map_flat_values(tf.add, r, t)",
    "tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])",
    "tf.ragged.boolean_mask(r, r > 1.0)",
    "tf.ragged.row_splits_to_segment_ids([0, 2, 2, 3])",
    "tf.ragged.segment_ids_to_row_splits([0, 0, 2])",
    "tf.ragged.stack_dynamic_partitions(row, [1, 0], 3)",
    "tf.nn.embedding_lookup_sparse(d, tf.ragged.constant([[1, 0], [2]]), None, 'sum')",
]  # fmt: skip


def values(tf, wide=False):
    """The values that cases name; with ``wide`` their numbers are float64."""
    key = tf.__name__, wide
    if key not in _MADE:
        _MADE[key] = _made(tf, wide)
    return dict(_MADE[key])


_MADE = {}


def _made(tf, wide):
    def tensor(x):
        x = tf.constant(x)
        return tf.cast(x, "float64") if wide and x.dtype == tf.float32 else x

    found = {name: tensor(x) for name, x in DENSE.items()}
    for name, (indices, entries, shape) in SPARSE.items():
        entries = tensor(entries)
        if name.startswith(("ids", "bad")):
            entries = tf.cast(entries, "int64")
        found[name] = tf.SparseTensor(indices, entries, shape)
    for name, rows in RAGGED.items():
        dtype = "float64" if wide else "float32"
        found[name] = tf.ragged.constant(rows, dtype=dtype)
    return found


def flat(tf, x):
    """The tensor of a value that gradients go through."""
    if isinstance(x, tf.SparseTensor):
        return x.values
    return x.flat_values if isinstance(x, tf.RaggedTensor) else x


def plain(tf, x):
    """A value as nested lists: kind, dtype and contents."""
    if isinstance(x, (list, tuple)):
        return [plain(tf, each) for each in x]
    if isinstance(x, tf.SparseTensor):
        parts = [x.indices, x.values, x.dense_shape]
        return ["sparse", *[plain(tf, each) for each in parts]]
    if isinstance(x, tf.RaggedTensor):
        return ["ragged", x.dtype.name, listed(x.to_list())]
    array = x.numpy()
    return [x.dtype.name, listed(array.tolist() if hasattr(array, "tolist") else array)]


def listed(x):
    """Numbers that JSON has, and text."""
    if isinstance(x, list):
        return [listed(each) for each in x]
    if isinstance(x, bytes):
        return x.decode("latin-1")
    return str(x) if isinstance(x, float) and not math.isfinite(x) else x


def gradients(tf, case):
    """The gradients of a case in float64 by all that it names, or None."""
    found = values(tf, wide=True)
    # A source is what the case is computed from: the values, once they are watched.
    names = [n for n in sorted(SOURCES) if uses(case, n)]
    if not names:
        return None
    sources = {n: flat(tf, found[n]) for n in names}
    with tf.GradientTape(persistent=True) as tape:
        for x in sources.values():
            tape.watch(x)
        for n, x in sources.items():
            if isinstance(found[n], tf.SparseTensor):
                found[n] = tf.SparseTensor(found[n].indices, x, found[n].dense_shape)
            elif isinstance(found[n], tf.RaggedTensor):
                found[n] = found[n].with_flat_values(x)
        result = eval(case, {"tf": tf}, found)  # noqa: S307
        total = 0.0
        for x in result if isinstance(result, (list, tuple)) else [result]:
            x = flat(tf, x)
            if x.dtype != tf.float64:
                return None
            x = tf.reshape(x, [-1])
            total += tf.reduce_sum(x * tf.cast(tf.range(1, x.shape[0] + 1), x.dtype))
    answer = {}
    for n, x in sources.items():
        g = tape.gradient(total, x)
        answer[n] = (
            None if g is None else listed(tf.convert_to_tensor(g).numpy().tolist())
        )
    return answer


def uses(case, name):
    """Return whether a case names a value."""
    return re.search(rf"(?<![\w.'\"]){name}(?![\w'\"=])", case) is not None


def result(tf, case):
    """What a case gives: its value, or the error's name."""
    try:
        value = eval(case, {"tf": tf}, values(tf))  # noqa: S307
    except Exception as error:
        return {"error": type(error).__name__}
    return {"value": plain(tf, value)}


if __name__ == "__main__":
    import tensorflow as tf

    found = []
    for case in CASES:
        entry = result(tf, case)
        if "value" in entry:
            try:
                entry["gradient"] = gradients(tf, case)
            except Exception as error:  # TensorFlow has none
                entry["gradient_error"] = type(error).__name__
        found.append(entry)
    path = pathlib.Path(__file__).with_name("sparse.json")
    path.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")
