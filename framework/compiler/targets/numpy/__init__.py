"""The NumPy target, always available: array calls, one line of Python each."""
