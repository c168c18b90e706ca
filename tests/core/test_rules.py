"""Shape rules that kinds of ops share."""

import pytest

import tapewright as tw
from tapewright.core.primitive import get_primitive
from tapewright.core.rules import broadcast_shape, normalize_axis
from tapewright.errors import DTypeError, ShapeError


@pytest.mark.parametrize("shapes, result", [
    ([(3, 1), (2,)], (3, 2)),
    ([(), (2,)], (2,)),
    ([(0,), (1,)], (0,)),
    ([(None, 3), (1, 3)], (None, 3)),
    ([(None,), (4,)], (4,)),
    ([], ()),
])  # fmt: skip
def test_shapes_broadcast_by_numpys_rules(shapes, result):
    assert tuple(broadcast_shape(*shapes)) == result


def test_a_shape_of_unknown_rank_stays_unknown():
    assert broadcast_shape(tw.TensorShape(None), (2,)).rank is None


def test_shapes_that_disagree_are_named():
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        broadcast_shape((2,), (3,))


def test_axes_count_from_both_ends():
    assert normalize_axis("op", None, 3) == (0, 1, 2)
    assert normalize_axis("op", -1, 3) == (2,)
    assert normalize_axis("op", (0, -1), 3) == (0, 2)


@pytest.mark.parametrize("axis, message", [
    (3, "axis .*-3.*2.*rank 3.*got 3"), ((0, -3), "axis .*twice"),
])  # fmt: skip
def test_an_axis_that_is_none_is_explained(axis, message):
    with pytest.raises(ValueError, match=message):
        normalize_axis("op", axis, 3)


def test_an_elementwise_op_infers_unknown_dimensions():
    infer = get_primitive("multiply").infer_rule
    spec = infer(tw.TensorSpec((None, 3), "float64"), tw.TensorSpec((3,), "float64"))
    assert spec == tw.TensorSpec((None, 3), "float64")


def test_operands_that_do_not_broadcast_are_shown():
    with pytest.raises(ShapeError, match=r"add: shapes .*\n  x: shape \(2,\), float32"):
        tw.add(tw.zeros(2), tw.zeros(3))


def test_operands_of_two_dtypes_are_shown():
    with pytest.raises(DTypeError, match="dtypes .*float32.*int32"):
        tw.add(tw.zeros(2), tw.zeros(2, tw.int32))
