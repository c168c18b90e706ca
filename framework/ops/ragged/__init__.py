"""Ragged tensors, and the ops on them."""
