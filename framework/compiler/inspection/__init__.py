"""Graphs and plans to look at: text, counts and times."""
