"""`rearrange`, `vectorize` and `lu_factor` of `keras.ops`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import ops

IMAGES = np.arange(144, dtype=np.float32).reshape(2, 4, 6, 3)

# The patterns of Keras' documentation, by NumPy
REARRANGED = [
    ("b h w c -> b c h w", {}, IMAGES.transpose(0, 3, 1, 2)),
    ("b h w c -> (b h) w c", {}, IMAGES.reshape(8, 6, 3)),
    ("b h w c->h (b w) c", {}, IMAGES.transpose(1, 0, 2, 3).reshape(4, 12, 3)),
    ("b h w c -> b (c h w)", {}, IMAGES.transpose(0, 3, 1, 2).reshape(2, 72)),
    ("b (h h1) (w w1) c -> b h w (c h1 w1)", {"h1": 2, "w1": 3},
     IMAGES.reshape(2, 2, 2, 2, 3, 3).transpose(0, 1, 3, 5, 2, 4).reshape(2, 2, 2, 18)),
]  # fmt: skip


@pytest.mark.parametrize("pattern, lengths, wanted", REARRANGED)
def test_patterns_split_permute_and_join_axes(pattern, lengths, wanted):
    found = ops.rearrange(IMAGES, pattern, **lengths)
    np.testing.assert_array_equal(found.numpy(), wanted)
    x = tw.keras.Input((4, 6, 3))
    model = tw.keras.Model(x, ops.rearrange(x, pattern, **lengths))
    np.testing.assert_array_equal(model(IMAGES).numpy(), wanted)
    node = model.get_config()["layers"][1]  # as Keras has it
    assert (node["module"], node["class_name"]) == ("keras.src.ops.einops", "Rearrange")
    assert node["inbound_nodes"][0]["kwargs"] == lengths
    copy = tw.keras.Model.from_config(model.get_config())
    np.testing.assert_array_equal(copy(IMAGES).numpy(), wanted)


@pytest.mark.parametrize("pattern, lengths, text", [
    ("b h w c", {}, "names of axes around '->'"),
    ("b h w c -> b h w", {}, "each name once before and once after"),
    ("b h c -> b c h", {}, "3 axes|4 axes"),
    ("b (h k) w c -> b h k w c", {}, "but one must be given"),
    ("b (h k) w c -> b h k w c", {"k": 3}, "an axis of size 4 cannot be"),
    ("b h w c -> b c h w", {"h": 5}, "an axis of size 4 cannot be"),
])  # fmt: skip
def test_patterns_that_do_not_fit_are_refused(pattern, lengths, text):
    with pytest.raises(ValueError, match=text):
        ops.rearrange(IMAGES, pattern, **lengths)


@pytest.mark.parametrize(
    "pattern",
    ["a" * 60 + "!->b", "(" + "a" * 60 + "!) -> b", "a " * 5000 + "!->b",
     "(a (b)) -> a b", "a) -> a"],
)  # fmt: skip
def test_patterns_that_are_none_are_refused_at_once(pattern):
    with pytest.raises(ValueError, match="pattern must be names of axes"):
        ops.rearrange([1.0], pattern)


def test_vectorize_broadcasts_as_numpy_does():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 1, 4))
    b = rng.normal(size=(2, 4))
    m = rng.normal(size=(2, 5, 4))
    for f, signature, args in [
        (lambda a, b: a * b + 1, None, (a, b)),
        (lambda a, b: (a, b - a), None, (a[0, 0], np.float64(2))),
        (lambda a, b: (a * b).sum() if isinstance(a, np.ndarray) else ops.sum(a * b),
         "(n),(n)->()", (a, b)),
        (lambda m, v: m @ v if isinstance(m, np.ndarray) else ops.matmul(m, v),
         "(m,n),(n)->(m)", (m, b[0])),
    ]:  # fmt: skip
        wanted = np.vectorize(f, signature=signature)(*args)
        found = ops.vectorize(f, signature=signature)(*args)
        for got, want in zip(tw.nest.flatten(found), tw.nest.flatten(wanted)):
            np.testing.assert_allclose(got.numpy(), want)
    scaled = ops.vectorize(lambda x, n: x * n, excluded={1})
    assert scaled([1, 2], 3).numpy().tolist() == [3, 6]
    x = tw.constant([1.0, 2.0])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.function(ops.vectorize(lambda x: x**3))(x)
    assert tape.gradient(y, x).numpy().tolist() == [3, 12]
    with pytest.raises(ValueError, match="names of axes"):
        ops.vectorize(f, signature="n->n")
    with pytest.raises(ValueError, match="2 arrays must be given for .*, got 1"):
        ops.vectorize(f, signature="(n),(n)->()")(b)
    with pytest.raises(ValueError, match="axis 'n' must have 4 entries"):
        ops.vectorize(f, signature="(n),(n)->()")(b, b[:, 1:])


def test_lu_factor_has_the_rows_of_the_product_that_are_those_of_the_matrix():
    matrix = np.array([[1.0, 2, 0], [3, 4, 1], [0, 5, 6]])
    packed, p = ops.lu_factor(matrix)
    packed, p = packed.numpy(), p.numpy()
    assert p.tolist() == [2, 0, 1]  # as Keras with TensorFlow
    product = (np.tril(packed, -1) + np.eye(3)) @ np.triu(packed)
    np.testing.assert_allclose(product[p], matrix, atol=1e-15)
    assert ops.linalg.lu_factor is ops.lu_factor


def test_i0_has_keras_dtypes():
    for given, wanted in [("int32", "float32"), ("int64", "float64"), ("float16",) * 2]:
        found = ops.i0(ops.convert_to_tensor([0, 1], dtype=given))
        assert found.dtype == wanted and found.numpy()[1] == pytest.approx(1.266, 1e-3)
