"""Mixins with methods of `Dataset`: functions, groups, selections; others are there."""
