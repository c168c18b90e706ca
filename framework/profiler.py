"""Where the time goes: `trace` writes a Chrome trace and prints a table by op."""

__all__ = []
