"""`compile`, `fit`, `evaluate` and `predict`: the training loops and their state."""
