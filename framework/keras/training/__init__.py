"""`compile`, `fit`, `evaluate`, `predict`: the loops over batches and their state."""
