"""Create, reshape, join, index and sort tensors."""
