"""Losses over samples of classes, CTC, dilation and erosion, blocks of space in the batch."""

import itertools

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, floats


def dilation(x, filters, stride=1, same=False):
    """Windows of 2 by 3, and of 2 by 5 where columns are two apart."""
    if same:
        x = np.pad(x, [(0, 0), (0, 1), (1, 1), (0, 0)], constant_values=-np.inf)
    rows = range(0, x.shape[1] - 1, stride)
    columns = range(0, x.shape[2] - 2, stride)
    windows = [[x[:, i : i + 2, j : j + 3] for j in columns] for i in rows]
    out = [[(w + filters).max((1, 2)) for w in row] for row in windows]
    return np.moveaxis(np.array(out), 2, 0)


def valid(x, filters):
    return tw.nn.dilation2d(x, filters, 2, "VALID", "NHWC", 1)


def same(x, filters):
    return tw.nn.dilation2d(x, filters, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])


def eroded(x, filters):
    return tw.nn.erosion2d(x, filters, 1, "VALID", "NHWC", 1)


def moved(x):
    return tw.space_to_batch(x, [2, 3], [[0, 1], [1, 2]])


def to_batch(x):
    x = np.pad(x, [(0, 0), (0, 1), (1, 2), (0, 0)])
    return np.concatenate([x[:, i::2, j::3] for i in range(2) for j in range(3)])


def there_and_back(x):
    return tw.batch_to_space(moved(x), [2, 3], [[0, 1], [1, 2]])


def spelled(logits, labels, blank):
    """The sum over all paths that spell the labels."""
    steps, classes = logits.shape
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        merged = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
        if [c for c in merged if c != blank] == labels:
            total += np.prod(p[np.arange(steps), path])
    return -np.log(total)


def ctc(logits):
    labels = np.array([[1, 2, 2], [2, 0, 0]])
    return tw.nn.ctc_loss(labels, logits, [3, 1], [5, 4])


def ctc_expected(logits):
    return np.array(
        [spelled(logits[:, 0], [1, 2, 2], 0), spelled(logits[:4, 1], [2], 0)]
    )


