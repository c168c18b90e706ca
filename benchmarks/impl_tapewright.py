"""tapewright in the benchmark of peers: the TensorFlow file, with the import changed.

Put this folder on PYTHONPATH of the benchmark's runner. Variant: ``eager``.
"""

import sys

import tapewright

sys.modules["tensorflow"] = tapewright

import impl_tf  # noqa: E402


def build(workload, data, variant):
    """The workload, or None where this version does not run it."""
    if workload.split("_")[0] in ("W7", "W9"):
        return None
    return impl_tf.build(workload, data, variant)
