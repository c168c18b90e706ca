"""Compile, keep, load and call machine code."""
