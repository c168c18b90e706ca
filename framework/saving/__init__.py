"""Saving: what is written to files, and read back."""
