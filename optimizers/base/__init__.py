"""`Optimizer`, and the steps of its update: gradients, slots, flat buffers, commits."""
