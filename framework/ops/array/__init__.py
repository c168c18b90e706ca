"""Make, shape, join, index and sort tensors."""
