"""Graphs and executables to look at: text, counts and times."""
