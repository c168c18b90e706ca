"""Kernels of the target cuda: a file for each kind of instruction, and their table."""
