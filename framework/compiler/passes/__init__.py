"""Passes over graphs: each makes a smaller one, and can be switched off."""
