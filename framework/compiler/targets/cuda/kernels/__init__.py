"""Kernels of the target `cuda`: one file per kind of instruction, and their table."""
