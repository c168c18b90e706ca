"""A graph and its plan to look at: text, and what each node costs."""

__all__ = []
