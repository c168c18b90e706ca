"""Calls of a program joined: what makes a plan faster than its ops one by one."""

__all__ = []
