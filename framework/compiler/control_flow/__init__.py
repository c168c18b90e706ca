"""Branches and loops that depend on data, and Python inside of traced functions."""
