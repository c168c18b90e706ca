"""Datasets in files: records, lines, CSV, HDF5, and saved elements."""
