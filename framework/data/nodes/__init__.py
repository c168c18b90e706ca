"""Nodes: the sources and transformations of a dataset."""
