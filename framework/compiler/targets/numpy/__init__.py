"""The target that is always there: array calls of NumPy, one line of Python each."""
