"""Resize, warp and compare images."""
