"""Dimensions that are not known while a function is traced."""

__all__ = []
