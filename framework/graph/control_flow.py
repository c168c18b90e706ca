"""Branches and loops that depend on data: `cond`, `while_loop`, `scan` and their kin."""

__all__ = []
