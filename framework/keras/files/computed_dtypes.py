"""Dtypes of Keras in which nothing is computed here, and what stands in their place.

A policy such as "mixed_float16" keeps weights in float32 and rounds what is computed with
them; bfloat16 has no arithmetic in NumPy. Both are float32 here, which holds all their
numbers: results differ by the rounding that is left out.
"""

__all__ = ["in_computed_dtypes"]

COMPUTED = {
    "mixed_float16": "float32",
    "mixed_bfloat16": "float32",
    "bfloat16": "float32",
}


def in_computed_dtypes(config):
    """``(config, names)``: with other dtypes in place of these, and which ones were met.

    >>> in_computed_dtypes({"units": 2, "dtype": "mixed_float16"})
    ({'units': 2, 'dtype': 'float32'}, {'mixed_float16'})
    """
    met = set()
    return _computed(config, met), met


def _computed(config, met):
    if isinstance(config, list):
        return [_computed(each, met) for each in config]
    if not isinstance(config, dict):
        return config
    config = {key: _computed(value, met) for key, value in config.items()}
    name = _policy(config.get("dtype"))
    if name in COMPUTED:
        met.add(name)
        config["dtype"] = COMPUTED[name]
    return config


def _policy(dtype):
    """The name of a dtype, or of a policy in the form of an object; None for others."""
    if isinstance(dtype, dict) and dtype.get("class_name") == "DTypePolicy":
        inner = dtype.get("config")
        dtype = inner.get("name") if isinstance(inner, dict) else None
    return dtype if isinstance(dtype, str) else None
