"""Activations, normalizations, cross entropies and recurrent steps."""
