"""Non-maximum suppression: beside a search by hand, mapped, and what traces may not know."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op

RNG = np.random.default_rng(3)
CENTERS, SIDES = RNG.uniform(0, 1, (2, 30, 2)), RNG.uniform(0.05, 0.3, (2, 30, 2))
BOXES = np.concatenate([CENTERS - SIDES, CENTERS + SIDES], -1)
SCORES = RNG.permutation(60).reshape(2, 30) / 60
LIMITS = [np.array(0.3), np.array(0.2), np.array(0.0)]

CASES = [
    case("suppress_boxes", BOXES[:, :5], SCORES[:, :5], *LIMITS, count=4, order=0),
    case("suppress_overlaps", RNG.uniform(0, 1, (5, 5)), SCORES[0, :5], *LIMITS[:2],
         count=4, order=0),
    case("non_max_suppression", np.arange(4), np.array(2), order=0, unmapped=(0, 1),
         expect=lambda values, count: values[:count]),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def overlap(a, b):
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    both = np.prod(np.maximum(sides, 0))
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


def searched(boxes, scores, count, most, above):
    found = []
    for i in np.argsort(-scores):
        lies_over = [overlap(boxes[i], boxes[j]) > most for j in found]
        if scores[i] > above and not any(lies_over) and len(found) < count:
            found.append(int(i))
    return found


@pytest.mark.parametrize(
    "most, above, count", [(0.1, 0.3, 30), (0.4, -1, 30), (0.3, 0, 4)]
)
def test_boxes_are_those_of_a_search(most, above, count):
    wanted = [searched(b, s, count, most, above) for b, s in zip(BOXES, SCORES)]
    limits = count, most, above
    for boxes, scores, indices in zip(BOXES, SCORES, wanted):
        flipped = boxes[:, [2, 1, 0, 3]]  # any two opposite corners
        found = tw.image.non_max_suppression(flipped, scores, *limits)
        assert found.dtype == "int32" and found.numpy().tolist() == indices
        found, total = tw.image.non_max_suppression_padded(boxes, scores, *limits)
        assert found.numpy().tolist() == indices and total == len(indices)
        matrix = [[overlap(a, b) for b in boxes] for a in boxes]
        found = tw.image.non_max_suppression_overlaps(matrix, scores, *limits)
        assert found.numpy().tolist() == indices
    padded = tw.function(tw.image.non_max_suppression_padded)
    found, total = padded(BOXES, SCORES, *limits, pad_to_max_output_size=True)
    for row, indices in zip(found.numpy().tolist(), wanted):
        assert row == indices + [0] * (count - len(indices))
    assert total.numpy().tolist() == [len(indices) for indices in wanted]


def test_edges():
    nms = tw.image.non_max_suppression
    assert nms(np.zeros((0, 4)), np.zeros(0), 3).shape == (0,)
    assert nms(BOXES[0], SCORES[0], 0).shape == (0,)
    flat = [[0, 0, 0, 1], [0, 0, 0, 1]]  # without area nothing overlaps
    assert nms(flat, [0.1, 0.2], 3, 0.0).numpy().tolist() == [1, 0]
    odd = [np.nan, -np.inf, np.inf, 0.5]
    assert nms(np.eye(4), odd, 4).numpy().tolist() == [2, 3]
    half = [[0, 0, 1, 1], [0, 0, 1, 0.5]]  # an overlap of exactly the threshold
    assert nms(half, [0.9, 0.8], 2, 0.5).numpy().tolist() == [0, 1]
    found, total = tw.image.non_max_suppression_padded(half, [0.9, 0.8], 2, 0.5)
    assert found.numpy().tolist() == [0] and total == 1


def test_a_traced_function_runs_eagerly_where_no_size_is_known():
    traced = tw.function(lambda b, s: tw.image.non_max_suppression(b, s, 3))
    wanted = tw.image.non_max_suppression(BOXES[0], SCORES[0], 3)
    assert traced(BOXES[0], SCORES[0]).numpy().tolist() == wanted.numpy().tolist()
    with pytest.raises(tw.errors.TracingError, match="results of non_max_suppression"):
        traced.get_concrete_function(BOXES[0], SCORES[0])


@pytest.mark.parametrize("call, words", [
    (lambda: tw.image.non_max_suppression(BOXES, SCORES, 3), r"scores \[n\]"),
    (lambda: tw.image.non_max_suppression(BOXES[0], SCORES[0, :4], 3), r"scores \[...*n\]"),
    (lambda: tw.image.non_max_suppression(BOXES[0], SCORES[0], -1), "0 or more"),
    (lambda: tw.image.non_max_suppression_padded(BOXES, SCORES, 3),
     "pad_to_max_output_size must be True"),
    (lambda: tw.image.non_max_suppression_overlaps(np.eye(3), [1.0], 3), r"\[n, n\]"),
    (lambda: tw.image.combined_non_max_suppression(BOXES, SCORES, 3, 3), "1 or classes"),
    (lambda: tw.image.combined_non_max_suppression(
        BOXES[:, :, None], SCORES[..., None], 0, 3), "max_output_size_per_class"),
])  # fmt: skip
def test_a_wrong_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