CASES = [
    case(valid, floats(1, 4, 5, 2), floats(2, 3, 2), order=1,
         expect=lambda x, f: dilation(x, f, 2)),
    case(same, floats(2, 3, 4, 1), floats(2, 3, 1), order=1,
         expect=lambda x, f: dilation(x, f, same=True)),
    case(eroded, floats(1, 3, 4, 2), floats(2, 3, 2), order=1,
         expect=lambda x, f: -dilation(-x, f[::-1, ::-1])),
    case(moved, floats(2, 3, 3, 2), expect=to_batch, order=1),
    case(there_and_back, floats(2, 3, 3, 2), expect=lambda x: x, order=1),
    case(ctc, floats(5, 2, 3), expect=ctc_expected, order=1),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


WEIGHTS, BIASES = np.arange(12.0).reshape(6, 2) / 10 - 0.5, np.arange(6.0) / 10
INPUTS, LABELS = np.array([[1.0, -1.0], [0.5, 2.0]]), np.array([[1, 2], [3, 5]])
SAMPLED = (
    np.array([2, 0, 3]),
    np.array([[0.5, 0.4], [0.3, 0.2]]),
    np.array([0.3, 0.2, 0.4]),
)
GIVEN = WEIGHTS, BIASES, LABELS, INPUTS, 3, 6, 2, SAMPLED
# Of TensorFlow 2.21: without accidental hits, and with them
SOFTMAX = [[1.65817741, 1.11079243], [1.91940136, 1.21575541]]
NCE = [[4.67780903, 5.51244247], [6.22194078, 7.35180092]]


def test_losses_over_samples_are_tensorflows():
    for remove, softmax, nce in zip((True, False), SOFTMAX, NCE):
        found = tw.nn.sampled_softmax_loss(*GIVEN, remove_accidental_hits=remove)
        np.testing.assert_allclose(found.numpy(), softmax, rtol=1e-7)
        found = tw.nn.nce_loss(*GIVEN, remove_accidental_hits=remove)
        np.testing.assert_allclose(found.numpy(), nce, rtol=1e-7)
    parts = tw.nn.nce_loss([WEIGHTS[:3], WEIGHTS[3:]], *GIVEN[1:])
    np.testing.assert_allclose(parts.numpy(), NCE[1], rtol=1e-7)


def test_a_traced_loss_draws_anew_and_has_gradients():
    table = tw.Variable(np.float32(WEIGHTS))

    @tw.function
    def step():
        with tw.GradientTape() as tape:
            inputs, biases = np.float32(INPUTS), np.float32(BIASES)
            loss = tw.nn.nce_loss(table, biases, LABELS[:, :1], inputs, 3, 6)
        return loss, tape.gradient(loss, table)

    tw.random.set_seed(3)
    losses = [step()[0].numpy().tolist() for _ in range(4)]
    assert len(set(map(tuple, losses))) > 1
    tw.random.set_seed(3)
    assert step()[0].numpy().tolist() == losses[0]
    assert tw.convert_to_tensor(step()[1]).shape == (6, 2)


def test_unique_samples_have_the_distribution_of_rejected_ones():
    counts, expected = np.zeros(6), np.zeros(6)
    for seed in range(60):
        sample = tw.random.log_uniform_candidate_sampler(
            np.arange(6)[:, None], 1, 3, True, 6, seed=seed
        )
        drawn = sample.sampled_candidates.numpy()
        assert len({*drawn}) == 3 and drawn.dtype == np.int64
        counts[drawn] += 1
        expected += sample.true_expected_count.numpy()[:, 0]
        again = tw.gather(sample.true_expected_count[:, 0], drawn)
        np.testing.assert_array_equal(
            again.numpy(), sample.sampled_expected_count.numpy()
        )
    assert np.all(np.diff(expected) < 0)
    np.testing.assert_allclose(counts[1:] / 60, expected[1:] / 60, atol=0.25)


def test_samples_with_repeats_follow_their_weights():
    sample = tw.random.fixed_unigram_candidate_sampler(
        np.arange(5)[:, None], 1, 4000, False, 5, unigrams=[1.0, 4.0, 9.0, 16.0],
        num_reserved_ids=1, distortion=0.5, seed=1,
    )  # fmt: skip
    counts = np.bincount(sample.sampled_candidates.numpy(), minlength=5)
    wanted = sample.true_expected_count.numpy()[:, 0]
    np.testing.assert_allclose(wanted, [0, 400, 800, 1200, 1600], rtol=1e-6)
    np.testing.assert_allclose(counts, wanted, atol=120)
    even = tw.random.uniform_candidate_sampler([[1]], 1, 3, True, 3, seed=1)
    assert sorted(even.sampled_candidates.numpy().tolist()) == [0, 1, 2]
    every = tw.random.all_candidate_sampler([[1]], 1, 3, True)
    assert every.sampled_candidates.numpy().tolist() == [0, 1, 2]
    hits = tw.nn.compute_accidental_hits([[0, 1], [5, 2]], [5, 7, 0, 1], 2)
    assert hits.indices.numpy().tolist() == [0, 0, 1]
    assert hits.ids.numpy().tolist() == [2, 3, 0]
    assert hits.weights.numpy()[0] == np.finfo(np.float32).min


def test_labels_are_merged_and_listed_as_by_tensorflow():
    labels = np.array([[1, 2, 2, 0, 0], [3, 3, 3, 1, 2]])
    unique, places = tw.nn.ctc_unique_labels(labels)
    assert unique.numpy().tolist() == [[1, 2, 0, 0, 0], [3, 1, 2, 0, 0]]
    assert places.numpy().tolist() == [[0, 1, 1, 2, 2], [0, 0, 0, 1, 2]]
    merged, counts = tw.nn.collapse_repeated(labels, [3, 5])
    assert merged.numpy().tolist() == [[1, 2, 0], [3, 1, 2]]
    assert counts.numpy().tolist() == [2, 3]


def test_the_blank_of_ctc_may_be_the_last_class():
    logits = np.random.default_rng(0).normal(size=(2, 5, 3))
    found = tw.nn.ctc_loss([[0, 1, 1], [1, 0, 0]], logits, [3, 1], [5, 4],
                           logits_time_major=False, blank_index=-1)  # fmt: skip
    wanted = [spelled(logits[0], [0, 1, 1], 2), spelled(logits[1, :4], [1], 2)]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10)


