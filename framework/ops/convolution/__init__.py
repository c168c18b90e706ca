"""Sliding windows: convolutions, their gradients, and pooling."""
