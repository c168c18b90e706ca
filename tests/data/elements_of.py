"""Elements of data sets, as lists."""

import numpy as np

import tapewright as tw

X = np.arange(24.0).reshape(12, 2)
Y = np.arange(12)


def values(dataset):
    """The elements as lists of Python numbers."""

    def plain(element):
        if isinstance(element, tuple):
            return tuple([plain(item) for item in element])
        if isinstance(element, dict):
            return {key: plain(item) for key, item in element.items()}
        return element.numpy().tolist()

    return [plain(element) for element in dataset]


def lengths():
    for n in (3, 1, 2):
        yield n, np.full(n, n, "f4")


RAGGED = (tw.TensorSpec((), "int32"), tw.TensorSpec([None], "float32"))
