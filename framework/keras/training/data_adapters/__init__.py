"""Sources of batches for `fit`, `evaluate` and `predict`."""
