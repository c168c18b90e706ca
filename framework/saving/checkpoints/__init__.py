"""Checkpoints: the values of objects that are made by code, by their places."""
