"""Texts for users: checks of arguments, suggestions, source lines, docstrings."""