def test_sparse_labels_of_ctc_have_the_lengths_of_their_rows():
    logits = np.random.default_rng(0).normal(size=(5, 2, 4))
    sparse = tw.sparse.from_dense([[1, 2, 2], [2, 0, 0]])
    wanted = tw.nn.ctc_loss(
        [[1, 2, 2], [2, 1, 1]], logits, [3, 1], [5, 4], blank_index=3
    )
    loss = tw.nn.ctc_loss
    for call in (loss, tw.function(loss)):
        found = call(sparse, tw.constant(logits), None, [5, 4], blank_index=3)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


def test_approximate_searches_are_exact_along_any_axis():
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    for find, order in ((tw.math.approx_max_k, -1), (tw.nn.approx_min_k, 1)):
        for axis in (-1, 1):
            values, indices = find(x, 2, reduction_dimension=axis)
            wanted = np.argsort(order * x, axis=axis).take([0, 1], axis)
            np.testing.assert_array_equal(indices.numpy(), wanted)
            wanted = np.take_along_axis(x, wanted, axis)
            np.testing.assert_array_equal(values.numpy(), wanted)


def test_paddings_fill_up_blocks():
    found = tw.required_space_to_batch_paddings(
        [5, 7, 4], [2, 3, 4], [[1, 0], [0, 0], [2, 1]]
    )
    assert found[0].numpy().tolist() == [[1, 0], [0, 2], [2, 2]]
    assert found[1].numpy().tolist() == [[0, 0], [0, 2], [0, 1]]
    assert tw.nn.space_to_batch is tw.space_to_batch is tw.space_to_batch_nd


IMAGE = np.zeros((1, 3, 3, 1))


@pytest.mark.parametrize("call, error, text", [
    (lambda: tw.space_to_batch(IMAGE, [2, 3], [[0, 0], [0, 0]]), ValueError,
     "padded sizes must be multiples"),
    (lambda: tw.space_to_batch(IMAGE, [2], [[0, -1]]), ValueError, "pairs of integers"),
    (lambda: tw.batch_to_space(IMAGE, [2], [[0, 0]]), ValueError, "multiple of 2"),
    (lambda: tw.batch_to_space(IMAGE, [1], [[2, 2]]), ValueError, "crops must fit"),
    (lambda: tw.nn.dilation2d(IMAGE, IMAGE, 1, "SAME", "NHWC", 1), ValueError, "filters"),
    (lambda: tw.nn.dilation2d(IMAGE, IMAGE[0], 1, "SAME", "NCHW", 1), ValueError,
     "data_format"),
    (lambda: tw.nn.ctc_loss([1], IMAGE[0], [1], [1]), ValueError, "labels must be"),
    (lambda: tw.nn.ctc_loss([[1.5]], IMAGE[0], [1], [1]), TypeError, "labels must be"),
    (lambda: tw.nn.ctc_loss([[1]], IMAGE[0], None, [1]), ValueError, "label_length"),
    (lambda: tw.nn.ctc_loss([[1]], IMAGE[0], [1], [1], blank_index=9), ValueError,
     "blank_index must be one of"),
    (lambda: tw.nn.ctc_loss(tw.sparse.from_dense([[1]]), IMAGE[0], None, [1]), ValueError,
     "blank_index must be given"),
    (lambda: tw.nn.ctc_unique_labels([1]), ValueError, "labels must be"),
    (lambda: tw.nn.collapse_repeated([1], [1]), ValueError, "labels must be"),
    (lambda: tw.random.all_candidate_sampler([[1]], 1, 0, True), ValueError,
     "num_sampled"),
    (lambda: tw.TensorArray("float32", 1, flow=1), ValueError, "flow must be None"),
    (lambda: tw.nn.sampled_softmax_loss(WEIGHTS, BIASES, [1, 2], INPUTS, 3, 6), ValueError,
     "num_true=1"),
    (lambda: tw.random.uniform_candidate_sampler([[1]], 1, 9, True, 6), ValueError,
     "9 unique classes cannot be drawn from 6"),
    (lambda: tw.random.fixed_unigram_candidate_sampler([[1]], 1, 2, True, 6, "words.csv"),
     ValueError, "vocab_file"),
    (lambda: tw.math.approx_max_k(BIASES, 2, aggregate_to_topk=False), ValueError,
     "aggregate_to_topk"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
