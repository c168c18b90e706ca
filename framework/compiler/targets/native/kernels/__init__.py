"""Kernels of the target `native`: one file per kind of instruction, and their table."""
