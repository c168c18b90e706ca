"""A pass that lets convolutions pad their images: nothing padded is stored.

``convolve(pad(images, margins))`` becomes ``convolve(images)`` with larger margins, and
so do its gradients. Networks for images pad so in front of convolutions with strides.
"""

import numpy as np

from tapewright.core.primitive import get_primitive
from tapewright.ops.convolution import correlation
from tapewright.ops.convolution.windows import positions

from ..tracing.graph import is_value
from .rewriting import is_op, is_static, producer, rewrite, users_of

PAD, CROP = get_primitive("pad"), get_primitive("crop")
CONVOLVE = correlation.convolve.primitive
BACK = correlation.input_gradient.primitive
FILTERS = correlation.filter_gradient.primitive


def padded_convolutions(graph):
    """Pad with zeros in convolutions and their gradients instead of before them."""
    users = users_of(graph)

    def padded(rewriter, node, inputs):
        if not is_op(node) or not is_static(node.outputs[0]):
            return None
        if node.op in (CONVOLVE, FILTERS) and is_value(node.inputs[0]):
            pad = producer(node.inputs[0], PAD)
            if pad is None or not _is_for_convolutions(pad, users):
                return None
            window = _window(node)
            padding = _margins(node, node.inputs[0].shape[1:-1], window, pad)
            images = rewriter.current(pad.inputs[0])
            attributes = {**node.attributes, "padding": padding}
            return (rewriter.make(node.op, (images, inputs[1]), attributes, node.line),)
        if node.op is CROP and _is_spatial(node):
            back = producer(node.inputs[0], BACK)
            if back is None or users[node.inputs[0]] != [node]:
                return None
            size = back.attributes["size"]
            padding = _margins(back, size, back.inputs[1].shape[:-2], node)
            attributes = {
                **back.attributes, "padding": padding, "size": node.outputs[0].shape[1:-1],
            }  # fmt: skip
            inputs = [rewriter.current(x) for x in back.inputs]
            return (rewriter.make(BACK, inputs, attributes, back.line),)
        return None

    return rewrite(graph, padded)


def _is_for_convolutions(pad, users):
    """Return whether only convolutions read images that are padded with zeros."""
    (out,), (images, filling) = pad.outputs, pad.inputs
    return (
        is_value(images)
        and not is_value(filling)
        and not np.any(filling.array)
        and _is_spatial(pad)
        and all(
            [
                user is not None
                and is_op(user)
                and user.op in (CONVOLVE, FILTERS)
                and user.inputs[0] is out
                and user.inputs[1] is not out
                for user in users[out]
            ]
        )
    )


def _is_spatial(node):
    """Return whether only spatial axes have a margin."""
    paddings = node.attributes["paddings"]
    return len(paddings) > 2 and not any(paddings[0]) and not any(paddings[-1])


def _window(node):
    if node.op is FILTERS:
        return node.attributes["window"]
    return node.inputs[1].shape[:-2]


def _margins(node, size, window, pad):
    """Add the margins of padded images to the margins of their convolution."""
    names = "strides", "padding", "dilations"
    margins, _ = positions(size, window, *[node.attributes[name] for name in names])
    more = pad.attributes["paddings"][1:-1]
    return tuple([(b + c, a + d) for (b, a), (c, d) in zip(margins, more)])
