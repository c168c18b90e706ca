"""Targets turn a Program into something to call."""
