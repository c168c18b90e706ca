"""Inputs of attention layers."""

import numpy as np


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)
