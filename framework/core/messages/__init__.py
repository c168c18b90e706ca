"""Texts for users: errors, suggestions, origins of tensors, source lines, log, HTML."""
