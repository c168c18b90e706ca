"""Shapes: known, unknown and symbolic sizes, and conditions on them."""
