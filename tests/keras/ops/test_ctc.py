"""`keras.ops.ctc_loss` and `ctc_decode`, with the numbers of Keras 3.15 on TensorFlow."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import ops

LOGITS = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("f4") * 2
STEPS = np.array([5, 3, 2])
BEST = [[-5.6189], [-4.9803], [-6.9484]]
GREEDY = [
    ({}, [[2, 3, 1, 3], [1, 1], [1, 3]]),
    ({"merge_repeated": False}, [[2, 2, 3, 1, 3], [1, 1], [1, 3]]),
    ({"mask_index": 3}, [[2, 1], [1, 0, 1], [1]]),
    ({"mask_index": None}, [[2, 1], [1, 0, 1], [1]]),
]
BEAMS = [
    ({"beam_width": 50}, [[[2, 3, 1, 3], [1, 1], [1, 3]]],
     [[-1.6335], [-0.9826], [-1.0115]]),
    ({"beam_width": 2}, [[[2, 3, 1, 3], [1, 1], [1, 3]]],
     [[-1.6584], [-0.9826], [-1.0115]]),
    ({"top_paths": 3, "mask_index": 2},
     [[[3, 1, 3], [1, 0, 1], [3]], [[3], [1, 0, 3], [1, 3]], [[3, 1], [1, 0], [1]]],
     [[-1.611, -2.3559, -2.613], [-0.9826, -1.8414, -1.8872],
      [-0.9817, -1.0115, -1.9676]]),
]  # fmt: skip


def filled(labels):
    """Lists of labels as an array, -1 behind them."""
    return [[*each, *[-1] * (5 - len(each))] for each in labels]


@pytest.mark.parametrize(("options", "labels"), GREEDY)
def test_the_likeliest_class_of_each_step_spells_the_labels(options, labels):
    for decode in (ops.ctc_decode, tw.function(ops.ctc_decode)):
        decoded, scores = decode(tw.constant(LOGITS), tw.constant(STEPS), **options)
        assert decoded.dtype == "int32"
        assert decoded.numpy().tolist() == [filled(labels)]
        np.testing.assert_allclose(scores, BEST, atol=1e-4)


@pytest.mark.parametrize(("options", "paths", "expected"), BEAMS)
def test_a_beam_search_finds_the_likeliest_labels(options, paths, expected):
    decoded, scores = ops.ctc_decode(LOGITS, STEPS, strategy="beam_search", **options)
    assert decoded.numpy().tolist() == [filled(labels) for labels in paths]
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_a_traced_beam_search_runs_eagerly():
    traced = tw.function(lambda x: ops.ctc_decode(x, STEPS, "beam_search"))
    decoded, _ = traced(tw.constant(LOGITS))
    assert decoded.numpy().tolist() == [filled(labels) for labels in BEAMS[0][1]]


def test_unknown_strategies_are_refused():
    with pytest.raises(ValueError, match="strategy .*'greedy'.*got 'best'"):
        ops.ctc_decode(LOGITS, STEPS, strategy="best")


def test_the_loss_counts_the_labels_and_steps_that_it_is_told_to():
    target = np.array([[1, 2, 1], [1, 2, 2], [3, 3, -1]])
    value = ops.ctc_loss(target, LOGITS, np.array([3, 2, 1]), STEPS)
    np.testing.assert_allclose(value, [6.4384, 3.1369, 2.4274], atol=1e-4)
    for i, (labels, steps) in enumerate(zip((3, 2, 1), STEPS)):
        alone = tw.keras.losses.ctc(
            target[i : i + 1, :labels], LOGITS[i : i + 1, :steps]
        )
        np.testing.assert_allclose(alone, value[i : i + 1], rtol=1e-5)


def test_both_are_part_of_a_model():
    logits = tw.Input((5, 4), batch_size=3)
    target = tw.Input((3,), batch_size=3, dtype="int32")
    counts, steps = (tw.Input((), batch_size=3, dtype="int32") for _ in range(2))
    loss = ops.ctc_loss(target, logits, counts, steps)
    decoded, scores = ops.ctc_decode(logits, steps)
    assert (loss.shape, decoded.shape, scores.shape) == ((3,), (1, 3, 5), (3, 1))
    model = tw.Model([logits, target, counts, steps], [loss, decoded])
    labels = np.array([[1, 2, 1], [1, 2, 2], [3, 3, 0]])
    found = model([LOGITS, labels, np.array([3, 2, 1]), STEPS])
    np.testing.assert_allclose(found[0], [6.4384, 3.1369, 2.4274], atol=1e-4)
    assert found[1].numpy().tolist() == [filled(GREEDY[0][1])]
    twin = tw.Model.from_config(model.get_config())
    kinds = [type(op).__name__ for op in twin.operations]
    assert kinds.count("OpCall") == 2


# Those of TensorFlow 2.21: labels of each sequence, the width of the SparseTensor, scores.
TIME_MAJOR = np.random.default_rng(0).normal(size=(6, 2, 4)).astype("f4")
DECODERS = [
    ("greedy", {}, [([2, 0, 1], [2, 1], 3)], [[-4.682502], [-2.671867]]),
    (
        "greedy",
        {"merge_repeated": False, "blank_index": -3},
        [([2, 3, 3, 0], [2], 4)],
        [[-4.682502], [-2.671867]],
    ),
    (
        "beam_search",
        {"beam_width": 5, "top_paths": 2},
        [([2, 0, 1], [2, 1], 3), ([2, 0, 2], [1], 3)],
        [[-2.869152, -3.170983], [-1.485919, -1.948818]],
    ),
]


@pytest.mark.parametrize(("kind", "options", "paths", "scores"), DECODERS)
def test_decoders_of_tf_nn_give_sparse_labels(kind, options, paths, scores):
    decode = getattr(tw.nn, f"ctc_{kind}_decoder")
    found, found_scores = decode(TIME_MAJOR, [6, 4], **options)
    np.testing.assert_allclose(found_scores.numpy(), scores, rtol=1e-5)
    for labels, (first, second, width) in zip(found, paths, strict=True):
        assert labels.dtype == "int64" and tuple(labels.shape) == (2, width)
        rows = [[0, i] for i in range(len(first))] + [
            [1, i] for i in range(len(second))
        ]
        assert labels.indices.numpy().tolist() == rows
        assert labels.values.numpy().tolist() == first + second
    nothing, _ = decode(np.float32([[[0, 0, 9]]]), [1])
    assert tuple(nothing[0].shape) == (1, 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tw.nn.ctc_greedy_decoder([[0.0]], [1]), "inputs must be"),
        (
            lambda: tw.nn.ctc_greedy_decoder(TIME_MAJOR, [6, 4], blank_index=4),
            "blank_index must be one of 4 classes, got 4",
        ),
        (
            lambda: tw.nn.ctc_beam_search_decoder(TIME_MAJOR, [6, 4], 2, 3),
            "top_paths must be from 1 to beam_width, got 3 and 2",
        ),
    ],
)
def test_mistakes_of_decoders_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
