"""Passes over graphs: each returns a smaller graph, and can be switched off."""
