"""Keras' files, both ways: ``.weights.h5``, ``.h5`` and ``.keras``."""
