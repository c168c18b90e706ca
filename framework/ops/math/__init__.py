"""Elementwise functions, reductions, scans and counts."""
