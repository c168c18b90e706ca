"""Python inside of traced functions: `print`, `py_function`, `numpy_function`."""

__all__ = []
