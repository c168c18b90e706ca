"""Targets compile a `Program` to a callable."""
