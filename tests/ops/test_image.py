"""Images: the op table, and the op that has no gradient on purpose."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import ShapeError
from tapewright.testing import case, check_op, floats


def contrast(images, factor):
    mean = images.mean((-3, -2), keepdims=True)
    return (images - mean) * factor + mean


CASES = [
    case("adjust_contrast", floats(2, 3, 2), np.array(2.0), order=0, expect=contrast),
    case(
        "adjust_contrast", floats(2, 2, 2, 1), np.array(0.5), order=0, expect=contrast
    ),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_adjust_contrast_has_no_gradient_and_says_so():
    x = tw.ones((2, 2, 1))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.image.adjust_contrast(x, 2.0)
    with pytest.raises(LookupError, match="AdjustContrastv2"):
        tape.gradient(y, x)


def test_images_must_have_three_axes():
    with pytest.raises(ShapeError, match="height, width, channels"):
        tw.image.adjust_contrast(tw.ones((2, 2)), 2.0)
